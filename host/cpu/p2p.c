#include "host/cpu/p2p.h"
#include "host/cpu/adversary.h"
#include "host/cpu/algorithm.h"
#include "host/cpu/comm.h"
#include "host/cpu/fail.h"
#include "host/cpu/slot.h"
#include "host/cpu/steps.h"
#include "host/cpu/wait.h"
#include "host/dtype.h"

#include <stdlib.h>
#include <string.h>

#define SLICE_MIN ((size_t)8 << 10)

/* The messages that are next in line: at most one a peer and direction. */
struct front {
  ncclComm_t comm;
  struct cpu_message **heads;
  int *peers; /* of the heads, for cpu_wait */
  int count;
};

/* So that the receiver can start early, a message travels in at least four slots, unless
   these would be tiny. */
static size_t choose_slice(const struct cpu_message *m, size_t slot_bytes) {
  size_t slice = m->bytes / 4 < SLICE_MIN ? SLICE_MIN : m->bytes / 4;
  return slice < slot_bytes ? slice : slot_bytes;
}

/* True: the message is complete. */
static bool push(struct cpu_message *m, struct cpu_connection *c) {
  size_t left = m->bytes - m->done,
         slice = choose_slice(m, c->buffers->slot_bytes[CPU_SIMPLE]);
  size_t bytes = left < slice ? left : slice;
  if (bytes) memcpy(cpu_slot_data(c, CPU_SIMPLE), m->buffer + m->done, bytes);
  m->done += bytes;
  bool last = m->done == m->bytes;
  cpu_slot_fill(c, (uint32_t)bytes | (last ? CPU_LINK_LAST : 0), 0);
  cpu_slot_tell(&c, 1);
  return last;
}

static ncclResult_t pull(struct cpu_message *m, struct cpu_connection *c, bool *complete) {
  uint32_t word = cpu_slot_bytes(c), bytes = word & ~CPU_LINK_LAST;
  size_t left = m->bytes - m->done;
  *complete = word & CPU_LINK_LAST;
  if (bytes > left || *complete != (bytes == left)) {
    return cpu_fail(ncclInvalidUsage,
                    "the message from rank %d is %s than the %zu bytes that are received",
                    m->peer,
                    bytes < left ? "shorter" : "longer",
                    m->bytes);
  }
  if (bytes) memcpy(m->buffer + m->done, cpu_slot_data(c, CPU_SIMPLE), bytes);
  m->done += bytes;
  cpu_slot_empty(c);
  cpu_slot_tell(&c, 1);
  return ncclSuccess;
}

static ncclResult_t move(struct cpu_message *m, struct cpu_connection *c, bool *complete) {
  if (!m->is_send) return pull(m, c, complete);
  *complete = push(m, c);
  return ncclSuccess;
}

static ncclResult_t move_watched(struct cpu_message *m, struct cpu_connection *c, int rank,
                                 bool *complete) {
  struct coll_step s = {
    .call = m->call,
    .offset = (int64_t)m->done,
    .rank = rank,
    .step = m->step++,
    .function = m->function,
    .algorithm = -1,
    .protocol = CPU_SIMPLE,
    .verbs = m->is_send ? COLL_SEND : COLL_RECV,
    .nfrom = !m->is_send,
    .nto = m->is_send,
  };
  *(m->is_send ? s.to : s.from) = m->peer;
  cpu_steps_enter(&s);
  const ncclResult_t rc = move(m, c, complete);
  s.bytes = m->done - (size_t)s.offset;
  if (!rc) cpu_steps_leave(&s);
  return rc;
}

/* Moves one slot of a message if there is one to move. */
static ncclResult_t advance(struct cpu_message *m, ncclComm_t comm, bool *moved,
                            bool *complete) {
  struct cpu_connection *c =
    cpu_connection_to(comm, CPU_LINK_P2P, m->is_send ? CPU_SEND : CPU_RECV, 0, m->peer);
  *moved = m->is_send ? cpu_slot_is_free(c) : cpu_slot_is_filled(c);
  *complete = false;
  if (!*moved) return ncclSuccess;
  if (atomic_load_explicit(&cpu_steps_watched, memory_order_relaxed)) {
    return move_watched(m, c, comm->rank, complete);
  }
  return move(m, c, complete);
}

static void replace_head(struct front *f, int i) {
  f->heads[i] = f->heads[i]->next;
  if (f->heads[i]) return;
  f->count--;
  f->heads[i] = f->heads[f->count];
  f->peers[i] = f->peers[f->count];
}

/* One slot of every message in front. */
static ncclResult_t sweep(struct front *f, bool *any) {
  *any = false;
  for (int i = 0; i < f->count;) {
    bool moved, complete;
    ncclResult_t rc = advance(f->heads[i], f->comm, &moved, &complete);
    if (rc) return rc;
    *any = *any || moved;
    if (complete)
      replace_head(f, i);
    else
      i++;
  }
  return ncclSuccess;
}

static ncclResult_t progress(struct front *f) {
  ncclResult_t rc = ncclSuccess;
  while (f->count > 0 && !rc) {
    bool any = false;
    struct cpu_wait w = cpu_wait_begin(f->comm, 0, f->peers, f->count);
    while (!(rc = sweep(f, &any)) && !any && !(rc = cpu_wait_more(&w))) {
    }
    cpu_wait_end(&w);
  }
  return rc;
}

/* NCCL does not promise that a send ends before its receiver has come. */
static ncclResult_t await_receivers(ncclComm_t comm, const struct cpu_message *messages,
                                    size_t count) {
  ncclResult_t rc = ncclSuccess;
  for (size_t i = 0; i < count && !rc; i++) {
    const struct cpu_message *m = &messages[i];
    if (!m->is_send || m->peer == comm->rank) continue;
    struct cpu_connection *c = cpu_connection_to(comm, CPU_LINK_P2P, CPU_SEND, 0, m->peer);
    struct cpu_wait w = cpu_wait_begin(comm, 0, &m->peer, 1);
    while (!cpu_slot_is_drained(c) && !(rc = cpu_wait_more(&w))) {
    }
    cpu_wait_end(&w);
  }
  return rc;
}

/* Puts the messages to and from others in line. */
static void line_up(struct front *f, struct cpu_message *messages, size_t count,
                    struct cpu_message **last) {
  for (size_t i = 0; i < count; i++) {
    struct cpu_message *m = &messages[i];
    m->done = 0;
    m->step = 0;
    m->next = NULL;
    if (m->peer == f->comm->rank) continue;
    struct cpu_message **before = &last[2 * m->peer + m->is_send];
    if (*before)
      (*before)->next = m;
    else {
      f->peers[f->count] = m->peer;
      f->heads[f->count++] = m;
    }
    *before = m;
  }
}

/* The next message of the own rank to itself in one direction, or NULL. */
static const struct cpu_message *next_own(ncclComm_t comm, const struct cpu_message *m,
                                          const struct cpu_message *end, bool is_send) {
  while (m < end && (m->peer != comm->rank || m->is_send != is_send)) m++;
  return m < end ? m : NULL;
}

/* Pairs the i-th send to the own rank with its i-th receive, and copies unless `check`. */
static ncclResult_t pair_own(ncclComm_t comm, const struct cpu_message *messages,
                             size_t count, bool check) {
  const struct cpu_message *end = messages + count, *s = messages, *r = messages;
  for (;; s++, r++) {
    s = next_own(comm, s, end, true);
    r = next_own(comm, r, end, false);
    if (!s && !r) return ncclSuccess;
    if (!s || !r || s->bytes != r->bytes) {
      return cpu_fail(ncclInvalidUsage,
                      "rank %d sends to itself without a receive of the same size in the "
                      "same group, or the reverse",
                      comm->rank);
    }
    if (!check && s->bytes) memmove(r->buffer, s->buffer, s->bytes);
  }
}

ncclResult_t cpu_p2p_check(ncclComm_t comm, const struct cpu_message *messages,
                           size_t count) {
  return pair_own(comm, messages, count, true);
}

ncclResult_t cpu_p2p_run(ncclComm_t comm, struct cpu_message *messages, size_t count) {
  size_t n = 2 * (size_t)comm->nranks;
  struct front f = {comm, calloc(2 * n, sizeof *f.heads), calloc(n, sizeof *f.peers), 0};
  ncclResult_t rc = f.heads && f.peers ? ncclSuccess : ncclSystemError;
  if (rc) cpu_fail(rc, "out of memory");
  if (!rc) {
    line_up(&f, messages, count, f.heads + n);
    rc = pair_own(comm, messages, count, false);
  }
  if (!rc) rc = progress(&f);
  if (!rc && cpu_adversary_hold_ns()) rc = await_receivers(comm, messages, count);
  free(f.heads);
  free(f.peers);
  return rc;
}

static struct cpu_message *add(struct cpu_message *out, bool is_send, const void *buffer,
                               size_t block, int peer, size_t bytes) {
  char *at = (char *)buffer + (bytes ? block * bytes : 0);
  *out = (struct cpu_message){at, bytes, peer, is_send};
  return out + 1;
}

static void add_all(ncclComm_t comm, struct cpu_message *out, bool is_send,
                    const void *buffer, size_t bytes) {
  for (int r = 0; r < comm->nranks; r++) {
    out = add(out, is_send, buffer, (size_t)r, r, bytes);
  }
}

size_t cpu_p2p_count(ncclComm_t comm, const struct cpu_op *op) {
  size_t n = (size_t)comm->nranks;
  switch (op->function) {
    case CPU_ALL_TO_ALL: return 2 * n;
    case CPU_GATHER:
    case CPU_SCATTER: return op->root == comm->rank ? n + 1 : 1;
    default: return 1;
  }
}

void cpu_p2p_expand(ncclComm_t comm, const struct cpu_op *op, struct cpu_message *out) {
  size_t bytes = op->count * dtype_size(op->type);
  bool at_root = op->root == comm->rank;
  struct cpu_message *all = out;
  switch (op->function) {
    case CPU_SEND_TO: add(out, true, op->send, 0, op->root, bytes); break;
    case CPU_RECV_FROM: add(out, false, op->recv, 0, op->root, bytes); break;
    case CPU_GATHER:
      out = add(out, true, op->send, 0, op->root, bytes);
      if (at_root) add_all(comm, out, false, op->recv, bytes);
      break;
    case CPU_SCATTER:
      out = add(out, false, op->recv, 0, op->root, bytes);
      if (at_root) add_all(comm, out, true, op->send, bytes);
      break;
    default:
      add_all(comm, out, true, op->send, bytes);
      add_all(comm, out + comm->nranks, false, op->recv, bytes);
  }
  for (size_t i = 0; i < cpu_p2p_count(comm, op); i++) {
    all[i].function = op->function;
    all[i].call = op->number;
  }
}
