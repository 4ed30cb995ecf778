#ifndef HOST_CPU_KERNELS_H
#define HOST_CPU_KERNELS_H

/* The loops under reduce.h. kernels.c is compiled once for any processor of the family and
   once for AVX2 and F16C; both give the same bits. */

#include "host/abi_nccl.h"

#include <stdint.h>

struct cpu_kernels {
  void (*reduce[ncclNumTypes][4])(void *dst, const void *a, const void *b, size_t count);
  void (*premultiply[ncclNumTypes])(void *dst, const void *src, uint64_t scalar,
                                    size_t count);
  void (*postdivide[ncclNumTypes])(void *dst, const void *src, uint64_t divisor,
                                   size_t count);
};

/* The second one exists where the build defines CPU_KERNELS_HAVE_AVX2. */
extern const struct cpu_kernels cpu_kernels_plain, cpu_kernels_avx2;

#endif
