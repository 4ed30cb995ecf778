#ifndef HOST_CUDA_DRIVER_H
#define HOST_CUDA_DRIVER_H

/* Driver calls that only this folder needs; filled by cuda_device.load. */

#include "host/abi_cuda.h"

struct CUgraphNode_st;

struct driver {
  int version; /* 13000 is CUDA 13.0 */
  CUresult (*ctx_get_device)(CUdevice *device);
  CUresult (*primary_ctx_release)(CUdevice device);
  CUresult (*memset_d16_async)(CUdeviceptr dst, unsigned short value, size_t count,
                               CUstream stream);
  CUresult (*memset_d32_async)(CUdeviceptr dst, unsigned value, size_t count,
                               CUstream stream);
  CUresult (*thread_exchange_stream_capture_mode)(int *mode);
  CUresult (*graph_instantiate_11_0)(CUgraphExec *exec, CUgraph graph,
                                     struct CUgraphNode_st **error_node, char *log,
                                     size_t log_bytes);
};
extern struct driver cuda_driver;

/* The result's name, a static string, never NULL. */
const char *driver_error_name(CUresult rc);

#endif
