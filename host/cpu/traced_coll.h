#ifndef HOST_CPU_TRACED_COLL_H
#define HOST_CPU_TRACED_COLL_H

/* The collectives' part of a trace: what the running task does, under the names that NCCL's
   kernels have. */

#include "host/cpu/choice.h"

/* `choice` NULL: a single rank's copy, which needs no algorithm. */
void cpu_traced_collective(const struct cpu_op *op, const struct cpu_choice *choice);

/* Sends and receives of one group. */
void cpu_traced_messages(size_t count);

#endif
