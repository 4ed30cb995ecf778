#ifndef HOST_CPU_COLLECTIVE_H
#define HOST_CPU_COLLECTIVE_H

/* Runs one of the functions below CPU_MODELLED on the calling thread, with its algorithm
   and protocol; returns when this rank's part is done. */

#include "host/cpu/op.h"

ncclResult_t cpu_collective_run(ncclComm_t comm, const struct cpu_op *op);

#endif
