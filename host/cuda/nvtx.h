#ifndef HOST_CUDA_NVTX_H
#define HOST_CUDA_NVTX_H

/* Named ranges for a profiler: NVTX 3's protocol, in which the program opens the library
   that the profiler names (NVTX_INJECTION64_PATH) and no library of NVTX is needed. */

struct device_api;

/* Fills range_push and range_pop if a profiler listens, else leaves them NULL. */
void nvtx_open(struct device_api *api);

#endif
