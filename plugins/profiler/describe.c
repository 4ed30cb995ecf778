#include "plugins/profiler/describe.h"

#include "plugins/profiler/abi.h"

/* What v1 gives as numbers, in the words that v2 has: ncclFunc_t, ncclDataType_t, and the
   orders of algorithms and protocols. */
static const char *const functions[] = {"Broadcast",
                                        "Reduce",
                                        "AllGather",
                                        "ReduceScatter",
                                        "AllReduce",
                                        "SendRecv",
                                        "Send",
                                        "Recv"};
static const char *const datatypes[] = {"ncclInt8",
                                        "ncclUint8",
                                        "ncclInt32",
                                        "ncclUint32",
                                        "ncclInt64",
                                        "ncclUint64",
                                        "ncclFloat16",
                                        "ncclFloat32",
                                        "ncclFloat64",
                                        "ncclBfloat16",
                                        "ncclFloat8e4m3",
                                        "ncclFloat8e5m2"};
static const char *const algorithms[] = {
  "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};

#define NAME(names, number)                                                                \
  ((number) < sizeof(names) / sizeof *(names) ? (names)[number] : "?")

#define PUT_EVENT(e, table, from)                                                          \
  (PUT(&(e)->row, table, id, (e)->id),                                                     \
   PUT(&(e)->row, table, start, (from)->now),                                              \
   PUT(&(e)->row, table, globalPid, (from)->session->global_pid))
#define PUT_PARENT(e, table, parent)                                                       \
  do {                                                                                     \
    if (parent) PUT(&(e)->row, table, parentId, (intptr_t)(parent));                       \
  } while (0)

/* A collective by the words of v2 to v6. */
#define PUT_COLL(e, c)                                                                     \
  (PUT(&(e)->row, COLL, seqNumber, (c)->sequence),                                         \
   PUT_TEXT(&(e)->row, COLL, function, (c)->func),                                         \
   PUT(&(e)->row, COLL, count, (c)->count),                                                \
   PUT_TEXT(&(e)->row, COLL, datatype, (c)->datatype),                                     \
   PUT(&(e)->row, COLL, root, (c)->root),                                                  \
   PUT_TEXT(&(e)->row, COLL, algorithm, (c)->algorithm),                                   \
   PUT_TEXT(&(e)->row, COLL, protocol, (c)->protocol),                                     \
   PUT(&(e)->row, COLL, channels, (c)->channels),                                          \
   PUT(&(e)->row, COLL, warps, (c)->warps))

static void coll_v1(struct event *e, const struct abi_coll_v1 *c) {
  PUT(&e->row, COLL, seqNumber, c->sequence);
  PUT_TEXT(&e->row, COLL, function, NAME(functions, c->func));
  PUT(&e->row, COLL, count, c->count);
  PUT_TEXT(&e->row, COLL, datatype, NAME(datatypes, c->datatype));
  PUT(&e->row, COLL, root, c->root);
  PUT_TEXT(&e->row, COLL, algorithm, NAME(algorithms, c->algorithm));
  PUT_TEXT(&e->row, COLL, protocol, NAME(protocols, c->protocol));
  PUT(&e->row, COLL, channels, c->channels);
  PUT(&e->row, COLL, warps, c->warps);
  PUT(&e->row, COLL, trafficBytes, c->traffic_bytes);
}

static void coll(struct event *e, const void *parent, int rank, const void *what,
                 const struct describe_from *from) {
  e->row.table = TRACE_COLL;
  PUT_EVENT(e, COLL, from);
  PUT_PARENT(e, COLL, parent);
  PUT(&e->row, COLL, globalTid, session_global_tid(from->session));
  PUT(&e->row, COLL, commId, from->comm);
  PUT(&e->row, COLL, rank, rank);
  if (e->abi == 1) coll_v1(e, what);
  if (e->abi == 2) PUT_COLL(e, (const struct abi_coll_v2 *)what);
  if (e->abi == 3) PUT_COLL(e, (const struct abi_coll_v3 *)what);
  if (e->abi >= 4) PUT_COLL(e, (const struct abi_coll_v4 *)what);
  if (e->abi == 2) {
    PUT(&e->row, COLL, trafficBytes, ((const struct abi_coll_v2 *)what)->traffic_bytes);
  }
  if (e->abi >= 5) {
    PUT(&e->row, COLL, groupId, (intptr_t)((const struct abi_coll_v4 *)what)->group);
  }
}

#define PUT_P2P(e, p)                                                                      \
  (PUT_TEXT(&(e)->row, P2P, function, (p)->func),                                          \
   PUT(&(e)->row, P2P, count, (p)->count),                                                 \
   PUT_TEXT(&(e)->row, P2P, datatype, (p)->datatype),                                      \
   PUT(&(e)->row, P2P, peer, (p)->peer))

static void p2p_v1(struct event *e, const struct abi_p2p_v1 *p) {
  PUT_TEXT(&e->row, P2P, function, NAME(functions, p->func));
  PUT(&e->row, P2P, count, p->count);
  PUT_TEXT(&e->row, P2P, datatype, NAME(datatypes, p->datatype));
  PUT(&e->row, P2P, peer, p->peer);
}

static void p2p(struct event *e, const void *parent, int rank, const void *what,
                const struct describe_from *from) {
  const struct abi_p2p_v4 *newer = what;
  e->row.table = TRACE_P2P;
  PUT_EVENT(e, P2P, from);
  PUT_PARENT(e, P2P, parent);
  PUT(&e->row, P2P, globalTid, session_global_tid(from->session));
  PUT(&e->row, P2P, commId, from->comm);
  PUT(&e->row, P2P, rank, rank);
  if (e->abi == 1) p2p_v1(e, what);
  if (e->abi == 2 || e->abi == 3) PUT_P2P(e, (const struct abi_p2p_v2 *)what);
  if (e->abi < 4) return;
  PUT_P2P(e, newer);
  PUT(&e->row, P2P, channels, newer->channels);
  if (e->abi >= 5) PUT(&e->row, P2P, groupId, (intptr_t)newer->group);
}

static void group(struct event *e, const void *parent, const void *what,
                  const struct describe_from *from) {
  const struct abi_group_api *api = what;
  const bool is_api = e->type == ABI_GROUP_API;
  e->row.table = TRACE_GROUP;
  PUT_EVENT(e, GROUP, from);
  PUT_PARENT(e, GROUP, parent);
  PUT(&e->row, GROUP, commId, from->comm);
  PUT(&e->row, GROUP, isApi, is_api);
  if (!is_api) return;
  PUT(&e->row, GROUP, depth, api->depth);
  PUT(&e->row, GROUP, graphCaptured, api->graph_captured);
}

#define PUT_CALL(e, c)                                                                     \
  (PUT_TEXT(&(e)->row, API, function, (c)->func),                                          \
   PUT(&(e)->row, API, count, (c)->count),                                                 \
   PUT_TEXT(&(e)->row, API, datatype, (c)->datatype),                                      \
   PUT(&(e)->row, API, stream, (intptr_t)(c)->stream),                                     \
   PUT(&(e)->row, API, graphCaptured, (c)->graph_captured))

static void call(struct event *e, const void *parent, const void *what,
                 const struct describe_from *from) {
  e->row.table = TRACE_API;
  PUT_EVENT(e, API, from);
  PUT_PARENT(e, API, parent);
  PUT(&e->row, API, globalTid, session_global_tid(from->session));
  PUT(&e->row, API, commId, from->comm);
  if (e->type == ABI_COLL_API) {
    PUT_CALL(e, (const struct abi_coll_api *)what);
    PUT(&e->row, API, root, ((const struct abi_coll_api *)what)->root);
  } else {
    PUT_CALL(e, (const struct abi_p2p_api *)what);
  }
}

static void launch(struct event *e, const void *parent,
                   const struct abi_kernel_launch *what, const struct describe_from *from) {
  e->row.table = TRACE_LAUNCH;
  PUT_EVENT(e, LAUNCH, from);
  PUT_PARENT(e, LAUNCH, parent);
  PUT(&e->row, LAUNCH, globalTid, session_global_tid(from->session));
  PUT(&e->row, LAUNCH, stream, (intptr_t)what->stream);
}

static void channel(struct event *e, const void *parent, int rank,
                    const struct abi_kernel_channel *what,
                    const struct describe_from *from) {
  e->row.table = TRACE_CHANNEL;
  PUT_EVENT(e, CHANNEL, from);
  PUT_PARENT(e, CHANNEL, parent);
  PUT(&e->row, CHANNEL, rank, rank);
  PUT(&e->row, CHANNEL, channel, what->channel);
  if (e->abi >= 4) PUT(&e->row, CHANNEL, gpuStart, what->timer);
}

static void proxy_op(struct event *e, const void *parent, int rank,
                     const struct abi_proxy_op *what, const struct describe_from *from) {
  e->row.table = TRACE_PROXY_OP;
  PUT_EVENT(e, PROXY_OP, from);
  PUT_PARENT(e, PROXY_OP, parent);
  PUT(&e->row, PROXY_OP, rank, rank);
  PUT(&e->row, PROXY_OP, originPid, what->pid);
  PUT(&e->row, PROXY_OP, channel, what->channel);
  PUT(&e->row, PROXY_OP, peer, what->peer);
  PUT(&e->row, PROXY_OP, steps, what->steps);
  PUT(&e->row, PROXY_OP, chunkBytes, what->chunk_bytes);
  PUT(&e->row, PROXY_OP, isSend, what->is_send);
}

static void proxy_step(struct event *e, const void *parent,
                       const struct abi_proxy_step *what,
                       const struct describe_from *from) {
  e->row.table = TRACE_PROXY_STEP;
  PUT_EVENT(e, PROXY_STEP, from);
  PUT_PARENT(e, PROXY_STEP, parent);
  PUT(&e->row, PROXY_STEP, step, what->step);
}

static void control(struct event *e, const struct describe_from *from) {
  e->row.table = TRACE_PROXY_CONTROL;
  PUT_EVENT(e, PROXY_CONTROL, from);
}

static void net(struct event *e, const void *parent, const struct abi_net *what,
                const struct describe_from *from) {
  e->row.table = TRACE_NET;
  PUT_EVENT(e, NET, from);
  PUT_PARENT(e, NET, parent);
  PUT(&e->row, NET, pluginId, what->id);
  PUT(&e->row, NET, updates, 0);
}

static void copy_engine(struct event *e, const void *parent, const void *what,
                        const struct describe_from *from) {
  const struct abi_ce_coll *c = what;
  const struct abi_ce_sync *sync = what;
  const struct abi_ce_batch *batch = what;
  e->row.table = TRACE_COPY_ENGINE;
  PUT_EVENT(e, COPY_ENGINE, from);
  PUT_PARENT(e, COPY_ENGINE, parent);
  switch (e->type) {
    case ABI_CE_SYNC:
      PUT_TEXT(&e->row, COPY_ENGINE, kind, "sync");
      PUT(&e->row, COPY_ENGINE, ranks, sync->ranks);
      break;
    case ABI_CE_BATCH:
      PUT_TEXT(&e->row, COPY_ENGINE, kind, "batch");
      PUT(&e->row, COPY_ENGINE, ops, batch->ops);
      PUT(&e->row, COPY_ENGINE, bytes, batch->bytes);
      break;
    default:
      PUT_TEXT(&e->row, COPY_ENGINE, kind, "coll");
      PUT_TEXT(&e->row, COPY_ENGINE, function, c->func);
      PUT(&e->row, COPY_ENGINE, seqNumber, c->sequence);
      PUT(&e->row, COPY_ENGINE, count, c->count);
      PUT_TEXT(&e->row, COPY_ENGINE, datatype, c->datatype);
      PUT(&e->row, COPY_ENGINE, root, c->root);
      PUT_TEXT(&e->row, COPY_ENGINE, strategy, c->strategy);
      PUT(&e->row, COPY_ENGINE, stream, (intptr_t)c->stream);
  }
}

bool describe_start(struct event *e, const void *descriptor,
                    const struct describe_from *from) {
  const struct abi_head_v5 *head = descriptor; /* parent and rank are there in all */
  const void *what = (const char *)descriptor + ABI_UNION, *parent = head->parent;
  switch (e->type) {
    case ABI_GROUP:
    case ABI_GROUP_API: group(e, parent, what, from); break;
    case ABI_COLL: coll(e, parent, head->rank, what, from); break;
    case ABI_P2P: p2p(e, parent, head->rank, what, from); break;
    case ABI_PROXY_OP: proxy_op(e, parent, head->rank, what, from); break;
    case ABI_PROXY_STEP: proxy_step(e, parent, what, from); break;
    case ABI_PROXY_CONTROL: control(e, from); break;
    case ABI_KERNEL_CHANNEL: channel(e, parent, head->rank, what, from); break;
    case ABI_NET: net(e, parent, what, from); break;
    case ABI_COLL_API:
    case ABI_P2P_API: call(e, parent, what, from); break;
    case ABI_KERNEL_LAUNCH: launch(e, parent, what, from); break;
    case ABI_CE_COLL:
    case ABI_CE_SYNC:
    case ABI_CE_BATCH: copy_engine(e, parent, what, from); break;
    default: return false;
  }
  return true;
}
