#ifndef HOST_CPU_BATCH_H
#define HOST_CPU_BATCH_H

/* The sends and receives of one communicator in one group: they run as one operation, at
   the point where all of their streams have come to it, and none goes on before its end. */

#include "host/cpu/enqueue.h"

/* From the communicator's calls among `calls`; NULL in *batch if there are none. */
ncclResult_t cpu_batch_create(ncclComm_t comm, const struct cpu_call *calls, size_t count,
                              struct cpu_batch **batch);

/* Submits its tasks; either this or cpu_batch_discard ends the caller's use of it. */
ncclResult_t cpu_batch_launch(struct cpu_batch *batch);
void cpu_batch_discard(struct cpu_batch *batch);

#endif
