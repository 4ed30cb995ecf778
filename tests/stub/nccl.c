/* libnccl.so.2: NCCL's functions, one line each. STUB_MINOR: the version that it plays;
   what came later is not exported. */
#include "tests/stub/stub.h"

#ifndef STUB_MINOR
#define STUB_MINOR 28
#endif

/* A function of NCCL's, carried out by the member of that name. */
#define FUNCTION(name, member, parameters, ...)                                            \
  EXPORT ncclResult_t name parameters;                                                     \
  EXPORT ncclResult_t name parameters {                                                    \
    return stub_coll()->member ? stub_coll()->member(__VA_ARGS__) : ncclInternalError;     \
  }

EXPORT ncclResult_t ncclGetVersion(int *version);
EXPORT ncclResult_t ncclGetVersion(int *version) {
  *version = 20000 + 100 * STUB_MINOR + 9;
  return ncclSuccess;
}

EXPORT const char *ncclGetErrorString(ncclResult_t rc);
EXPORT const char *ncclGetErrorString(ncclResult_t rc) {
  return stub_coll()->get_error_string(rc);
}

FUNCTION(ncclGetUniqueId, get_unique_id, (ncclUniqueId * id), id)
FUNCTION(ncclCommInitRank, comm_init_rank,
         (ncclComm_t * c, int n, ncclUniqueId id, int rank), c, n, id, rank)
FUNCTION(ncclCommInitAll, comm_init_all, (ncclComm_t * c, int n, const int *d), c, n, d)
FUNCTION(ncclCommDestroy, comm_destroy, (ncclComm_t c), c)
FUNCTION(ncclCommAbort, comm_abort, (ncclComm_t c), c)
FUNCTION(ncclCommGetAsyncError, comm_get_async_error, (ncclComm_t c, ncclResult_t *rc), c,
         rc)
FUNCTION(ncclCommCount, comm_count, (const ncclComm_t c, int *n), c, n)
FUNCTION(ncclCommCuDevice, comm_cu_device, (const ncclComm_t c, int *d), c, d)
FUNCTION(ncclCommUserRank, comm_user_rank, (const ncclComm_t c, int *rank), c, rank)
FUNCTION(ncclRedOpCreatePreMulSum, red_op_create_pre_mul_sum,
         (ncclRedOp_t * op, void *scalar, ncclDataType_t type, ncclScalarResidence_t where,
          ncclComm_t c),
         op, scalar, type, where, c)
FUNCTION(ncclRedOpDestroy, red_op_destroy, (ncclRedOp_t op, ncclComm_t c), op, c)

#define STREAM ncclComm_t comm, CUstream stream
FUNCTION(ncclAllReduce, all_reduce,
         (const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, STREAM), s, r,
         n, t, op, comm, stream)
FUNCTION(ncclReduce, reduce,
         (const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, int root,
          STREAM),
         s, r, n, t, op, root, comm, stream)
FUNCTION(ncclBroadcast, broadcast,
         (const void *s, void *r, size_t n, ncclDataType_t t, int root, STREAM), s, r, n, t,
         root, comm, stream)
FUNCTION(ncclReduceScatter, reduce_scatter,
         (const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, STREAM), s, r,
         n, t, op, comm, stream)
FUNCTION(ncclAllGather, all_gather,
         (const void *s, void *r, size_t n, ncclDataType_t t, STREAM), s, r, n, t, comm,
         stream)
FUNCTION(ncclSend, send, (const void *s, size_t n, ncclDataType_t t, int peer, STREAM), s,
         n, t, peer, comm, stream)
FUNCTION(ncclRecv, recv, (void *r, size_t n, ncclDataType_t t, int peer, STREAM), r, n, t,
         peer, comm, stream)
FUNCTION(ncclGroupStart, group_start, (void), )
FUNCTION(ncclGroupEnd, group_end, (void), )

#if STUB_MINOR >= 28
EXPORT const char *ncclGetLastError(ncclComm_t comm);
EXPORT const char *ncclGetLastError(ncclComm_t comm) {
  return stub_coll()->get_last_error(comm);
}

FUNCTION(ncclCommInitRankConfig, comm_init_rank_config,
         (ncclComm_t * c, int n, ncclUniqueId id, int rank, ncclConfig_t *config), c, n, id,
         rank, config)
FUNCTION(ncclCommFinalize, comm_finalize, (ncclComm_t c), c)
FUNCTION(ncclCommSplit, comm_split,
         (ncclComm_t c, int color, int key, ncclComm_t *n, ncclConfig_t *config), c, color,
         key, n, config)
FUNCTION(ncclCommShrink, comm_shrink,
         (ncclComm_t c, int *out, int n, ncclComm_t *to, ncclConfig_t *config, int flags),
         c, out, n, to, config, flags)
FUNCTION(ncclMemAlloc, mem_alloc, (void **p, size_t n), p, n)
FUNCTION(ncclMemFree, mem_free, (void *p), p)
FUNCTION(ncclCommRegister, comm_register,
         (const ncclComm_t c, void *p, size_t n, void **handle), c, p, n, handle)
FUNCTION(ncclCommDeregister, comm_deregister, (const ncclComm_t c, void *handle), c, handle)
FUNCTION(ncclCommWindowRegister, comm_window_register,
         (ncclComm_t c, void *p, size_t n, ncclWindow_t *w, int flags), c, p, n, w, flags)
FUNCTION(ncclCommWindowDeregister, comm_window_deregister, (ncclComm_t c, ncclWindow_t w),
         c, w)
FUNCTION(ncclAlltoAll, all_to_all,
         (const void *s, void *r, size_t n, ncclDataType_t t, STREAM), s, r, n, t, comm,
         stream)
FUNCTION(ncclGather, gather,
         (const void *s, void *r, size_t n, ncclDataType_t t, int root, STREAM), s, r, n, t,
         root, comm, stream)
FUNCTION(ncclScatter, scatter,
         (const void *s, void *r, size_t n, ncclDataType_t t, int root, STREAM), s, r, n, t,
         root, comm, stream)
#endif
