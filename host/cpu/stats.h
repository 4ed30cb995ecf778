#ifndef HOST_CPU_STATS_H
#define HOST_CPU_STATS_H

/* What a rank has moved for collectives: of the messages, without flags. */

#include <stdint.h>

struct cpu_stats {
  uint64_t bytes_sent, bytes_received;
  uint64_t wire_sent;                  /* with the protocols' flags */
  uint64_t bytes_reduced;              /* results of additions and the like */
  uint64_t steps_sent, steps_received; /* slots */
};

/* One thread at a time adds; any may read. */
void cpu_stats_add(struct cpu_stats *total, const struct cpu_stats *more);
struct cpu_stats cpu_stats_read(const struct cpu_stats *total);

#endif
