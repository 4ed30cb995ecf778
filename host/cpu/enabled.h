#ifndef HOST_CPU_ENABLED_H
#define HOST_CPU_ENABLED_H

/* What NCCL_ALGO and NCCL_PROTO leave, in the syntax of NCCL 2.24 and later:
   "ring;allreduce:tree,pat" and "^ll;allgather:simple". */

#include "host/abi_nccl.h"
#include "host/cpu/numbers.h"

#include <stdbool.h>

struct cpu_enabled {
  bool is_set; /* by at least one of the two variables */
  unsigned char algorithms[CPU_MODELLED][CPU_ALGORITHMS];
  /* 2: not said; NCCL decides for LL128 by the hardware. */
  unsigned char protocols[CPU_MODELLED][CPU_PROTOCOLS];
};

/* ncclInvalidUsage if a variable has a mistake. */
ncclResult_t cpu_enabled_read(struct cpu_enabled *enabled);

/* NCCL's names, by its numbers. */
extern const char *const cpu_function_names[CPU_FUNCTIONS];
extern const char *const cpu_algorithm_names[CPU_ALGORITHMS];
extern const char *const cpu_protocol_names[CPU_PROTOCOLS];

#endif
