#include "plugins/trace/decode.h"

#include <stdio.h>
#include <string.h>

static uint64_t read64(const void *record, size_t offset) {
  uint64_t value;
  memcpy(&value, (const uint8_t *)record + offset, sizeof value);
  return value;
}

static uint32_t read32(const void *record, size_t offset) {
  uint32_t value;
  memcpy(&value, (const uint8_t *)record + offset, sizeof value);
  return value;
}

/* What nearly all records have, under the same names. */
#define PUT_TIMES(d, row, table, record)                                                   \
  (PUT(                                                                                    \
     row, table, start, (int64_t)(record)->start + (d)->shift_ns - (d)->session.start_ns), \
   PUT(row, table, end, (int64_t)(record)->end + (d)->shift_ns - (d)->session.start_ns))
#define PUT_PLACE(d, row, table, record)                                                   \
  (PUT(row, table, deviceId, (record)->deviceId),                                          \
   PUT(row, table, contextId, (record)->contextId),                                        \
   PUT(row, table, streamId, (record)->streamId),                                          \
   PUT(row, table, correlationId, (record)->correlationId),                                \
   PUT(row, table, globalPid, (d)->session.global_pid))
/* An id of a graph or node is 0 outside of graphs; there the cell is NULL, as in nsys. */
#define PUT_GRAPH(row, table, record, node, graph)                                         \
  do {                                                                                     \
    if ((node) && read64(record, node))                                                    \
      PUT(row, table, graphNodeId, read64(record, node));                                  \
    if ((graph) && read32(record, graph)) PUT(row, table, graphId, read32(record, graph)); \
  } while (0)

static void put_geometry(struct trace_row *row, const struct cupti_kernel *k) {
  PUT(row, KERNEL, gridX, k->gridX);
  PUT(row, KERNEL, gridY, k->gridY);
  PUT(row, KERNEL, gridZ, k->gridZ);
  PUT(row, KERNEL, blockX, k->blockX);
  PUT(row, KERNEL, blockY, k->blockY);
  PUT(row, KERNEL, blockZ, k->blockZ);
}

static void put_resources(struct trace_row *row, const struct cupti_kernel *k,
                          size_t local_memory) {
  PUT(row, KERNEL, launchType, k->launchType);
  PUT(row, KERNEL, cacheConfig, k->cacheConfig);
  PUT(row, KERNEL, registersPerThread, k->registersPerThread);
  PUT(row, KERNEL, staticSharedMemory, k->staticSharedMemory);
  PUT(row, KERNEL, dynamicSharedMemory, k->dynamicSharedMemory);
  PUT(row, KERNEL, localMemoryPerThread, k->localMemoryPerThread);
  PUT(row,
      KERNEL,
      localMemoryTotal,
      local_memory ? read64(k, local_memory) : k->localMemoryTotal);
  PUT(row, KERNEL, sharedMemoryExecuted, k->sharedMemoryExecuted);
}

static void kernel(struct decoder *d, struct store *store, const struct cupti_kernel *k) {
  if (k->end == 0) {
    d->untimed++;
    return;
  }
  const struct store_names names = store_kernel_names(store, k->name ? k->name : "unknown");
  struct trace_row row = {.table = TRACE_KERNEL};
  PUT_TIMES(d, &row, KERNEL, k);
  PUT_PLACE(d, &row, KERNEL, k);
  PUT(&row, KERNEL, demangledName, names.demangled);
  PUT(&row, KERNEL, shortName, names.brief);
  PUT(&row, KERNEL, mangledName, names.mangled);
  PUT(&row, KERNEL, gridId, k->gridId);
  put_geometry(&row, k);
  put_resources(&row, k, d->layout.kernel_local_memory);
  PUT_GRAPH(&row, KERNEL, k, d->layout.kernel_graph_node, d->layout.kernel_graph);
  store_insert(store, &row);
}

static void copy(struct decoder *d, struct store *store, const struct cupti_memcpy *m) {
  struct trace_row row = {.table = TRACE_MEMCPY};
  PUT_TIMES(d, &row, MEMCPY, m);
  PUT_PLACE(d, &row, MEMCPY, m);
  PUT(&row, MEMCPY, bytes, m->bytes);
  PUT(&row, MEMCPY, copyKind, m->copyKind);
  PUT(&row, MEMCPY, srcKind, m->srcKind);
  PUT(&row, MEMCPY, dstKind, m->dstKind);
  PUT_GRAPH(&row, MEMCPY, m, d->layout.memcpy_graph_node, d->layout.memcpy_graph);
  if (d->layout.memcpy_count)
    PUT(&row, MEMCPY, copyCount, read64(m, d->layout.memcpy_count));
  store_insert(store, &row);
}

static void peer_copy(struct decoder *d, struct store *store,
                      const struct cupti_peer_copy *m) {
  struct trace_row row = {.table = TRACE_MEMCPY};
  PUT_TIMES(d, &row, MEMCPY, m);
  PUT_PLACE(d, &row, MEMCPY, m);
  PUT(&row, MEMCPY, bytes, m->bytes);
  PUT(&row, MEMCPY, copyKind, m->copyKind);
  PUT(&row, MEMCPY, srcKind, m->srcKind);
  PUT(&row, MEMCPY, dstKind, m->dstKind);
  PUT(&row, MEMCPY, srcDeviceId, m->srcDeviceId);
  PUT(&row, MEMCPY, srcContextId, m->srcContextId);
  PUT(&row, MEMCPY, dstDeviceId, m->dstDeviceId);
  PUT(&row, MEMCPY, dstContextId, m->dstContextId);
  PUT_GRAPH(&row, MEMCPY, m, d->layout.peer_graph_node, d->layout.peer_graph);
  store_insert(store, &row);
}

static void set(struct decoder *d, struct store *store, const struct cupti_memset *m) {
  struct trace_row row = {.table = TRACE_MEMSET};
  PUT_TIMES(d, &row, MEMSET, m);
  PUT_PLACE(d, &row, MEMSET, m);
  PUT(&row, MEMSET, value, m->value);
  PUT(&row, MEMSET, bytes, m->bytes);
  PUT(&row, MEMSET, memKind, m->memoryKind);
  PUT_GRAPH(&row, MEMSET, m, d->layout.memset_graph_node, d->layout.memset_graph);
  store_insert(store, &row);
}

static int64_t call_name(struct decoder *d, struct store *store, int is_driver,
                         uint32_t cbid) {
  if (cbid < DECODE_CALLS && d->names[is_driver][cbid]) return d->names[is_driver][cbid];
  const char *name = NULL;
  char unknown[32];
  const int domain = is_driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
  if (d->callback_name(domain, cbid, &name) || !name) {
    snprintf(unknown, sizeof unknown, "%s call %u", is_driver ? "driver" : "runtime", cbid);
    name = unknown;
  }
  const int64_t id = store_intern(store, name);
  if (cbid < DECODE_CALLS) d->names[is_driver][cbid] = id;
  return id;
}

static void call(struct decoder *d, struct store *store, const struct cupti_api *a) {
  if (a->threadId == d->own_tid) return;
  const int is_driver = a->kind == CUPTI_ACTIVITY_KIND_DRIVER;
  struct trace_row row = {.table = TRACE_RUNTIME};
  PUT_TIMES(d, &row, RUNTIME, a);
  PUT(&row, RUNTIME, eventClass, is_driver); /* nsys: 0 runtime, 1 driver */
  PUT(&row, RUNTIME, globalTid, session_tid(&d->session, a->threadId));
  PUT(&row, RUNTIME, correlationId, a->correlationId);
  PUT(&row, RUNTIME, nameId, call_name(d, store, is_driver, a->cbid));
  PUT(&row, RUNTIME, returnValue, a->returnValue);
  store_insert(store, &row);
}

static void sync(struct decoder *d, struct store *store, const struct cupti_sync *s) {
  struct trace_row row = {.table = TRACE_SYNC};
  PUT_TIMES(d, &row, SYNC, s);
  PUT(&row, SYNC, contextId, s->contextId);
  PUT(&row, SYNC, streamId, s->streamId);
  PUT(&row, SYNC, correlationId, s->correlationId);
  PUT(&row, SYNC, globalPid, d->session.global_pid);
  PUT(&row, SYNC, syncType, s->type);
  PUT(&row, SYNC, eventId, s->cudaEventId);
  store_insert(store, &row);
}

static void graph(struct decoder *d, struct store *store, const struct cupti_graph *g) {
  struct trace_row row = {.table = TRACE_GRAPH};
  PUT_TIMES(d, &row, GRAPH, g);
  PUT_PLACE(d, &row, GRAPH, g);
  PUT(&row, GRAPH, graphId, g->graphId);
  store_insert(store, &row);
}

static void record(struct decoder *d, struct store *store, const struct cupti_record *r) {
  const void *what = r; /* the kind says what it really is */
  switch (r->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: kernel(d, store, what); break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: copy(d, store, what); break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2: peer_copy(d, store, what); break;
    case CUPTI_ACTIVITY_KIND_MEMSET: set(d, store, what); break;
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME: call(d, store, what); break;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: sync(d, store, what); break;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: graph(d, store, what); break;
    default: break; /* kinds that were not asked for */
  }
}

void decode_buffer(void *context, struct store *store, const uint8_t *data, size_t bytes) {
  struct decoder *d = context;
  struct cupti_record *r = NULL;
  /* CUPTI's signature lacks the const. */
  uint8_t *buffer = (uint8_t *)(uintptr_t)data;
  while (d->next_record(buffer, bytes, &r) == CUPTI_SUCCESS) record(d, store, r);
}
