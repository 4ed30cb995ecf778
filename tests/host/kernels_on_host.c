#include "tests/host/kernels_on_host.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

/* What CUDA's compiler knows by itself. */
struct index {
  unsigned x;
};
static _Thread_local struct index threadIdx, blockIdx, blockDim, gridDim;

static uint64_t clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void atomicAdd(unsigned long long *to, unsigned long long value) {
  __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

static void atomicMin(unsigned long long *to, unsigned long long value) {
  unsigned long long seen = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (value < seen && !__atomic_compare_exchange_n(
                           to, &seen, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    continue;
  }
}

#define KERNEL static
#include "host/cuda/kernels.cu"

/* Every thread of the grid, one after the other. */
#define EACH_THREAD(grid, call)                                                            \
  gridDim.x = (grid)->grid_x;                                                              \
  blockDim.x = (grid)->block_x;                                                            \
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)                               \
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) call

#define AS(type, i) (*(type *)parameters[i])

static void run_fill(const struct kernels_grid *grid, void **parameters) {
  EACH_THREAD(grid, nclua_fill(AS(void *, 0), AS(uint64_t, 1), AS(uint64_t, 2)));
}

static void run_pattern(const struct kernels_grid *grid, void **parameters) {
  EACH_THREAD(grid,
              nclua_pattern(AS(void *, 0),
                            AS(uint64_t, 1),
                            AS(int, 2),
                            AS(uint64_t, 3),
                            AS(uint64_t, 4),
                            AS(uint64_t, 5)));
}

static void run_compare(const struct kernels_grid *grid, void **parameters) {
  EACH_THREAD(grid,
              nclua_compare(AS(const void *, 0),
                            AS(const void *, 1),
                            AS(uint64_t, 2),
                            AS(int, 3),
                            AS(uint64_t, 4),
                            AS(double, 5),
                            AS(unsigned long long *, 6)));
}

static void run_spin(const struct kernels_grid *grid, void **parameters) {
  EACH_THREAD(grid, nclua_spin(AS(uint64_t, 0)));
}

static const struct {
  const char *name;
  kernels_function *run;
  size_t sizes[8];
} kernels[] = {
  {"nclua_fill", run_fill, {8, 8, 8}},
  {"nclua_pattern", run_pattern, {8, 8, 4, 8, 8, 8}},
  {"nclua_compare", run_compare, {8, 8, 8, 4, 8, 8, 8}},
  {"nclua_spin", run_spin, {8}},
};

kernels_function *kernels_on_host(const char *name, const size_t **sizes) {
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    if (strcmp(kernels[i].name, name) != 0) continue;
    *sizes = kernels[i].sizes;
    return kernels[i].run;
  }
  return NULL;
}
