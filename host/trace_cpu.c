#include "host/trace_cpu.h"

#include "plugins/trace/nvtx.h"
#include "plugins/trace/tracer.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static int64_t to_realtime_ns; /* from CLOCK_MONOTONIC */

static int64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Times of a row, from the backend's clock. */
#define PUT_TIMES(row, table, w, from, to)                                                 \
  (PUT(row, table, start, (from) + to_realtime_ns - writer_session(w)->start_ns),          \
   PUT(row, table, end, (to) + to_realtime_ns - writer_session(w)->start_ns))

#define PUT_PLACE(row, table, w, t)                                                        \
  (PUT(row, table, deviceId, (t)->device),                                                 \
   PUT(row, table, contextId, 1),                                                          \
   PUT(row, table, streamId, (t)->stream),                                                 \
   PUT(row, table, correlationId, (t)->correlation),                                       \
   PUT(row, table, globalPid, writer_session(w)->global_pid))

static void put_call(struct writer *w, const struct traced *t) {
  struct trace_row row = {.table = TRACE_RUNTIME};
  PUT_TIMES(&row, RUNTIME, w, t->call_start_ns, t->call_end_ns);
  PUT(&row, RUNTIME, globalTid, session_tid(writer_session(w), t->thread));
  PUT(&row, RUNTIME, correlationId, t->correlation);
  PUT_TEXT(&row, RUNTIME, nameId, t->call);
  writer_put(w, &row);
}

static void put_kernel(struct writer *w, const struct traced *t) {
  struct trace_row row = {.table = TRACE_KERNEL};
  PUT_TIMES(&row, KERNEL, w, t->start_ns, t->end_ns);
  PUT_PLACE(&row, KERNEL, w, t);
  PUT_TEXT(&row, KERNEL, demangledName, t->name);
  PUT_TEXT(&row, KERNEL, shortName, t->name);
  PUT_TEXT(&row, KERNEL, mangledName, t->name);
  PUT(&row, KERNEL, gridX, t->grid_x);
  PUT(&row, KERNEL, gridY, 1);
  PUT(&row, KERNEL, gridZ, 1);
  PUT(&row, KERNEL, blockX, t->block_x);
  PUT(&row, KERNEL, blockY, 1);
  PUT(&row, KERNEL, blockZ, 1);
  writer_put(w, &row);
}

static void put_copy(struct writer *w, const struct traced *t) {
  struct trace_row row = {.table = TRACE_MEMCPY};
  PUT_TIMES(&row, MEMCPY, w, t->start_ns, t->end_ns);
  PUT_PLACE(&row, MEMCPY, w, t);
  PUT(&row, MEMCPY, bytes, t->bytes);
  PUT(&row, MEMCPY, copyKind, t->copy_kind);
  writer_put(w, &row);
}

static void put_set(struct writer *w, const struct traced *t) {
  struct trace_row row = {.table = TRACE_MEMSET};
  PUT_TIMES(&row, MEMSET, w, t->start_ns, t->end_ns);
  PUT_PLACE(&row, MEMSET, w, t);
  PUT(&row, MEMSET, value, t->value & UINT32_MAX);
  PUT(&row, MEMSET, bytes, t->bytes);
  writer_put(w, &row);
}

/* device_api.traced: on the CPU backend's threads. */
static void read_traced(const struct traced *t) {
  struct writer *w = tracer_current();
  if (!w) return;
  if (t->call) put_call(w, t);
  switch (t->kind) {
    case TRACED_KERNEL: put_kernel(w, t); break;
    case TRACED_COPY: put_copy(w, t); break;
    case TRACED_SET: put_set(w, t); break;
    case TRACED_CALL:
    case TRACED_NOTHING: break;
  }
}

static CUresult push_range(const char *text) {
  nvtx_push(text);
  return CUDA_SUCCESS;
}

static CUresult pop_range(void) {
  nvtx_pop();
  return CUDA_SUCCESS;
}

/* 32 digits: what tells the CPU backend's devices apart. */
static void print_uuid(const CUuuid *uuid, char text[33]) {
  for (size_t i = 0; i < sizeof uuid->bytes; i++) {
    sprintf(text + 2 * i, "%02x", (unsigned char)uuid->bytes[i]);
  }
}

static void put_devices(struct writer *w, const struct device_api *api) {
  int count = 0;
  api->device_get_count(&count);
  for (int i = 0; i < count; i++) {
    char name[128] = "", uuid[33] = "";
    CUuuid bytes = {{0}};
    if (api->device_get_name(name, sizeof name, i)) continue;
    if (!api->device_get_uuid(&bytes, i)) print_uuid(&bytes, uuid);
    struct trace_row row = {.table = TRACE_GPU};
    PUT(&row, GPU, id, i);
    PUT_TEXT(&row, GPU, name, name);
    PUT_TEXT(&row, GPU, uuid, uuid);
    writer_put(w, &row);
    row = (struct trace_row){.table = TRACE_DEVICE};
    PUT(&row, DEVICE, gpuId, i);
    PUT(&row, DEVICE, cudaId, i);
    PUT(&row, DEVICE, pid, getpid());
    PUT_TEXT(&row, DEVICE, uuid, uuid);
    writer_put(w, &row);
  }
}

int trace_cpu_start(struct device_api *api, const char *path, struct err *e) {
  char why[256];
  to_realtime_ns = session_now_ns() - monotonic_ns();
  struct writer *w = tracer_start(path, why, sizeof why);
  if (!w) return err_set(e, "trace", "%s", why);
  put_devices(w, api);
  __atomic_store_n(&api->traced, read_traced, __ATOMIC_RELEASE);
  api->range_push = push_range;
  api->range_pop = pop_range;
  return 0;
}

void trace_cpu_stop(struct device_api *api, char *why, size_t size) {
  __atomic_store_n(&api->traced, NULL, __ATOMIC_RELEASE);
  api->range_push = NULL;
  api->range_pop = NULL;
  tracer_stop(why, size);
}
