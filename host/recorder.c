#include "host/recorder.h"

#include "host/recorder_ring.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

/* One recorder a process; a rank's is replaced by its share of the world's memory. */
static struct recorder_ring private_ring;
static struct recorder_ring *ring = &private_ring;

void recorder_attach(struct recorder_ring *shared) {
  ring = shared;
}

const struct recorder_ring *recorder_own(void) {
  return ring;
}

/* To a few milliseconds: people read it as "how long ago", and it is on the hot path. */
static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t get(const uint64_t *at) {
  return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static void set(uint64_t *at, uint64_t value) {
  __atomic_store_n(at, value, __ATOMIC_RELAXED);
}

static uintptr_t held_by(const struct recorder_comm *c) {
  return __atomic_load_n(&c->handle, __ATOMIC_ACQUIRE);
}

/* The watchdog only asks whether it moved: an increment that a race loses does no harm. */
static void made_progress(void) {
  set(&ring->progress, get(&ring->progress) + 1);
}

static void raise_to(uint64_t *at, uint64_t value) {
  uint64_t old = get(at);
  while (old < value && !__atomic_compare_exchange_n(
                          at, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

static struct recorder_comm *oldest_comm(void) {
  struct recorder_comm *oldest = &ring->comms[0];
  for (int i = 1; i < RECORDER_COMMS; i++) {
    if (get(&ring->comms[i].enqueued_ns) < get(&oldest->enqueued_ns)) {
      oldest = &ring->comms[i];
    }
  }
  return oldest;
}

/* A worker may complete a communicator's first operation before its enqueue is recorded,
   so either side may be the one to take the slot. */
static struct recorder_comm *comm_of(ncclComm_t comm, bool is_enqueue) {
  for (int i = 0; i < RECORDER_COMMS; i++) {
    struct recorder_comm *c = &ring->comms[i];
    uintptr_t free_slot = 0;
    uintptr_t held = held_by(c);
    if (held == (uintptr_t)comm) return c;
    if (held == 0 && __atomic_compare_exchange_n(&c->handle,
                                                 &free_slot,
                                                 (uintptr_t)comm,
                                                 false,
                                                 __ATOMIC_ACQ_REL,
                                                 __ATOMIC_ACQUIRE)) {
      set(&c->number, __atomic_fetch_add(&ring->comm_count, 1, __ATOMIC_RELAXED));
      return c;
    }
    if (free_slot == (uintptr_t)comm) return c;
  }
  return is_enqueue ? oldest_comm() : NULL;
}

/* A new communicator in the place of another: the oldest, or one that had its address. */
static void start_over(struct recorder_comm *c, ncclComm_t comm) {
  __atomic_store_n(&c->handle, (uintptr_t)comm, __ATOMIC_RELEASE);
  set(&c->number, __atomic_fetch_add(&ring->comm_count, 1, __ATOMIC_RELAXED));
  set(&c->enqueued, 0);
  set(&c->completed, 0);
}

void recorder_enqueue(const struct recorder_op *op) {
  struct recorder_comm *c = comm_of(op->comm, true);
  bool is_new = held_by(c) != (uintptr_t)op->comm || op->op_count < get(&c->enqueued);
  if (is_new) start_over(c, op->comm);
  uint64_t now = now_ns();
  struct recorder_record r = {
    .op_count = op->op_count,
    .count = op->count,
    .enqueued_ns = now,
    .stream = (uint64_t)(uintptr_t)op->stream,
    .type = (int32_t)op->type,
    .peer = op->peer,
    .comm = (uint32_t)get(&c->number),
  };
  memccpy(r.function, op->function, 0, sizeof r.function - 1);
  uint64_t head = get(&ring->head);
  ring->ops[head % RECORDER_OPS] = r;
  __atomic_store_n(&ring->head, head + 1, __ATOMIC_RELEASE);
  set(&c->enqueued, op->op_count + 1);
  set(&c->enqueued_ns, now);
  made_progress();
}

void recorder_complete(ncclComm_t comm, uint64_t op_count) {
  struct recorder_comm *c = comm_of(comm, false);
  if (!c) return;
  raise_to(&c->completed, op_count + 1);
  set(&c->completed_ns, now_ns());
  made_progress();
}

static struct recorder_comm *comm_number(uint64_t number) {
  for (int i = 0; i < RECORDER_COMMS; i++) {
    struct recorder_comm *c = &ring->comms[i];
    if (held_by(c) && get(&c->number) == number) return c;
  }
  return NULL; /* its slot has gone to another */
}

/* Is the record complete, after those of `stream` have been marked so? */
static bool settle(const struct recorder_record *r, CUstream stream, uint64_t now) {
  struct recorder_comm *c = comm_number(r->comm);
  if (!c) return true;
  if (r->stream == (uint64_t)(uintptr_t)stream && get(&c->completed) <= r->op_count) {
    raise_to(&c->completed, r->op_count + 1);
    set(&c->completed_ns, now);
  }
  return get(&c->completed) > r->op_count;
}

void recorder_complete_stream(CUstream stream) {
  uint64_t head = get(&ring->head), from = get(&ring->settled), now = now_ns();
  if (head - from > RECORDER_OPS) from = head - RECORDER_OPS;
  uint64_t oldest_pending = head;
  for (uint64_t i = head; i > from; i--) {
    if (!settle(&ring->ops[(i - 1) % RECORDER_OPS], stream, now)) oldest_pending = i - 1;
  }
  set(&ring->settled, oldest_pending);
  made_progress();
}

void recorder_wait(const char *what) {
  if (what) {
    char *end = memccpy(ring->waiting, what, 0, sizeof ring->waiting);
    if (!end) ring->waiting[sizeof ring->waiting - 1] = 0;
  }
  __atomic_store_n(&ring->waiting_since_ns, what ? now_ns() : 0, __ATOMIC_RELEASE);
  made_progress();
}
