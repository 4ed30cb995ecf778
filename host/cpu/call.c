#include "host/cpu/call.h"
#include "host/cpu/comm.h"
#include "host/cpu/fail.h"
#include "host/cpu/group.h"
#include "host/cpu/report.h"
#include "host/dtype.h"

#define NO_ROOT 0 /* a root that every communicator has */

/* Who needs a buffer. */
enum need { ALL, ROOT, NOBODY };

static const struct {
  enum need send, recv;
  bool blocks; /* the larger buffer holds a block for each rank */
  bool reduces;
} traits[CPU_FUNCTIONS] = {
  [CPU_BROADCAST] = {ROOT, ALL},
  [CPU_REDUCE] = {ALL, ROOT, .reduces = true},
  [CPU_ALL_GATHER] = {ALL, ALL, .blocks = true},
  [CPU_REDUCE_SCATTER] = {ALL, ALL, .blocks = true, .reduces = true},
  [CPU_ALL_REDUCE] = {ALL, ALL, .reduces = true},
  [CPU_SEND_TO] = {ALL, NOBODY},
  [CPU_RECV_FROM] = {NOBODY, ALL},
  [CPU_ALL_TO_ALL] = {ALL, ALL, .blocks = true},
  [CPU_SCATTER] = {ROOT, ALL, .blocks = true},
  [CPU_GATHER] = {ALL, ROOT, .blocks = true},
};

/* NULL is fine where a rank does not need the buffer, as in NCCL. */
static bool is_needed(enum need need, bool is_root) {
  return need == ALL || (need == ROOT && is_root);
}

static ncclResult_t check_buffers(const struct cpu_call *call) {
  const struct cpu_op *op = &call->op;
  bool is_root = op->root == call->comm->rank;
  size_t ranks = traits[op->function].blocks ? (size_t)call->comm->nranks : 1;
  if (op->count > (size_t)PTRDIFF_MAX / dtype_size(op->type) / ranks) {
    return cpu_fail(ncclInvalidArgument, "%zu elements are more than memory", op->count);
  }
  if (op->count == 0) return ncclSuccess;
  if (is_needed(traits[op->function].send, is_root) && !op->send) {
    return cpu_fail(ncclInvalidArgument, "the send buffer is NULL");
  }
  if (is_needed(traits[op->function].recv, is_root) && !op->recv) {
    return cpu_fail(ncclInvalidArgument, "the receive buffer is NULL");
  }
  return ncclSuccess;
}

static ncclResult_t check(struct cpu_call *call, ncclRedOp_t redop) {
  struct cpu_op *op = &call->op;
  ncclResult_t rc = cpu_comm_check(call->comm);
  if (rc) return rc;
  if ((int)op->type < 0 || op->type >= ncclNumTypes) {
    return cpu_fail(ncclInvalidArgument, "%d is not a data type", (int)op->type);
  }
  if (op->root < 0 || op->root >= call->comm->nranks) {
    return cpu_fail(ncclInvalidArgument,
                    "root or peer %d: expected 0 to %d",
                    op->root,
                    call->comm->nranks - 1);
  }
  if (!cpu_stream_is_on(call->stream, call->comm->device)) {
    return cpu_fail(ncclInvalidArgument,
                    "the stream is not one of device %d, which the communicator is on",
                    call->comm->device);
  }
  rc = check_buffers(call);
  if (rc) return rc;
  op->redop = (struct cpu_redop){.type = op->type};
  if (!traits[op->function].reduces) return ncclSuccess;
  return cpu_redop_resolve(&op->redop, redop, op->type, call->comm);
}

static ncclResult_t enqueue(struct cpu_call call, ncclRedOp_t redop) {
  ncclResult_t rc = check(&call, redop);
  if (rc) return cpu_group_note(rc);
  /* Only good calls count, so that all ranks number them alike. */
  call.op.number = atomic_fetch_add(&call.comm->op_count, 1);
  cpu_report_call(&call, redop);
  return cpu_group_call(&call);
}

ncclResult_t cpu_call_all_reduce(const void *send, void *recv, size_t count,
                                 ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                 CUstream stream) {
  struct cpu_op o = {CPU_ALL_REDUCE, send, recv, count, type, NO_ROOT};
  return enqueue((struct cpu_call){comm, stream, o}, op);
}

ncclResult_t cpu_call_reduce(const void *send, void *recv, size_t count,
                             ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                             CUstream stream) {
  struct cpu_op o = {CPU_REDUCE, send, recv, count, type, root};
  return enqueue((struct cpu_call){comm, stream, o}, op);
}

ncclResult_t cpu_call_broadcast(const void *send, void *recv, size_t count,
                                ncclDataType_t type, int root, ncclComm_t comm,
                                CUstream stream) {
  struct cpu_op o = {CPU_BROADCAST, send, recv, count, type, root};
  return enqueue((struct cpu_call){comm, stream, o}, ncclSum);
}

ncclResult_t cpu_call_reduce_scatter(const void *send, void *recv, size_t count,
                                     ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                     CUstream stream) {
  struct cpu_op o = {CPU_REDUCE_SCATTER, send, recv, count, type, NO_ROOT};
  return enqueue((struct cpu_call){comm, stream, o}, op);
}

ncclResult_t cpu_call_all_gather(const void *send, void *recv, size_t count,
                                 ncclDataType_t type, ncclComm_t comm, CUstream stream) {
  struct cpu_op o = {CPU_ALL_GATHER, send, recv, count, type, NO_ROOT};
  return enqueue((struct cpu_call){comm, stream, o}, ncclSum);
}

ncclResult_t cpu_call_all_to_all(const void *send, void *recv, size_t count,
                                 ncclDataType_t type, ncclComm_t comm, CUstream stream) {
  struct cpu_op o = {CPU_ALL_TO_ALL, send, recv, count, type, NO_ROOT};
  return enqueue((struct cpu_call){comm, stream, o}, ncclSum);
}

ncclResult_t cpu_call_gather(const void *send, void *recv, size_t count,
                             ncclDataType_t type, int root, ncclComm_t comm,
                             CUstream stream) {
  struct cpu_op o = {CPU_GATHER, send, recv, count, type, root};
  return enqueue((struct cpu_call){comm, stream, o}, ncclSum);
}

ncclResult_t cpu_call_scatter(const void *send, void *recv, size_t count,
                              ncclDataType_t type, int root, ncclComm_t comm,
                              CUstream stream) {
  struct cpu_op o = {CPU_SCATTER, send, recv, count, type, root};
  return enqueue((struct cpu_call){comm, stream, o}, ncclSum);
}

ncclResult_t cpu_call_send(const void *buffer, size_t count, ncclDataType_t type, int peer,
                           ncclComm_t comm, CUstream stream) {
  struct cpu_op o = {CPU_SEND_TO, buffer, NULL, count, type, peer};
  return enqueue((struct cpu_call){comm, stream, o}, ncclSum);
}

ncclResult_t cpu_call_recv(void *buffer, size_t count, ncclDataType_t type, int peer,
                           ncclComm_t comm, CUstream stream) {
  struct cpu_op o = {CPU_RECV_FROM, NULL, buffer, count, type, peer};
  return enqueue((struct cpu_call){comm, stream, o}, ncclSum);
}
