/* From a checked call to the library's function. */

#include "bindings/nccl.h"

const char *nccl_call_name(const struct nccl_call *call) {
  static const char *const names[] = {
    [NCCL_ALL_GATHER] = "all_gather",
    [NCCL_ALL_REDUCE] = "all_reduce",
    [NCCL_ALL_TO_ALL] = "all_to_all",
    [NCCL_BROADCAST] = "broadcast",
    [NCCL_GATHER] = "gather",
    [NCCL_RECV] = "recv",
    [NCCL_REDUCE] = "reduce",
    [NCCL_REDUCE_SCATTER] = "reduce_scatter",
    [NCCL_SCATTER] = "scatter",
    [NCCL_SEND] = "send",
  };
  return names[call->kind];
}

ncclResult_t nccl_call_issue(const struct nccl_call *call, const struct comm *c,
                             CUstream stream) {
  const struct coll_api *api = c->api;
  const struct nccl_call o = *call;
  switch (o.kind) {
    case NCCL_ALL_GATHER:
      return api->all_gather(o.send, o.recv, o.count, o.type, c->handle, stream);
    case NCCL_ALL_REDUCE:
      return api->all_reduce(o.send, o.recv, o.count, o.type, o.op, c->handle, stream);
    case NCCL_ALL_TO_ALL:
      return api->all_to_all(o.send, o.recv, o.count, o.type, c->handle, stream);
    case NCCL_BROADCAST:
      return api->broadcast(o.send, o.recv, o.count, o.type, o.peer, c->handle, stream);
    case NCCL_GATHER:
      return api->gather(o.send, o.recv, o.count, o.type, o.peer, c->handle, stream);
    case NCCL_RECV: return api->recv(o.recv, o.count, o.type, o.peer, c->handle, stream);
    case NCCL_REDUCE:
      return api->reduce(o.send, o.recv, o.count, o.type, o.op, o.peer, c->handle, stream);
    case NCCL_REDUCE_SCATTER:
      return api->reduce_scatter(o.send, o.recv, o.count, o.type, o.op, c->handle, stream);
    case NCCL_SCATTER:
      return api->scatter(o.send, o.recv, o.count, o.type, o.peer, c->handle, stream);
    case NCCL_SEND: return api->send(o.send, o.count, o.type, o.peer, c->handle, stream);
  }
  return ncclInternalError;
}
