#include "host/cpu/reduce.h"

#include "host/cpu/kernels.h"

#include <stdlib.h>
#include <string.h>

static const struct cpu_kernels *choose(void) {
#ifdef CPU_KERNELS_HAVE_AVX2
  const char *wanted = getenv("NCLUA_CPU_SIMD");
  const int is_off = wanted && strcmp(wanted, "off") == 0;
  if (!is_off && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) {
    return &cpu_kernels_avx2;
  }
#endif
  return &cpu_kernels_plain;
}

static const struct cpu_kernels *kernels(void) {
  static const struct cpu_kernels *chosen; /* atomic; all threads choose the same */
  const struct cpu_kernels *k = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
  if (k) return k;
  k = choose();
  __atomic_store_n(&chosen, k, __ATOMIC_RELEASE);
  return k;
}

void cpu_reduce(ncclDataType_t type, ncclRedOp_t op, void *dst, const void *a,
                const void *b, size_t count) {
  kernels()->reduce[type][op](dst, a, b, count);
}

void cpu_premultiply(ncclDataType_t type, void *dst, const void *src, uint64_t scalar,
                     size_t count) {
  kernels()->premultiply[type](dst, src, scalar, count);
}

void cpu_postdivide(ncclDataType_t type, void *dst, const void *src, uint64_t divisor,
                    size_t count) {
  kernels()->postdivide[type](dst, src, divisor, count);
}
