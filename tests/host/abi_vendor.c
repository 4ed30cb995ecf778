#include "tests/host/abi_rows.h"

/* The vendors' types under our declarations: the host's headers without its own ABI. */
#define __CUDA_API_VERSION_INTERNAL /* all names, those of older versions too */
#include <cuda.h>
#include <nccl.h>
#define HOST_ABI_CUDA_H
#define HOST_ABI_NCCL_H
#include "host/backend.h"
#include "host/cuda/driver.h"
#include "host/cuda/nccl.h"

#include <stddef.h>

const struct abi_row abi_vendors[] = {
#define VALUE(name) {#name, (long long)(name)},
#define SIZE(type) {"sizeof " #type, (long long)sizeof(type)},
#define OFFSET(type, member) {#type "." #member, (long long)offsetof(type, member)},
#include "tests/host/abi.def"
  {NULL, 0},
};

/* Where an enum of the vendor's is an int of ours, the header is checked against the enum,
   and the host against the int, which is passed the same way. */
#define SAME(a, b) __builtin_types_compatible_p(a, b)
_Static_assert(sizeof(CUdevice_attribute) == sizeof(int), "passed as int");
_Static_assert(sizeof(CUstreamCaptureMode) == sizeof(int), "passed as int");
_Static_assert(SAME(__typeof__(cuDeviceGetAttribute),
                    CUresult(int *, CUdevice_attribute, CUdevice)),
               "cuDeviceGetAttribute");
_Static_assert(SAME(__typeof__(cuStreamBeginCapture_v2),
                    CUresult(CUstream, CUstreamCaptureMode)),
               "cuStreamBeginCapture_v2");
_Static_assert(SAME(__typeof__(cuThreadExchangeStreamCaptureMode),
                    CUresult(CUstreamCaptureMode *)),
               "cuThreadExchangeStreamCaptureMode");
CUresult with_int_attribute(int *, int, CUdevice);
CUresult with_int_mode(CUstream, int);
CUresult with_int_exchange(int *);
#define cuDeviceGetAttribute with_int_attribute
#define cuStreamBeginCapture_v2 with_int_mode
#define cuThreadExchangeStreamCaptureMode with_int_exchange

/* Each row of the symbol tables: the function's type is the member's. */
#define ROW(name, slot)                                                                    \
  _Static_assert(SAME(__typeof__(&(name)), __typeof__(slot)), #name " has another type");
#define MAYBE(name, slot) ROW(name, slot)
#define SINCE(minor, name, slot) ROW(name, slot)
#define NEWER(name, before, slot) ROW(name, slot) ROW(before, slot)
#include "host/cuda/driver.def"
#include "host/cuda/nccl.def"
