/* Modules and kernels of the driver's look-alike: an image is checked for being one, the
   kernels are host/cuda/kernels.cu compiled for the host. */
#include "tests/stub/stub.h"

#include "host/cpu/stream.h"
#include "tests/host/kernels_on_host.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PARAMETERS = 8 };

struct CUmod_st {
  int functions;
  struct CUfunc_st *list[8];
};

struct CUfunc_st {
  kernels_function *run;
  const size_t *sizes;
};

struct launch {
  struct cpu_task task;
  kernels_function *run;
  struct kernels_grid grid;
  uint64_t values[MOST_PARAMETERS];
};

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image);
EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  bool is_cubin = memcmp(image, "\177ELF", 4) == 0;
  if (!is_cubin && !strstr(image, ".version")) return CUDA_ERROR_INVALID_VALUE;
  if (cpu_device_current() < 0) return CUDA_ERROR_INVALID_CONTEXT;
  *module = calloc(1, sizeof **module);
  return *module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuModuleUnload(CUmodule module);
EXPORT CUresult cuModuleUnload(CUmodule module) {
  for (int i = 0; i < module->functions; i++) free(module->list[i]);
  free(module);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                                    const char *name);
EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                                    const char *name) {
  const size_t *sizes = NULL;
  kernels_function *run = kernels_on_host(name, &sizes);
  if (!run || module->functions == 8) return CUDA_ERROR_NOT_FOUND;
  *function = malloc(sizeof **function);
  if (!*function) return CUDA_ERROR_OUT_OF_MEMORY;
  **function = (struct CUfunc_st){run, sizes};
  module->list[module->functions++] = *function;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset,
                                   size_t *bytes);
EXPORT CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset,
                                   size_t *bytes) {
  for (size_t i = 0; f->sizes[i]; i++) {
    *offset = 8 * i;
    *bytes = f->sizes[i];
    if (i == index) return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

static void run(struct cpu_task *task, uint64_t ticket) {
  struct launch *l = (struct launch *)task;
  void *parameters[MOST_PARAMETERS];
  (void)ticket;
  for (int i = 0; i < MOST_PARAMETERS; i++) parameters[i] = &l->values[i];
  l->run(&l->grid, parameters);
}

static void release(struct cpu_task *task) {
  free(task);
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared_bytes, CUstream stream,
                               void **parameters, void **extra);
EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared_bytes, CUstream stream,
                               void **parameters, void **extra) {
  (void)shared_bytes;
  if (extra || grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (grid_x == 0 || block_x == 0 || block_x > 1024) return CUDA_ERROR_INVALID_VALUE;
  struct launch *l = malloc(sizeof *l);
  if (!l) return CUDA_ERROR_OUT_OF_MEMORY;
  *l = (struct launch){{NULL, run, release, 1}, f->run, {grid_x, block_x}, {0}};
  for (size_t i = 0; f->sizes[i]; i++) memcpy(&l->values[i], parameters[i], f->sizes[i]);
  return cpu_stream_submit(stream, &l->task);
}
