#include "host/cpu/lines.h"
#include "host/cpu/fail.h"
#include "host/cpu/slot.h"
#include "host/cpu/wait.h"

/* Data goes through in blocks that stay in the first-level cache, so that a receiver works
   on the first while the sender writes the next: whole lines of any protocol, and whole
   elements of any type. */
enum { LINE = 120, BLOCK = 32 * LINE };

/* Up to here a receiver looks at the lines themselves. */
enum { DIRECT = 512 };

struct passage {
  struct cpu_primitives *p;
  const struct cpu_chunk *slice;
  const struct cpu_lines *lines;
  uint32_t signature;
  size_t at, bytes; /* the block within the slice */
};

static char *find_lines(const struct passage *t, const struct cpu_connection *c) {
  char *slot = cpu_slot_data(c, t->p->protocol->number);
  return slot + t->at / t->lines->data * t->lines->wire;
}

static uint64_t find_flag(const struct passage *t, const struct cpu_connection *c) {
  return t->lines->flag(c, t->signature);
}

/* The sender is done with a slot whose lines are not what is expected. */
static void fail_strange(const struct passage *t, const struct cpu_connection *c) {
  if (!cpu_expect_bytes(t->p, c, t->slice->count * t->p->element)) return;
  t->p->rc = cpu_fail(ncclInvalidUsage,
                      "rank %d is in another operation than rank %d: are the operation, "
                      "count, type and root the same on all ranks?",
                      c->peer,
                      t->p->comm->rank);
}

static bool unpack(const struct passage *t, const struct cpu_connection *c, char *dst) {
  return t->lines->unpack(dst, find_lines(t, c), t->bytes, find_flag(t, c)) == t->bytes;
}

/* Whoever looks at a line takes it from its writer's cache. So of a long block we do not
   look at the line that is being written, but at the last one; and then fetch all at once.
   A short one is there soon: looking at it is the quickest. */
static bool has_come(const struct passage *t, const struct cpu_connection *c) {
  if (t->bytes <= DIRECT) return true;
  const struct cpu_lines *lines = t->lines;
  const char *first = find_lines(t, c);
  size_t before = (t->bytes - 1) / lines->data, rest = t->bytes - before * lines->data;
  const char *last = first + before * lines->wire;
  char data[LINE];
  if (lines->unpack(data, last, rest, find_flag(t, c)) != rest) return false;
  for (const char *at = first; at < last; at += CPU_LINE) __builtin_prefetch(at);
  return true;
}

/* After the last line the others may still come: nothing orders them. */
static bool receive(const struct passage *t, struct cpu_connection *c, char *dst) {
  if (has_come(t, c) && unpack(t, c, dst)) return true;
  struct cpu_wait w = cpu_wait_begin(t->p->comm, t->p->channel, &c->peer, 1);
  for (bool is_filled = false; !has_come(t, c) || !unpack(t, c, dst);) {
    if (is_filled) fail_strange(t, c);
    if (!t->p->rc) t->p->rc = cpu_wait_more(&w);
    if (t->p->rc) break;
    is_filled = w.armed && cpu_slot_is_filled(c);
  }
  cpu_wait_end(&w);
  return !t->p->rc;
}

/* A block on its way: what is received goes straight to dst if nothing is added to it, and
   what is sent straight from src if nothing is done to it. */
static void pass_block(const struct passage *t) {
  struct cpu_primitives *p = t->p;
  const struct cpu_chunk *slice = t->slice;
  _Alignas(CPU_LINE) char came[CPU_FAN][BLOCK], result[BLOCK];
  struct cpu_operands what = {.pre = slice->src != NULL, .post = slice->post};
  char *dst = slice->dst ? (char *)slice->dst + t->at : result;
  bool is_alone = !slice->src && p->nrecv == 1;
  if (slice->src) what.src[what.nsrc++] = (const char *)slice->src + t->at;
  for (int i = 0; slice->recv && i < p->nrecv; i++) {
    char *to = is_alone ? dst : came[i];
    if (!receive(t, p->recv[i], to)) return;
    what.src[what.nsrc++] = to;
  }
  bool is_plain = what.nsrc == 1 && !slice->dst && !(what.pre && p->redop->pre_multiply);
  what.dst[what.ndst++] = dst;
  if (!is_plain) cpu_redop_apply(p->redop, &what, t->bytes / p->element, p->element);
  for (int i = 0; slice->send && i < p->nsend; i++) {
    struct cpu_connection *c = p->send[i];
    t->lines->pack(
      find_lines(t, c), is_plain ? what.src[0] : dst, t->bytes, find_flag(t, c));
  }
}

/* So that ranks that disagree about an operation do not take each other's lines. */
static uint32_t sign(const struct cpu_primitives *p, size_t bytes) {
  return (p->signature ^ (uint32_t)bytes) * 0x9e3779b1u;
}

void cpu_lines_transfer(struct cpu_primitives *p, const struct cpu_chunk *slice,
                        const struct cpu_lines *lines) {
  size_t bytes = slice->count * p->element;
  struct passage t = {p, slice, lines, sign(p, bytes), 0, 0};
  for (; t.at < bytes && !p->rc; t.at += t.bytes) {
    t.bytes = bytes - t.at < BLOCK ? bytes - t.at : BLOCK;
    pass_block(&t);
  }
}
