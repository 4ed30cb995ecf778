#include "host/cpu/slot.h"
#include "host/cpu/wait.h"

/* The other end's counter only grows, so what was seen of it stays true. */
bool cpu_slot_is_free(struct cpu_connection *c) {
  if (c->step < c->seen + CPU_STEPS) return true;
  c->seen = atomic_load(&c->link->head);
  return c->step < c->seen + CPU_STEPS;
}

bool cpu_slot_is_drained(struct cpu_connection *c) {
  c->seen = atomic_load(&c->link->head);
  return c->step == c->seen;
}

bool cpu_slot_is_filled(struct cpu_connection *c) {
  if (c->step < c->seen) return true;
  c->seen = atomic_load(&c->link->tail);
  return c->step < c->seen;
}

char *cpu_slot_data(const struct cpu_connection *c, int protocol) {
  const struct cpu_buffers *b = c->buffers;
  return c->slots + b->offset[protocol] + c->step % CPU_STEPS * b->slot_bytes[protocol];
}

uint32_t cpu_slot_bytes(const struct cpu_connection *c) {
  return c->link->bytes[c->step % CPU_STEPS];
}

uint16_t cpu_slot_mark(const struct cpu_connection *c) {
  return c->link->marks[c->step % CPU_STEPS];
}

void cpu_slot_fill(struct cpu_connection *c, uint32_t bytes, uint16_t mark) {
  c->link->bytes[c->step % CPU_STEPS] = bytes;
  c->link->marks[c->step % CPU_STEPS] = mark;
  atomic_store_explicit(&c->link->tail, ++c->step, memory_order_release);
}

void cpu_slot_empty(struct cpu_connection *c) {
  atomic_store_explicit(&c->link->head, ++c->step, memory_order_release);
}

/* The fence keeps the bells' looks at their sleepers behind the counters' stores: a sleeper
   that misses the counter has announced itself, and is rung for. */
void cpu_slot_tell(struct cpu_connection *const *ends, int count) {
  cpu_fence();
  for (int i = 0; i < count; i++) cpu_bell_ring(ends[i]->bell);
}
