#include "host/cpu/watch.h"

_Static_assert((int)CPU_FAN <= (int)COLL_PEERS, "a step has room for its peers");

static unsigned find_verbs(const struct cpu_chunk *chunk) {
  unsigned verbs = 0;
  if (chunk->recv) verbs |= COLL_RECV;
  if (chunk->recv && chunk->src) verbs |= COLL_REDUCE;
  if (chunk->dst && (chunk->src || chunk->send)) verbs |= COLL_COPY;
  if (chunk->send) verbs |= COLL_SEND;
  return verbs;
}

static bool is_within(const void *buffer, const void *at, size_t bytes) {
  const char *first = buffer, *here = at;
  return first && here && here >= first && here < first + bytes;
}

static size_t message_bytes(const struct cpu_primitives *p) {
  const enum cpu_function f = p->op->function;
  const bool has_blocks = f == CPU_REDUCE_SCATTER || f == CPU_ALL_GATHER;
  return p->op->count * p->element * (has_blocks ? (size_t)p->comm->nranks : 1);
}

/* Counted in the buffer that holds a block a rank, where there is one. */
static int64_t find_offset(const struct cpu_primitives *p, const struct cpu_chunk *chunk) {
  const struct cpu_op *op = p->op;
  const bool by_input = op->function == CPU_REDUCE_SCATTER;
  const size_t bytes = message_bytes(p);
  if (!by_input && is_within(op->recv, chunk->dst, bytes)) {
    return (const char *)chunk->dst - (const char *)op->recv;
  }
  if (is_within(op->send, chunk->src, bytes)) {
    return (const char *)chunk->src - (const char *)op->send;
  }
  return COLL_NOWHERE;
}

static void take_cargo(struct cpu_primitives *p, struct coll_step *s) {
  struct cpu_cargo *cargo = &p->course->cargo;
  if (!cargo->pieces) return;
  s->offset = cargo->offset;
  s->stride = cargo->stride;
  s->pieces = cargo->pieces;
  if (cargo->reduces) s->verbs |= COLL_REDUCE;
  *cargo = (struct cpu_cargo){0};
}

struct coll_step cpu_watch_enter(struct cpu_primitives *p, const struct cpu_chunk *chunk) {
  struct coll_step s = {
    .call = p->op->number,
    .offset = find_offset(p, chunk),
    .wrap = (int64_t)message_bytes(p),
    .pieces = 1,
    .bytes = chunk->count * p->element,
    .rank = p->comm->rank,
    .channel = p->channel,
    .step = p->course->next++,
    .function = p->op->function,
    .algorithm = p->course->algorithm,
    .protocol = p->course->protocol,
    .verbs = find_verbs(chunk),
    .nfrom = chunk->recv ? p->nrecv : 0,
    .nto = chunk->send ? p->nsend : 0,
  };
  for (int i = 0; i < s.nfrom; i++) s.from[i] = p->recv[i]->peer;
  for (int i = 0; i < s.nto; i++) s.to[i] = p->send[i]->peer;
  take_cargo(p, &s);
  cpu_steps_enter(&s);
  return s;
}
