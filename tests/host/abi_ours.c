#include "tests/host/abi_rows.h"

#include "host/abi_cuda.h"
#include "host/abi_nccl.h"

#include <stddef.h>

const struct abi_row abi_ours[] = {
#define VALUE(name) {#name, (long long)(name)},
#define SIZE(type) {"sizeof " #type, (long long)sizeof(type)},
#define OFFSET(type, member) {#type "." #member, (long long)offsetof(type, member)},
#include "tests/host/abi.def"
  {NULL, 0},
};
