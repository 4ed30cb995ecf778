#ifndef HOST_CUDA_KERNELS_H
#define HOST_CUDA_KERNELS_H

/* Fill, pattern, compare and spin on the GPU. Where NVRTC is missing, pattern and compare
   go through the host, which is announced once; spin is not supported then. */

#include "host/backend.h"

CUresult kernels_fill(CUdeviceptr dst, size_t count, size_t element_bytes, uint64_t bits,
                      CUstream stream);
CUresult kernels_pattern(CUdeviceptr dst, size_t count, ncclDataType_t type,
                         const struct pattern *p, CUstream stream);
CUresult kernels_compare(const struct compare *what, struct mismatch *out, CUstream stream);
CUresult kernels_spin(unsigned microseconds, CUstream stream);

/* Forgets what is loaded on a device whose context may go. */
void kernels_unload(CUdevice device);

#endif
