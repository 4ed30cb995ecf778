/* The rows of cupti_abi.def as the vendor's headers have them. */
#include "tests/plugins/cupti_abi.h"

#include <cuda.h>
#include <cupti.h>
#include <stddef.h>

const uint32_t cupti_abi_version = CUPTI_API_VERSION;

const struct cupti_abi_row cupti_abi_vendors[] = {
#define VALUE(name) {#name, (long long)(name)},
#define MEMBER(ours, theirs, member)                                                       \
  {#theirs "." #member, (long long)offsetof(theirs, member)},
#define LATER(place, theirs, member)                                                       \
  {#theirs "." #member, (long long)offsetof(theirs, member)},
#include "tests/plugins/cupti_abi.def"
#define DRIVER(name, number) {#name, CUPTI_DRIVER_TRACE_CBID_##name},
#define RUNTIME(name, number) {#name, CUPTI_RUNTIME_TRACE_CBID_##name},
#include "plugins/trace/launches.def"
  {NULL, 0},
};
