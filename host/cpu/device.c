#include "host/cpu/device.h"

#include "host/cpu/capture.h"

#include <stdlib.h>

/* A context is its device's primary one: an element of this array. */
struct CUctx_st {
  int references; /* atomic */
};

static struct CUctx_st contexts[CPU_DEVICES_MAX];
static int device_count;   /* atomic; 0 until `load` */
static int is_initialised; /* atomic */
static _Thread_local CUcontext current;

static int load(const char *library, struct err *e) {
  (void)library;
  const char *text = getenv("NCLUA_CPU_DEVICES");
  char *end;
  const long count = text ? strtol(text, &end, 10) : 8;
  if (text && (end == text || *end || count < 1 || count > CPU_DEVICES_MAX)) {
    return err_set(e,
                   "EINVAL",
                   "NCLUA_CPU_DEVICES is '%s': expected a number from 1 to %d",
                   text,
                   CPU_DEVICES_MAX);
  }
  __atomic_store_n(&device_count, (int)count, __ATOMIC_RELEASE);
  return 0;
}

static const char *library_path(void) {
  return "built-in";
}

int cpu_device_count(void) {
  return __atomic_load_n(&device_count, __ATOMIC_ACQUIRE);
}

static CUresult check_initialised(void) {
  return __atomic_load_n(&is_initialised, __ATOMIC_ACQUIRE) ? CUDA_SUCCESS
                                                            : CUDA_ERROR_NOT_INITIALIZED;
}

static bool is_alive(CUcontext ctx) {
  return ctx && __atomic_load_n(&ctx->references, __ATOMIC_ACQUIRE) > 0;
}

CUresult cpu_device_require(CUdevice *device) {
  const CUresult rc = check_initialised();
  if (rc) return rc;
  if (!is_alive(current)) return CUDA_ERROR_INVALID_CONTEXT;
  *device = (CUdevice)(current - contexts);
  return CUDA_SUCCESS;
}

CUdevice cpu_device_current(void) {
  CUdevice device;
  return cpu_device_require(&device) ? -1 : device;
}

static CUresult init(unsigned flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  __atomic_store_n(&is_initialised, 1, __ATOMIC_RELEASE);
  return CUDA_SUCCESS;
}

/* In CUDA's encoding, 1000 * major + 10 * minor. */
static CUresult driver_get_version(int *version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = 1000 * NCLUA_VERSION_MAJOR + 10 * NCLUA_VERSION_MINOR;
  return CUDA_SUCCESS;
}

static CUresult get_count(int *count) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = cpu_device_count(); /* before init, too: there is nothing to find out */
  return CUDA_SUCCESS;
}

static CUresult get(CUdevice *device, int ordinal) {
  const CUresult rc = check_initialised();
  if (rc) return rc;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  if (ordinal < 0 || ordinal >= cpu_device_count()) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

static CUresult retain(CUcontext *ctx, CUdevice device) {
  CUdevice checked;
  const CUresult rc = get(&checked, device);
  if (rc) return rc;
  if (!ctx) return CUDA_ERROR_INVALID_VALUE;
  __atomic_fetch_add(&contexts[device].references, 1, __ATOMIC_ACQ_REL);
  *ctx = &contexts[device];
  return CUDA_SUCCESS;
}

/* What was made in the context stays, harmless and unusable, until its owner frees it. */
static CUresult release(CUdevice device) {
  CUdevice checked;
  const CUresult rc = get(&checked, device);
  if (rc) return rc;
  int count = __atomic_load_n(&contexts[device].references, __ATOMIC_ACQUIRE);
  do {
    if (count == 0) return CUDA_ERROR_INVALID_CONTEXT;
  } while (!__atomic_compare_exchange_n(&contexts[device].references,
                                        &count,
                                        count - 1,
                                        true,
                                        __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE));
  return CUDA_SUCCESS;
}

static bool is_context(CUcontext ctx) {
  for (int i = 0; i < cpu_device_count(); i++) {
    if (ctx == &contexts[i]) return is_alive(ctx);
  }
  return false;
}

static CUresult set_current(CUcontext ctx) {
  const CUresult rc = check_initialised();
  if (rc) return rc;
  if (ctx && !is_context(ctx)) return CUDA_ERROR_INVALID_CONTEXT;
  current = ctx;
  return CUDA_SUCCESS;
}

static CUresult get_current(CUcontext *ctx) {
  if (!ctx) return CUDA_ERROR_INVALID_VALUE;
  *ctx = current;
  return check_initialised();
}

struct device_api cpu_device = {
  .name = "cpu",
  .load = load,
  .library_path = library_path,
  .fill = cpu_fill,
  .fill_pattern = cpu_fill_pattern,
  .compare = cpu_compare,
  .spin = cpu_spin,
  .init = init,
  .driver_get_version = driver_get_version,
  .get_error_name = cpu_error_name,
  .get_error_string = cpu_error_string,
  .device_get_count = get_count,
  .device_get = get,
  .device_get_name = cpu_device_get_name,
  .device_get_uuid = cpu_device_get_uuid,
  .device_get_attribute = cpu_device_get_attribute,
  .device_get_pci_bus_id = cpu_device_get_pci_bus_id,
  .device_total_mem = cpu_mem_total,
  .primary_ctx_retain = retain,
  .primary_ctx_release = release,
  .ctx_set_current = set_current,
  .ctx_get_current = get_current,
  .ctx_synchronize = cpu_ctx_synchronize,
  .mem_get_info = cpu_mem_get_info,
  .mem_alloc = cpu_mem_alloc,
  .mem_free = cpu_mem_free,
  .mem_host_alloc = cpu_mem_host_alloc,
  .mem_free_host = cpu_mem_free_host,
  .memcpy_htod = cpu_memcpy_htod,
  .memcpy_dtoh = cpu_memcpy_dtoh,
  .memcpy_htod_async = cpu_memcpy_htod_async,
  .memcpy_dtoh_async = cpu_memcpy_dtoh_async,
  .memcpy_dtod_async = cpu_memcpy_dtod_async,
  .memset_d8_async = cpu_memset_d8_async,
  .stream_create_with_priority = cpu_stream_create,
  .stream_destroy = cpu_stream_destroy,
  .stream_synchronize = cpu_stream_synchronize,
  .stream_query = cpu_stream_query,
  .stream_wait_event = cpu_stream_wait_event,
  .stream_begin_capture = cpu_capture_begin,
  .stream_end_capture = cpu_capture_end,
  .ctx_get_stream_priority_range = cpu_stream_priorities,
  .event_create = cpu_event_create,
  .event_destroy = cpu_event_destroy,
  .event_record = cpu_event_record,
  .event_query = cpu_event_query,
  .event_synchronize = cpu_event_synchronize,
  .event_elapsed_time = cpu_event_elapsed,
  .graph_instantiate = cpu_graph_instantiate,
  .graph_launch = cpu_graph_launch,
  .graph_exec_destroy = cpu_graph_exec_destroy,
  .graph_destroy = cpu_graph_destroy,
};
