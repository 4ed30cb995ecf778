#ifndef HOST_CPU_PLAN_H
#define HOST_CPU_PLAN_H

/* The pieces in which a channel moves its part. All ranks plan alike, and the pieces decide
   the order of the sums: docs/architecture.md says how. */

#include "host/cpu/choice.h"

struct cpu_plan {
  size_t slice_count; /* elements that travel in one slot */
  size_t chunk_count; /* elements that a ring moves at a time: whole slices */
};

struct cpu_plan cpu_plan_make(const struct ncclComm *comm, const struct cpu_op *op,
                              const struct cpu_choice *choice, struct cpu_part part);

#endif
