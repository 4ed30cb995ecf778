#include "tests/host/cpu_cases.h"
#include "host/dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 64 /* bytes behind the output that must stay as they are */
#define GUARD_BYTE 0xa5

static const char *const names[FUNCTIONS] = {"all_reduce",
                                             "reduce",
                                             "broadcast",
                                             "all_gather",
                                             "reduce_scatter",
                                             "all_to_all",
                                             "gather",
                                             "scatter"};

static char *at(CUdeviceptr ptr) {
  return (char *)(uintptr_t)ptr;
}

bool buffers_open(struct rank *r, struct buffers *b, size_t bytes) {
  b->bytes = bytes;
  return EXPECT_RC(r, cpu_device.mem_alloc(&b->send, bytes + GUARD), 0) &&
         EXPECT_RC(r, cpu_device.mem_alloc(&b->recv, bytes + GUARD), 0);
}

void buffers_close(struct rank *r, struct buffers *b) {
  EXPECT_RC(r, cpu_device.mem_free(b->send), 0);
  EXPECT_RC(r, cpu_device.mem_free(b->recv), 0);
}

static bool reduces(const struct cpu_case *c) {
  return c->function == ALL_REDUCE || c->function == REDUCE ||
         c->function == REDUCE_SCATTER;
}

/* How many blocks of `count` the two buffers of this rank hold. */
static size_t send_blocks(const struct cpu_case *c, const struct rank *r) {
  bool is_root = r->index == c->root;
  switch (c->function) {
    case BROADCAST: return is_root;
    case SCATTER: return is_root ? (size_t)r->count : 0;
    case REDUCE_SCATTER:
    case ALL_TO_ALL: return (size_t)r->count;
    default: return 1;
  }
}

static size_t recv_blocks(const struct cpu_case *c, const struct rank *r) {
  bool is_root = r->index == c->root;
  switch (c->function) {
    case REDUCE: return is_root;
    case GATHER: return is_root ? (size_t)r->count : 0;
    case ALL_GATHER:
    case ALL_TO_ALL: return (size_t)r->count;
    default: return 1;
  }
}

size_t case_bytes(const struct cpu_case *c, int ranks) {
  bool single = c->function <= BROADCAST;
  return c->count * dtype_size(c->type) * (single ? 1 : (size_t)ranks);
}

static bool is_f8(ncclDataType_t type) {
  return type == ncclFloat8e4m3 || type == ncclFloat8e5m2;
}

/* Small whole numbers, so that every sum and product is exact in every type. */
static int value(const struct cpu_case *c, int rank, size_t i) {
  size_t mixed = (size_t)rank * 3 + i;
  if (!reduces(c)) return (int)((mixed * 7 + i / 64) % (is_f8(c->type) ? 8 : 97));
  if (c->op == ncclProd) return (int)(1 + ((size_t)rank + i) % 3 / 2);
  if (c->op == ncclSum || c->op == ncclAvg) return (int)(mixed % (is_f8(c->type) ? 2 : 5));
  return (int)(mixed % (c->op == DOUBLED_SUM ? 2 : 5));
}

static double reduced(const struct cpu_case *c, int ranks, size_t i) {
  double result = value(c, 0, i);
  for (int k = 1; k < ranks; k++) {
    double x = value(c, k, i);
    switch (c->op) {
      case ncclProd: result *= x; break;
      case ncclMax: result = fmax(result, x); break;
      case ncclMin: result = fmin(result, x); break;
      default: result += x;
    }
  }
  if (c->op == DOUBLED_SUM) return 2 * result;
  if (c->op != ncclAvg) return result;
  return dtype_is_float(c->type) ? result / ranks : floor(result / ranks);
}

static double expected(const struct cpu_case *c, const struct rank *r, size_t i) {
  size_t mine = (size_t)r->index * c->count;
  switch (c->function) {
    case BROADCAST: return value(c, c->root, i);
    case REDUCE_SCATTER: return reduced(c, r->count, mine + i);
    case ALL_GATHER:
    case GATHER: return value(c, (int)(i / c->count), i % c->count);
    case ALL_TO_ALL: return value(c, (int)(i / c->count), mine + i % c->count);
    case SCATTER: return value(c, c->root, mine + i);
    default: return reduced(c, r->count, i);
  }
}

/* An average by a number of ranks that is no power of two is rounded at each step. */
static double tolerance(const struct cpu_case *c, int ranks) {
  if (c->op != ncclAvg || !reduces(c) || !dtype_is_float(c->type)) return 0;
  if ((ranks & (ranks - 1)) == 0) return 0;
  switch ((int)c->type) {
    case ncclFloat64: return ranks * 1e-15;
    case ncclFloat32: return ranks * 1e-6;
    case ncclFloat16: return ranks * 4e-3;
    case ncclBfloat16: return ranks * 3e-2;
    default: return ranks * 0.125;
  }
}

static const char *send_at(const struct rank *r, const struct cpu_case *c,
                           const struct buffers *b) {
  size_t block = c->count * dtype_size(c->type);
  if (!c->in_place) return at(b->send);
  switch (c->function) {
    case ALL_GATHER: return at(b->recv) + (size_t)r->index * block;
    case GATHER:
      return r->index == c->root ? at(b->recv) + (size_t)r->index * block : at(b->send);
    case ALL_TO_ALL: return at(b->send); /* NCCL has no such in-place form */
    default: return at(b->recv);
  }
}

/* In place, a reduce_scatter's or scatter's output lies within its input. */
static char *recv_at(const struct rank *r, const struct cpu_case *c,
                     const struct buffers *b) {
  size_t block = c->count * dtype_size(c->type);
  bool within =
    c->function == REDUCE_SCATTER || (c->function == SCATTER && r->index == c->root);
  return at(b->recv) + (c->in_place && within ? (size_t)r->index * block : 0);
}

static void fill(const struct rank *r, const struct cpu_case *c, const struct buffers *b) {
  size_t element = dtype_size(c->type);
  memset(at(b->recv), GUARD_BYTE, case_bytes(c, r->count) + GUARD);
  char *send = (char *)(uintptr_t)send_at(r, c, b);
  for (size_t i = 0; i < send_blocks(c, r) * c->count; i++) {
    uint64_t bits = 0;
    dtype_from_integer(c->type, value(c, r->index, i), &bits);
    memcpy(send + i * element, &bits, element);
  }
}

static ncclResult_t call(struct rank *r, const struct cpu_case *c, const void *send,
                         void *recv, ncclRedOp_t op) {
  const struct coll_api *a = &cpu_coll;
  size_t n = c->count;
  switch (c->function) {
    case ALL_REDUCE: return a->all_reduce(send, recv, n, c->type, op, r->comm, NULL);
    case REDUCE: return a->reduce(send, recv, n, c->type, op, c->root, r->comm, NULL);
    case BROADCAST: return a->broadcast(send, recv, n, c->type, c->root, r->comm, NULL);
    case ALL_GATHER: return a->all_gather(send, recv, n, c->type, r->comm, NULL);
    case REDUCE_SCATTER:
      return a->reduce_scatter(send, recv, n, c->type, op, r->comm, NULL);
    case ALL_TO_ALL: return a->all_to_all(send, recv, n, c->type, r->comm, NULL);
    case GATHER: return a->gather(send, recv, n, c->type, c->root, r->comm, NULL);
    default: return a->scatter(send, recv, n, c->type, c->root, r->comm, NULL);
  }
}

bool case_start(struct rank *r, const struct cpu_case *c, const struct buffers *b) {
  ncclRedOp_t op = c->op;
  uint64_t two = 0;
  fill(r, c, b);
  if (c->op == DOUBLED_SUM) {
    dtype_from_integer(c->type, 2, &two);
    ncclResult_t rc = cpu_coll.red_op_create_pre_mul_sum(
      &op, &two, c->type, ncclScalarHostImmediate, r->comm);
    if (!EXPECT_RC(r, rc, ncclSuccess)) return false;
  }
  /* What a rank does not need may be NULL. */
  const void *send = send_blocks(c, r) ? send_at(r, c, b) : NULL;
  void *recv = recv_blocks(c, r) ? recv_at(r, c, b) : NULL;
  bool started = EXPECT_RC(r, call(r, c, send, recv, op), ncclSuccess);
  if (c->op == DOUBLED_SUM) {
    started = EXPECT_RC(r, cpu_coll.red_op_destroy(op, r->comm), 0) && started;
  }
  return started;
}

static bool is_intact(const char *bytes) {
  for (size_t i = 0; i < GUARD; i++) {
    if ((unsigned char)bytes[i] != GUARD_BYTE) return false;
  }
  return true;
}

static bool fail_case(struct rank *r, const struct cpu_case *c, size_t i, double got) {
  return rank_fail(r,
                   __FILE__,
                   __LINE__,
                   "%s %s op %d count %zu root %d%s: element %zu is %g, expected %g",
                   names[c->function],
                   dtype_names[c->type],
                   c->op,
                   c->count,
                   c->root,
                   c->in_place ? " in place" : "",
                   i,
                   got,
                   expected(c, r, i));
}

bool case_check(struct rank *r, const struct cpu_case *c, const struct buffers *b) {
  size_t element = dtype_size(c->type), count = recv_blocks(c, r) * c->count;
  const char *recv = recv_at(r, c, b);
  double allowed = tolerance(c, r->count);
  for (size_t i = 0; i < count; i++) {
    uint64_t bits = 0;
    memcpy(&bits, recv + i * element, element);
    double got = dtype_to_double(c->type, bits), want = expected(c, r, i);
    if (!(fabs(got - want) <= allowed)) return fail_case(r, c, i, got);
  }
  return EXPECT(r, is_intact(at(b->recv) + case_bytes(c, r->count)));
}

bool case_run(struct rank *r, const struct cpu_case *c, const struct buffers *b) {
  if (!EXPECT(r, case_bytes(c, r->count) <= b->bytes)) return false;
  if (!case_start(r, c, b)) return false;
  rank_sync(r);
  return case_check(r, c, b);
}
