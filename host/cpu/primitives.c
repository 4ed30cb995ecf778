#include "host/cpu/primitives.h"
#include "host/cpu/fail.h"
#include "host/cpu/slot.h"
#include "host/cpu/wait.h"
#include "host/cpu/watch.h"

bool cpu_await(struct cpu_primitives *p, struct cpu_connection *c,
               bool (*is_ready)(struct cpu_connection *)) {
  if (is_ready(c)) return true;
  struct cpu_wait w = cpu_wait_begin(p->comm, p->channel, &c->peer, 1);
  while (!is_ready(c) && !(p->rc = cpu_wait_more(&w))) {
  }
  cpu_wait_end(&w);
  return !p->rc;
}

static uint16_t mark_of(const struct cpu_primitives *p) {
  return (uint16_t)(p->signature * 0x9e3779b1u >> 16);
}

bool cpu_expect_bytes(struct cpu_primitives *p, const struct cpu_connection *c,
                      size_t expected) {
  uint32_t came = cpu_slot_bytes(c);
  if (came == expected && cpu_slot_mark(c) == mark_of(p)) return true;
  if (came == expected) {
    p->rc = cpu_fail(ncclInvalidUsage,
                     "rank %d is in another operation than rank %d, or carries it in "
                     "another way: are the operation, count, type and root, NCCL_ALGO, "
                     "NCCL_PROTO and the tuner plugin the same on all ranks?",
                     c->peer,
                     p->comm->rank);
    return false;
  }
  p->rc = cpu_fail(ncclInvalidUsage,
                   "rank %d sent %u bytes where rank %d expects %zu: are the operation, "
                   "count, type and root the same on all ranks?",
                   c->peer,
                   came,
                   p->comm->rank,
                   expected);
  return false;
}

static void count_slice(struct cpu_primitives *p, int nrecv, int nsend, size_t bytes,
                        bool has_input) {
  const struct cpu_protocol *protocol = p->protocol;
  size_t lines = (bytes + protocol->line_data - 1) / protocol->line_data;
  size_t operands = (size_t)nrecv + has_input;
  p->stats.bytes_received += (size_t)nrecv * bytes;
  p->stats.steps_received += (size_t)nrecv;
  p->stats.bytes_sent += (size_t)nsend * bytes;
  p->stats.wire_sent += (size_t)nsend * lines * protocol->line_wire;
  p->stats.steps_sent += (size_t)nsend;
  if (operands > 1) p->stats.bytes_reduced += (operands - 1) * bytes;
}

/* Hands the slots of a slice on. */
static void hand_over(struct cpu_primitives *p, int nrecv, int nsend, size_t bytes) {
  for (int i = 0; i < nsend; i++) cpu_slot_fill(p->send[i], (uint32_t)bytes, mark_of(p));
  for (int i = 0; i < nrecv; i++) cpu_slot_empty(p->recv[i]);
  cpu_fence();
  for (int i = 0; i < nsend; i++) cpu_bell_ring(p->send[i]->bell);
  for (int i = 0; i < nrecv; i++) cpu_bell_ring(p->recv[i]->bell);
}

static void move_slice(struct cpu_primitives *p, const struct cpu_chunk *slice) {
  int nrecv = slice->recv ? p->nrecv : 0, nsend = slice->send ? p->nsend : 0;
  size_t bytes = slice->count * p->element;
  for (int i = 0; i < nsend; i++) {
    if (!cpu_await(p, p->send[i], cpu_slot_is_free)) return;
  }
  p->protocol->transfer(p, slice);
  if (p->rc) return;
  hand_over(p, nrecv, nsend, bytes);
  count_slice(p, nrecv, nsend, bytes, slice->src != NULL);
}

static void move_slices(struct cpu_primitives *p, const struct cpu_chunk *chunk) {
  struct cpu_chunk slice = *chunk;
  for (size_t at = 0; at < chunk->count && !p->rc; at += slice.count) {
    size_t left = chunk->count - at, done = at * p->element;
    slice.count = left < p->slice_count ? left : p->slice_count;
    if (chunk->src) slice.src = (const char *)chunk->src + done;
    if (chunk->dst) slice.dst = (char *)chunk->dst + done;
    move_slice(p, &slice);
  }
}

static void move_watched(struct cpu_primitives *p, const struct cpu_chunk *chunk) {
  struct coll_step step = cpu_watch_enter(p, chunk);
  move_slices(p, chunk);
  if (!p->rc) cpu_steps_leave(&step);
}

/* An empty chunk is skipped on both sides alike: its count follows from the call. */
static void move(struct cpu_primitives *p, const struct cpu_chunk *chunk) {
  if (p->rc || !chunk->count) return;
  if (atomic_load_explicit(&cpu_steps_watched, memory_order_relaxed))
    move_watched(p, chunk);
  else
    move_slices(p, chunk);
}

void cpu_send(struct cpu_primitives *p, const void *src, size_t count) {
  move(p, &(struct cpu_chunk){src, NULL, count, .send = true});
}

void cpu_copy_send(struct cpu_primitives *p, const void *src, void *dst, size_t count) {
  move(p, &(struct cpu_chunk){src, dst, count, .send = true});
}

void cpu_recv(struct cpu_primitives *p, void *dst, size_t count) {
  move(p, &(struct cpu_chunk){NULL, dst, count, .recv = true});
}

void cpu_recv_copy_send(struct cpu_primitives *p, void *dst, size_t count) {
  move(p, &(struct cpu_chunk){NULL, dst, count, .recv = true, .send = true});
}

void cpu_recv_reduce_send(struct cpu_primitives *p, const void *src, size_t count) {
  move(p, &(struct cpu_chunk){src, NULL, count, .recv = true, .send = true});
}

void cpu_recv_reduce_copy(struct cpu_primitives *p, const void *src, void *dst,
                          size_t count) {
  move(p, &(struct cpu_chunk){src, dst, count, .recv = true, .post = true});
}

void cpu_recv_reduce_copy_send(struct cpu_primitives *p, const void *src, void *dst,
                               size_t count) {
  move(p, &(struct cpu_chunk){src, dst, count, .recv = true, .send = true, .post = true});
}
