#ifndef HOST_CUDA_COMPOSE_H
#define HOST_CUDA_COMPOSE_H

/* The collectives that NCCL has from 2.28 on, from sends and receives in one group, as
   NCCL's manual shows them. */

#include "host/abi_cuda.h"
#include "host/abi_nccl.h"

ncclResult_t compose_all_to_all(const void *send, void *recv, size_t count,
                                ncclDataType_t type, ncclComm_t comm, CUstream stream);
ncclResult_t compose_gather(const void *send, void *recv, size_t count, ncclDataType_t type,
                            int root, ncclComm_t comm, CUstream stream);
ncclResult_t compose_scatter(const void *send, void *recv, size_t count,
                             ncclDataType_t type, int root, ncclComm_t comm,
                             CUstream stream);

#endif
