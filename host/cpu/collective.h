#ifndef HOST_CPU_COLLECTIVE_H
#define HOST_CPU_COLLECTIVE_H

/* Runs one of the functions below CPU_MODELLED as chosen; returns when this rank's part is
   done. The choice is not looked at if there is nothing to move or nobody to move it to. */

#include "host/cpu/choice.h"

ncclResult_t cpu_collective_run(ncclComm_t comm, const struct cpu_op *op,
                                const struct cpu_choice *choice);

#endif
