#ifndef HOST_CPU_CALL_H
#define HOST_CPU_CALL_H

/* The members of coll_api that move data: they check their arguments as NCCL does and hand
   the call to its group. */

#include "host/abi_cuda.h"
#include "host/abi_nccl.h"

ncclResult_t cpu_call_all_reduce(const void *send, void *recv, size_t count,
                                 ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                 CUstream stream);
ncclResult_t cpu_call_reduce(const void *send, void *recv, size_t count,
                             ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                             CUstream stream);
ncclResult_t cpu_call_broadcast(const void *send, void *recv, size_t count,
                                ncclDataType_t type, int root, ncclComm_t comm,
                                CUstream stream);
ncclResult_t cpu_call_reduce_scatter(const void *send, void *recv, size_t count,
                                     ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                     CUstream stream);
ncclResult_t cpu_call_all_gather(const void *send, void *recv, size_t count,
                                 ncclDataType_t type, ncclComm_t comm, CUstream stream);
ncclResult_t cpu_call_all_to_all(const void *send, void *recv, size_t count,
                                 ncclDataType_t type, ncclComm_t comm, CUstream stream);
ncclResult_t cpu_call_gather(const void *send, void *recv, size_t count,
                             ncclDataType_t type, int root, ncclComm_t comm,
                             CUstream stream);
ncclResult_t cpu_call_scatter(const void *send, void *recv, size_t count,
                              ncclDataType_t type, int root, ncclComm_t comm,
                              CUstream stream);
ncclResult_t cpu_call_send(const void *buffer, size_t count, ncclDataType_t type, int peer,
                           ncclComm_t comm, CUstream stream);
ncclResult_t cpu_call_recv(void *buffer, size_t count, ncclDataType_t type, int peer,
                           ncclComm_t comm, CUstream stream);

#endif
