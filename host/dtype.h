#ifndef HOST_DTYPE_H
#define HOST_DTYPE_H

/* NCCL's data types by the names that scripts use: "i8 u8 i32 u32 i64 u64 f16 f32 f64 bf16
   f8e4m3 f8e5m2", in the order of ncclDataType_t. */

#include "host/abi_nccl.h"

#include <stdbool.h>
#include <stdint.h>

/* NULL-terminated, indexed by ncclDataType_t. */
extern const char *const dtype_names[ncclNumTypes + 1];

size_t dtype_size(ncclDataType_t type);
bool dtype_is_float(ncclDataType_t type);

/* The bits of one element, in the low bytes; a double is rounded to nearest even. For an
   integer dtype the value must lie in its range: false if it does not (or is not whole). */
bool dtype_from_double(ncclDataType_t type, double value, uint64_t *bits);
bool dtype_from_integer(ncclDataType_t type, int64_t value, uint64_t *bits);

/* One element as a double; exact for all but 64-bit integers beyond 2^53. */
double dtype_to_double(ncclDataType_t type, uint64_t bits);

#endif
