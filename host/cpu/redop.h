#ifndef HOST_CPU_REDOP_H
#define HOST_CPU_REDOP_H

/* Reduction operators, resolved as NCCL resolves them: ncclAvg multiplies floats by 1/n
   before the sum and divides integers by n after it; a user's operator multiplies by a
   scalar of its own. */

#include "host/abi_nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ready to use for one data type. */
struct cpu_redop {
  ncclDataType_t type;
  ncclRedOp_t base;     /* ncclSum, ncclProd, ncclMax or ncclMin */
  bool pre_multiply;    /* each rank's own input by `scalar` */
  uint64_t post_divide; /* the final sum; 0: no */
  uint64_t scalar;      /* bits of one element */
  const void *deferred; /* the scalar is read here when the operation runs */
};

/* A communicator's own operators. */
struct cpu_redops {
  struct cpu_user_redop *list;
  size_t count;
};

/* The operator `op` on `type`; ncclInvalidArgument if there is none. */
ncclResult_t cpu_redop_resolve(struct cpu_redop *redop, ncclRedOp_t op, ncclDataType_t type,
                               ncclComm_t comm);

/* Reads a deferred scalar. */
void cpu_redop_load(struct cpu_redop *redop);

/* The members of coll_api. */
ncclResult_t cpu_redop_create_pre_mul_sum(ncclRedOp_t *op, void *scalar,
                                          ncclDataType_t type,
                                          ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t cpu_redop_destroy(ncclRedOp_t op, ncclComm_t comm);

/* What a step of a collective does with memory: the first destination becomes the
   reduction of all sources, the others copies of it. Sources and destinations are either
   the same memory or disjoint. */
struct cpu_operands {
  const void *src[5];
  void *dst[5];
  int nsrc, ndst;
  bool pre;  /* src[0] is a rank's own input: multiply it first if the operator does */
  bool post; /* the result is final */
};

void cpu_redop_apply(const struct cpu_redop *redop, const struct cpu_operands *what,
                     size_t count, size_t element_bytes);

#endif
