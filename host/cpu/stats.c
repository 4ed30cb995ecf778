#include "host/cpu/stats.h"

/* There is one writer at a time; readers may come at any time. */
static void add(uint64_t *total, uint64_t more) {
  __atomic_store_n(total, *total + more, __ATOMIC_RELAXED);
}

void cpu_stats_add(struct cpu_stats *total, const struct cpu_stats *more) {
  add(&total->bytes_sent, more->bytes_sent);
  add(&total->bytes_received, more->bytes_received);
  add(&total->wire_sent, more->wire_sent);
  add(&total->bytes_reduced, more->bytes_reduced);
  add(&total->steps_sent, more->steps_sent);
  add(&total->steps_received, more->steps_received);
}

static uint64_t get(const uint64_t *total) {
  return __atomic_load_n(total, __ATOMIC_RELAXED);
}

struct cpu_stats cpu_stats_read(const struct cpu_stats *total) {
  return (struct cpu_stats){
    .bytes_sent = get(&total->bytes_sent),
    .bytes_received = get(&total->bytes_received),
    .wire_sent = get(&total->wire_sent),
    .bytes_reduced = get(&total->bytes_reduced),
    .steps_sent = get(&total->steps_sent),
    .steps_received = get(&total->steps_received),
  };
}
