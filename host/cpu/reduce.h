#ifndef HOST_CPU_REDUCE_H
#define HOST_CPU_REDUCE_H

/* Elementwise arithmetic on NCCL's data types, as a GPU's NCCL does it: the result is
   rounded to the data type at every step. Vectorised behind run-time dispatch. */

#include "host/abi_nccl.h"

#include <stdint.h>

/* dst[i] = a[i] op b[i] for ncclSum, ncclProd, ncclMax, ncclMin; dst may be a or b. Integer
   arithmetic wraps. */
void cpu_reduce(ncclDataType_t type, ncclRedOp_t op, void *dst, const void *a,
                const void *b, size_t count);

/* dst[i] = src[i] * scalar (bits of one element), rounded: NCCL's pre-multiplication. */
void cpu_premultiply(ncclDataType_t type, void *dst, const void *src, uint64_t scalar,
                     size_t count);

/* dst[i] = src[i] / divisor for integer types: NCCL's ncclAvg divides after the sum. */
void cpu_postdivide(ncclDataType_t type, void *dst, const void *src, uint64_t divisor,
                    size_t count);

#endif
