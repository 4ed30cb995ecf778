#ifndef HOST_CUDA_NCCL_H
#define HOST_CUDA_NCCL_H

/* The library's own functions behind those of cuda_coll that this folder wraps; NULL where
   the library is too old. Filled by cuda_coll.load. */

#include "host/backend.h"

struct nccl {
  const char *(*get_last_error)(ncclComm_t comm);
  ncclResult_t (*comm_init_rank_config)(ncclComm_t *comm, int nranks, ncclUniqueId id,
                                        int rank, ncclConfig_t *config);
  ncclResult_t (*comm_split)(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                             ncclConfig_t *config);
  ncclResult_t (*comm_shrink)(ncclComm_t comm, int *exclude, int exclude_count,
                              ncclComm_t *newcomm, ncclConfig_t *config, int flags);
};
extern struct nccl nccl;

#endif
