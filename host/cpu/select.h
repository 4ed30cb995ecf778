#ifndef HOST_CPU_SELECT_H
#define HOST_CPU_SELECT_H

/* Which algorithm and protocol carries an operation, on which channels: decided when it is
   enqueued, as in NCCL, so that a plugin can be steered from call to call. */

#include "host/cpu/choice.h"

/* Reads NCCL_ALGO for a new communicator: "Ring", "Tree,Ring" or "^Tree". A name that NCCL
   does not have is ncclInvalidUsage. */
ncclResult_t cpu_select_configure(ncclComm_t comm);

/* All ranks choose alike: only what they all know decides. ncclInvalidUsage if NCCL_ALGO
   left no algorithm that can do it. */
ncclResult_t cpu_select(ncclComm_t comm, const struct cpu_op *op,
                        struct cpu_choice *choice);

#endif
