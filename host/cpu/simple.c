/* The Simple protocol: plain data in slots, a counter at each end of the ring of slots. */

#include "host/cpu/fail.h"
#include "host/cpu/primitives.h"
#include "host/cpu/slot.h"
#include "host/cpu/wait.h"

static void await(struct cpu_primitives *p, struct cpu_connection *c,
                  bool (*is_ready)(struct cpu_connection *)) {
  if (is_ready(c)) return;
  struct cpu_wait w = cpu_wait_begin(p->comm, p->channel, &c->peer, 1);
  while (!is_ready(c) && !(p->rc = cpu_wait_more(&w))) {
  }
  cpu_wait_end(&w);
}

/* Ranks that disagree about an operation would overrun each other's buffers. */
static void check_bytes(struct cpu_primitives *p, const struct cpu_connection *c,
                        size_t expected) {
  uint32_t came = cpu_slot_bytes(c);
  if (came == expected) return;
  p->rc = cpu_fail(ncclInvalidUsage,
                   "rank %d sent %u bytes where rank %d expects %zu: are the operation, "
                   "count, type and root the same on all ranks?",
                   c->peer,
                   came,
                   p->comm->rank,
                   expected);
}

static void await_all(struct cpu_primitives *p, const struct cpu_chunk *chunk,
                      size_t bytes) {
  for (int i = 0; chunk->recv && i < p->nrecv && !p->rc; i++) {
    await(p, p->recv[i], cpu_slot_is_filled);
    if (!p->rc) check_bytes(p, p->recv[i], bytes);
  }
  for (int i = 0; chunk->send && i < p->nsend && !p->rc; i++) {
    await(p, p->send[i], cpu_slot_is_free);
  }
}

/* Moves what fits into one slot of each connection. */
static void move_slice(struct cpu_primitives *p, const struct cpu_chunk *chunk, size_t at,
                       size_t count) {
  size_t bytes = count * p->element;
  struct cpu_operands what = {.pre = chunk->src != NULL, .post = chunk->post};
  await_all(p, chunk, bytes);
  if (p->rc) return;
  if (chunk->src) what.src[what.nsrc++] = (const char *)chunk->src + at * p->element;
  if (chunk->dst) what.dst[what.ndst++] = (char *)chunk->dst + at * p->element;
  for (int i = 0; chunk->recv && i < p->nrecv; i++) {
    what.src[what.nsrc++] = cpu_slot_data(p->recv[i]);
  }
  for (int i = 0; chunk->send && i < p->nsend; i++) {
    what.dst[what.ndst++] = cpu_slot_data(p->send[i]);
  }
  /* Straight from slot and input into slot and output: no buffer in between. */
  cpu_redop_apply(p->redop, &what, count, p->element);
  for (int i = 0; chunk->send && i < p->nsend; i++) {
    cpu_slot_fill(p->send[i], (uint32_t)bytes);
  }
  for (int i = 0; chunk->recv && i < p->nrecv; i++) cpu_slot_empty(p->recv[i]);
}

static void move(struct cpu_primitives *p, const struct cpu_chunk *chunk) {
  for (size_t at = 0; at < chunk->count && !p->rc; at += p->slice_count) {
    size_t left = chunk->count - at;
    move_slice(p, chunk, at, left < p->slice_count ? left : p->slice_count);
  }
}

const struct cpu_protocol cpu_simple = {"Simple", move};
