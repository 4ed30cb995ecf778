#include "host/cpu/redop.h"
#include "host/cpu/comm.h"
#include "host/cpu/fail.h"
#include "host/cpu/reduce.h"
#include "host/dtype.h"

#include <stdlib.h>
#include <string.h>

/* One more pass over data in the first-level cache costs little, one over more does not. */
#define BLOCK_BYTES ((size_t)8 << 10)

struct cpu_user_redop {
  bool used;
  struct cpu_redop redop;
};

static ncclResult_t resolve_average(struct cpu_redop *redop, ncclComm_t comm) {
  redop->base = ncclSum;
  if (!dtype_is_float(redop->type)) {
    redop->post_divide = (uint64_t)comm->nranks;
    return ncclSuccess;
  }
  redop->pre_multiply = comm->nranks > 1;
  dtype_from_double(redop->type, 1.0 / comm->nranks, &redop->scalar);
  return ncclSuccess;
}

/* A handle carries its communicator's mark, so that another's is not mistaken for it. */
static ncclRedOp_t mark_of(ncclComm_t comm) {
  return (ncclRedOp_t)((uint32_t)(unsigned char)comm->id.internal[8] << 20) +
         ((comm->rank & 0x7) << 28);
}

static struct cpu_user_redop *find(ncclRedOp_t op, ncclComm_t comm) {
  size_t index = (size_t)(op - mark_of(comm) - ncclNumOps);
  if (op < ncclNumOps || index >= comm->redops.count) return NULL;
  struct cpu_user_redop *user = comm->redops.list + index;
  return user->used ? user : NULL;
}

ncclResult_t cpu_redop_resolve(struct cpu_redop *redop, ncclRedOp_t op, ncclDataType_t type,
                               ncclComm_t comm) {
  *redop = (struct cpu_redop){.type = type, .base = op};
  if (op >= 0 && op < ncclAvg) return ncclSuccess;
  if (op == ncclAvg) return resolve_average(redop, comm);
  const struct cpu_user_redop *user = find(op, comm);
  if (!user) {
    return cpu_fail(
      ncclInvalidArgument, "%d is not a reduction operator of this communicator", op);
  }
  *redop = user->redop;
  if (type == redop->type) return ncclSuccess;
  return cpu_fail(ncclInvalidArgument,
                  "the operator was made for %s, but the data is %s",
                  dtype_names[redop->type],
                  dtype_names[type]);
}

void cpu_redop_load(struct cpu_redop *redop) {
  if (redop->deferred) memcpy(&redop->scalar, redop->deferred, dtype_size(redop->type));
}

static struct cpu_user_redop *find_free(struct cpu_redops *ops) {
  for (size_t i = 0; i < ops->count; i++) {
    if (!ops->list[i].used) return ops->list + i;
  }
  struct cpu_user_redop *list = realloc(ops->list, (ops->count + 1) * sizeof *list);
  if (!list) return NULL;
  ops->list = list;
  return ops->list + ops->count++;
}

ncclResult_t cpu_redop_create_pre_mul_sum(ncclRedOp_t *op, void *scalar,
                                          ncclDataType_t type,
                                          ncclScalarResidence_t residence,
                                          ncclComm_t comm) {
  ncclResult_t rc = cpu_comm_check(comm);
  if (rc) return rc;
  if (!op || !scalar) return cpu_fail(ncclInvalidArgument, "op or scalar is NULL");
  if ((int)type < 0 || type >= ncclNumTypes) {
    return cpu_fail(ncclInvalidArgument, "%d is not a data type", (int)type);
  }
  struct cpu_user_redop *user = find_free(&comm->redops);
  if (!user) return cpu_fail(ncclSystemError, "out of memory");
  *user = (struct cpu_user_redop){true, {type, ncclSum, .pre_multiply = true}};
  if (residence == ncclScalarDevice)
    user->redop.deferred = scalar;
  else
    memcpy(&user->redop.scalar, scalar, dtype_size(type));
  *op = ncclNumOps + mark_of(comm) + (ncclRedOp_t)(user - comm->redops.list);
  return ncclSuccess;
}

ncclResult_t cpu_redop_destroy(ncclRedOp_t op, ncclComm_t comm) {
  if (!comm || comm->magic != CPU_COMM_MAGIC) {
    return cpu_fail(ncclInvalidArgument, "not a communicator");
  }
  struct cpu_user_redop *user = find(op, comm);
  if (!user) return cpu_fail(ncclInvalidArgument, "%d is not a user's operator", op);
  user->used = false;
  return ncclSuccess;
}

/* The first destination from all sources. */
static void combine(const struct cpu_redop *op, const struct cpu_operands *w, size_t at,
                    size_t count, size_t bytes) {
  char *dst = (char *)w->dst[0] + at;
  const char *first = (const char *)w->src[0] + at;
  if (w->pre && op->pre_multiply) {
    cpu_premultiply(op->type, dst, first, op->scalar, count);
    first = dst;
  } else if (w->nsrc == 1 && first != dst) {
    memcpy(dst, first, bytes);
  }
  for (int i = 1; i < w->nsrc; i++) {
    cpu_reduce(op->type, op->base, dst, first, (const char *)w->src[i] + at, count);
    first = dst;
  }
  if (w->post && op->post_divide) {
    cpu_postdivide(op->type, dst, dst, op->post_divide, count);
  }
}

void cpu_redop_apply(const struct cpu_redop *op, const struct cpu_operands *w, size_t count,
                     size_t element) {
  bool plain = w->ndst == 1; /* nothing is gained by blocks */
  size_t block = plain ? count : BLOCK_BYTES / element;
  for (size_t done = 0; done < count; done += block) {
    size_t n = count - done < block ? count - done : block;
    combine(op, w, done * element, n, n * element);
    for (int i = 1; i < w->ndst; i++) {
      char *dst = (char *)w->dst[i] + done * element;
      const char *src = (const char *)w->dst[0] + done * element;
      if (dst != src) memcpy(dst, src, n * element);
    }
  }
}
