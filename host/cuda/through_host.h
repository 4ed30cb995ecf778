#ifndef HOST_CUDA_THROUGH_HOST_H
#define HOST_CUDA_THROUGH_HOST_H

/* The kernels' work without a compiler: on the host, and copied. They wait for the stream,
   so none of them can be captured. */

#include "host/backend.h"

CUresult through_host_fill(CUdeviceptr dst, size_t count, uint64_t bits, CUstream stream);
CUresult through_host_pattern(CUdeviceptr dst, size_t count, ncclDataType_t type,
                              const struct pattern *p, CUstream stream);
CUresult through_host_compare(const struct compare *what, struct mismatch *out,
                              CUstream stream);

#endif
