#ifndef HOST_CPU_SPLIT_H
#define HOST_CPU_SPLIT_H

/* Communicators made from a parent's ranks. The members of coll_api. */

#include "host/abi_nccl.h"

ncclResult_t cpu_split(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                       ncclConfig_t *config);
ncclResult_t cpu_split_shrink(ncclComm_t comm, int *exclude, int exclude_count,
                              ncclComm_t *newcomm, ncclConfig_t *config, int flags);

#endif
