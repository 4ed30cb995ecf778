/* libcuda.so.1: the driver's functions, one line each. */
#include "tests/stub/stub.h"

#include "host/cpu/stream.h"

#include <stdlib.h>

EXPORT const struct device_api *stub_device(void) {
  static bool is_loaded;
  struct err e;
  if (!is_loaded && cpu_device.load(NULL, &e)) abort();
  is_loaded = true;
  return &cpu_device;
}

EXPORT const struct coll_api *stub_coll(void) {
  static bool is_loaded;
  struct err e;
  if (!is_loaded && cpu_coll.load(NULL, &e)) abort();
  is_loaded = true;
  return &cpu_coll;
}

/* A driver's function, carried out by the member of that name. */
#define FUNCTION(name, member, parameters, ...)                                            \
  EXPORT CUresult name parameters;                                                         \
  EXPORT CUresult name parameters {                                                        \
    return stub_device()->member(__VA_ARGS__);                                             \
  }

FUNCTION(cuInit, init, (unsigned flags), flags)
FUNCTION(cuGetErrorName, get_error_name, (CUresult rc, const char **name), rc, name)
FUNCTION(cuGetErrorString, get_error_string, (CUresult rc, const char **text), rc, text)
FUNCTION(cuDeviceGetCount, device_get_count, (int *count), count)
FUNCTION(cuDeviceGet, device_get, (CUdevice * d, int ordinal), d, ordinal)
FUNCTION(cuDeviceGetName, device_get_name, (char *s, int n, CUdevice d), s, n, d)
FUNCTION(cuDeviceGetUuid_v2, device_get_uuid, (CUuuid * uuid, CUdevice d), uuid, d)
FUNCTION(cuDeviceGetPCIBusId, device_get_pci_bus_id, (char *s, int n, CUdevice d), s, n, d)
FUNCTION(cuDeviceTotalMem_v2, device_total_mem, (size_t * n, CUdevice d), n, d)
FUNCTION(cuDevicePrimaryCtxRetain, primary_ctx_retain, (CUcontext * c, CUdevice d), c, d)
FUNCTION(cuDevicePrimaryCtxRelease_v2, primary_ctx_release, (CUdevice d), d)
FUNCTION(cuCtxSetCurrent, ctx_set_current, (CUcontext c), c)
FUNCTION(cuCtxGetCurrent, ctx_get_current, (CUcontext * c), c)
FUNCTION(cuCtxSynchronize, ctx_synchronize, (void), )
FUNCTION(cuCtxGetStreamPriorityRange, ctx_get_stream_priority_range,
         (int *least, int *greatest), least, greatest)

FUNCTION(cuMemGetInfo_v2, mem_get_info, (size_t * a, size_t *b), a, b)
FUNCTION(cuMemAlloc_v2, mem_alloc, (CUdeviceptr * p, size_t n), p, n)
FUNCTION(cuMemFree_v2, mem_free, (CUdeviceptr p), p)
FUNCTION(cuMemHostAlloc, mem_host_alloc, (void **p, size_t n, unsigned flags), p, n, flags)
FUNCTION(cuMemFreeHost, mem_free_host, (void *p), p)
FUNCTION(cuMemcpyHtoD_v2, memcpy_htod, (CUdeviceptr d, const void *s, size_t n), d, s, n)
FUNCTION(cuMemcpyDtoH_v2, memcpy_dtoh, (void *d, CUdeviceptr s, size_t n), d, s, n)
FUNCTION(cuMemcpyHtoDAsync_v2, memcpy_htod_async,
         (CUdeviceptr d, const void *s, size_t n, CUstream stream), d, s, n, stream)
FUNCTION(cuMemcpyDtoHAsync_v2, memcpy_dtoh_async,
         (void *d, CUdeviceptr s, size_t n, CUstream stream), d, s, n, stream)
FUNCTION(cuMemcpyDtoDAsync_v2, memcpy_dtod_async,
         (CUdeviceptr d, CUdeviceptr s, size_t n, CUstream stream), d, s, n, stream)
FUNCTION(cuMemsetD8Async, memset_d8_async,
         (CUdeviceptr d, unsigned char v, size_t n, CUstream stream), d, v, n, stream)
FUNCTION(cuMemsetD16Async, fill,
         (CUdeviceptr d, unsigned short v, size_t n, CUstream stream), d, n, 2, v, stream)
FUNCTION(cuMemsetD32Async, fill, (CUdeviceptr d, unsigned v, size_t n, CUstream stream), d,
         n, 4, v, stream)

FUNCTION(cuStreamCreateWithPriority, stream_create_with_priority,
         (CUstream * s, unsigned flags, int priority), s, flags, priority)
FUNCTION(cuStreamDestroy_v2, stream_destroy, (CUstream s), s)
FUNCTION(cuStreamSynchronize, stream_synchronize, (CUstream s), s)
FUNCTION(cuStreamQuery, stream_query, (CUstream s), s)
FUNCTION(cuStreamWaitEvent, stream_wait_event, (CUstream s, CUevent e, unsigned f), s, e, f)
FUNCTION(cuStreamBeginCapture_v2, stream_begin_capture, (CUstream s, int mode), s, mode)
FUNCTION(cuStreamEndCapture, stream_end_capture, (CUstream s, CUgraph *g), s, g)

FUNCTION(cuEventCreate, event_create, (CUevent * e, unsigned flags), e, flags)
FUNCTION(cuEventDestroy_v2, event_destroy, (CUevent e), e)
FUNCTION(cuEventRecord, event_record, (CUevent e, CUstream s), e, s)
FUNCTION(cuEventQuery, event_query, (CUevent e), e)
FUNCTION(cuEventSynchronize, event_synchronize, (CUevent e), e)
FUNCTION(cuEventElapsedTime, event_elapsed_time, (float *ms, CUevent a, CUevent b), ms, a,
         b)

FUNCTION(cuGraphInstantiateWithFlags, graph_instantiate,
         (CUgraphExec * x, CUgraph g, unsigned long long flags), x, g, flags)
FUNCTION(cuGraphLaunch, graph_launch, (CUgraphExec x, CUstream s), x, s)
FUNCTION(cuGraphExecDestroy, graph_exec_destroy, (CUgraphExec x), x)
FUNCTION(cuGraphDestroy, graph_destroy, (CUgraph g), g)

/* What the CPU backend's table does not have. */
EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  CUresult rc = stub_device()->device_get_attribute(value, attribute, device);
  /* A number that a compiler knows, so that kernels are compiled and loaded as ever. */
  if (!rc && attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) *value = 8;
  if (!rc && attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) *value = 0;
  return rc;
}

EXPORT CUresult cuDriverGetVersion(int *version);
EXPORT CUresult cuDriverGetVersion(int *version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device);
EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
  *device = cpu_device_current();
  return *device < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *mode);
EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  static _Thread_local int current = CU_STREAM_CAPTURE_MODE_GLOBAL;
  int before = current;
  current = *mode;
  *mode = before;
  return CUDA_SUCCESS;
}

/* NVRTC 13 looks for a driver, and crashes if it has no such function; "none" it takes. */
EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *id);
EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *id) {
  (void)id;
  *table = NULL;
  return CUDA_ERROR_NOT_FOUND;
}
