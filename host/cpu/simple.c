/* The Simple protocol: plain data in slots, a counter at each end of the ring of slots. */

#include "host/cpu/primitives.h"
#include "host/cpu/slot.h"

static void transfer(struct cpu_primitives *p, const struct cpu_chunk *slice) {
  size_t bytes = slice->count * p->element;
  struct cpu_operands what = {.pre = slice->src != NULL, .post = slice->post};
  if (slice->src) what.src[what.nsrc++] = slice->src;
  if (slice->dst) what.dst[what.ndst++] = slice->dst;
  for (int i = 0; slice->recv && i < p->nrecv; i++) {
    if (!cpu_await(p, p->recv[i], cpu_slot_is_filled)) return;
    if (!cpu_expect_bytes(p, p->recv[i], bytes)) return;
    what.src[what.nsrc++] = cpu_slot_data(p->recv[i], CPU_SIMPLE);
  }
  for (int i = 0; slice->send && i < p->nsend; i++) {
    what.dst[what.ndst++] = cpu_slot_data(p->send[i], CPU_SIMPLE);
  }
  cpu_redop_apply(p->redop, &what, slice->count, p->element);
}

const struct cpu_protocol cpu_simple = {"Simple", CPU_SIMPLE, 1, 1, transfer};
