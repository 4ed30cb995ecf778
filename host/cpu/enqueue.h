#ifndef HOST_CPU_ENQUEUE_H
#define HOST_CPU_ENQUEUE_H

/* Operations as tasks on streams. */

#include "host/cpu/choice.h"
#include "host/cpu/stream.h"

struct cpu_call {
  ncclComm_t comm;
  CUstream stream;
  struct cpu_op op;
  struct cpu_choice choice; /* for a collective */
  struct cpu_batch *batch;  /* for the group that holds the call */
};

/* How a communicator's task begins, whatever it does. */
struct cpu_comm_task {
  struct cpu_task task;
  ncclComm_t comm;
};

/* The task's `enter`: takes the communicator's next ticket. */
uint64_t cpu_enqueue_ticket(struct cpu_task *task);

ncclResult_t cpu_enqueue_submit(CUdevice device, CUstream stream, struct cpu_task *task);

/* Tells the host that a call is complete. */
void cpu_enqueue_complete(ncclComm_t comm, uint64_t number);

/* One collective (below CPU_MODELLED), as chosen. */
ncclResult_t cpu_enqueue_collective(const struct cpu_call *call);

#endif
