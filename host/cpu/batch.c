#include "host/cpu/batch.h"
#include "host/cpu/adversary.h"
#include "host/cpu/comm.h"
#include "host/cpu/fail.h"
#include "host/cpu/order.h"
#include "host/cpu/p2p.h"
#include "host/cpu/traced_coll.h"

#include <stdlib.h>
#include <string.h>

/* A stream's task. The first is the leader: it takes the ticket and does the work; the
   others hold their streams until it is done. */
struct member {
  struct cpu_comm_task launch;
  struct cpu_batch *batch;
  CUstream stream;
  bool entered;    /* enqueued, not captured */
  uint64_t rounds; /* how often it ran: a graph may be launched again */
};

struct cpu_batch {
  ncclComm_t comm;
  struct member *members;
  struct cpu_message *messages;
  uint64_t *numbers; /* of the calls */
  size_t member_count, message_count, call_count;
  _Atomic size_t references; /* the members', and the maker's */
  pthread_mutex_t lock;      /* of what follows */
  pthread_cond_t moved;
  uint64_t arrived, finished;
  bool dead; /* not all streams could be had: do nothing */
};

static void release_batch(struct cpu_batch *b) {
  if (atomic_fetch_sub(&b->references, 1) > 1) return;
  cpu_comm_release(b->comm);
  pthread_mutex_destroy(&b->lock);
  pthread_cond_destroy(&b->moved);
  free(b->members);
  free(b->messages);
  free(b->numbers);
  free(b);
}

static uint64_t enter_leader(struct cpu_task *task) {
  ((struct member *)task)->entered = true;
  return cpu_enqueue_ticket(task);
}

static uint64_t enter_follower(struct cpu_task *task) {
  ((struct member *)task)->entered = true;
  return 0;
}

static void release(struct cpu_task *task) {
  release_batch(((struct member *)task)->batch);
}

/* The leader waits until all followers hold their streams. False: the batch is dead. */
static bool gather_followers(struct cpu_batch *b) {
  uint64_t followers = b->member_count - 1;
  if (followers == 0) return true;
  pthread_mutex_lock(&b->lock);
  while (b->arrived < followers * (b->finished + 1) && !b->dead) {
    pthread_cond_wait(&b->moved, &b->lock);
  }
  bool alive = !b->dead;
  pthread_mutex_unlock(&b->lock);
  return alive;
}

static void let_go(struct cpu_batch *b) {
  if (b->member_count == 1) return;
  pthread_mutex_lock(&b->lock);
  b->finished++;
  pthread_cond_broadcast(&b->moved);
  pthread_mutex_unlock(&b->lock);
}

static void be_adverse(struct cpu_batch *b) {
  cpu_adversary_spoil_messages(b->messages, b->message_count);
  cpu_adversary_stagger(b->comm);
}

static void run_messages(struct cpu_batch *b) {
  if (cpu_adversary_hold_ns()) be_adverse(b);
  cpu_traced_messages(b->message_count);
  ncclResult_t rc = cpu_p2p_run(b->comm, b->messages, b->message_count);
  if (rc) cpu_comm_set_error(b->comm, rc);
  for (size_t i = 0; i < b->call_count && !rc; i++) {
    cpu_enqueue_complete(b->comm, b->numbers[i]);
  }
}

static void run_leader(struct cpu_task *task, uint64_t ticket) {
  struct cpu_batch *b = ((struct member *)task)->batch;
  bool alive = gather_followers(b);
  bool usable = cpu_order_begin(b->comm, ticket) && !atomic_load(&b->comm->async_error);
  if (alive && usable) run_messages(b);
  cpu_order_end(b->comm);
  let_go(b);
}

static void run_follower(struct cpu_task *task, uint64_t ticket) {
  struct member *m = (struct member *)task;
  struct cpu_batch *b = m->batch;
  (void)ticket;
  pthread_mutex_lock(&b->lock);
  b->arrived++;
  m->rounds++;
  pthread_cond_broadcast(&b->moved);
  while (b->finished < m->rounds && !b->dead) pthread_cond_wait(&b->moved, &b->lock);
  pthread_mutex_unlock(&b->lock);
}

static bool is_ours(const struct cpu_call *call, ncclComm_t comm) {
  return call->comm == comm && call->op.function >= CPU_MODELLED;
}

static void add_stream(struct cpu_batch *b, CUstream stream) {
  for (size_t i = 0; i < b->member_count; i++) {
    if (b->members[i].stream == stream) return;
  }
  bool leads = b->member_count == 0;
  b->members[b->member_count++] = (struct member){
    {{leads ? enter_leader : enter_follower, leads ? run_leader : run_follower, release, 1},
     b->comm},
    b,
    stream,
  };
}

static bool has_memory(struct cpu_batch *b, const struct cpu_call *calls, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!is_ours(&calls[i], b->comm)) continue;
    b->call_count++;
    b->message_count += cpu_p2p_count(b->comm, &calls[i].op);
  }
  b->members = malloc(b->call_count * sizeof *b->members);
  b->messages = malloc(b->message_count * sizeof *b->messages);
  b->numbers = malloc(b->call_count * sizeof *b->numbers);
  return b->members && b->messages && b->numbers;
}

static void fill(struct cpu_batch *b, const struct cpu_call *calls, size_t count) {
  struct cpu_message *next = b->messages;
  uint64_t *number = b->numbers;
  for (size_t i = 0; i < count; i++) {
    if (!is_ours(&calls[i], b->comm)) continue;
    cpu_p2p_expand(b->comm, &calls[i].op, next);
    next += cpu_p2p_count(b->comm, &calls[i].op);
    *number++ = calls[i].op.number;
    add_stream(b, calls[i].stream);
  }
}

ncclResult_t cpu_batch_create(ncclComm_t comm, const struct cpu_call *calls, size_t count,
                              struct cpu_batch **batch) {
  struct cpu_batch *b = calloc(1, sizeof *b);
  *batch = NULL;
  if (!b) return cpu_fail(ncclSystemError, "out of memory");
  *b = (struct cpu_batch){.comm = comm, .references = 1};
  pthread_mutex_init(&b->lock, NULL);
  pthread_cond_init(&b->moved, NULL);
  cpu_comm_retain(comm);
  ncclResult_t rc;
  if (has_memory(b, calls, count)) {
    fill(b, calls, count);
    rc = cpu_p2p_check(comm, b->messages, b->message_count);
  } else {
    rc = cpu_fail(ncclSystemError, "out of memory");
  }
  if (rc)
    release_batch(b);
  else
    *batch = b;
  return rc;
}

/* With several streams, all must be enqueued now: a follower that a graph runs later, or
   on the leader's own worker, would wait for ever. */
static ncclResult_t check_entered(const struct cpu_batch *b) {
  for (size_t i = 0; i < b->member_count && b->member_count > 1; i++) {
    if (b->members[i].entered) continue;
    return cpu_fail(
      ncclInvalidUsage,
      "the sends and receives of one group are on several streams, and one of "
      "them is captured");
  }
  return ncclSuccess;
}

static void kill(struct cpu_batch *b) {
  pthread_mutex_lock(&b->lock);
  b->dead = true;
  pthread_cond_broadcast(&b->moved);
  pthread_mutex_unlock(&b->lock);
}

ncclResult_t cpu_batch_launch(struct cpu_batch *b) {
  ncclResult_t rc = ncclSuccess;
  if (cpu_adversary_hold_ns() && cpu_adversary_is_idle(b->comm, b->members[0].stream)) {
    cpu_adversary_spoil_messages(b->messages, b->message_count);
  }
  for (size_t i = 0; i < b->member_count && !rc; i++) {
    atomic_fetch_add(&b->references, 1);
    rc =
      cpu_enqueue_submit(b->comm->device, b->members[i].stream, &b->members[i].launch.task);
  }
  if (!rc) rc = check_entered(b);
  if (rc) kill(b);
  release_batch(b);
  return rc;
}

void cpu_batch_discard(struct cpu_batch *b) {
  release_batch(b);
}
