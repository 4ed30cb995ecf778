/* The life of communicators on the CPU backend: making them, what goes wrong there, split
   and shrink, ends in any order. */
#include "tests/host/cpu_ranks.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SOME 1000

/* Sums one number over the communicator: does it work, and how many are in it? */
static int sum_ranks(struct rank *r, ncclComm_t comm, int mine) {
  CUdeviceptr x;
  int result = -1;
  EXPECT_RC(r, cpu_device.mem_alloc(&x, sizeof mine), 0);
  EXPECT_RC(r, cpu_device.memcpy_htod(x, &mine, sizeof mine), 0);
  void *at = (void *)(uintptr_t)x;
  EXPECT_RC(r, cpu_coll.all_reduce(at, at, 1, ncclInt32, ncclSum, comm, NULL), 0);
  rank_sync(r);
  EXPECT_RC(r, cpu_device.memcpy_dtoh(&result, x, sizeof result), 0);
  EXPECT_RC(r, cpu_device.mem_free(x), 0);
  return result;
}

static bool last_error_has(struct rank *r, ncclComm_t comm, const char *words) {
  const char *text = cpu_coll.get_last_error(comm);
  if (strstr(text, words)) return true;
  return rank_fail(r, __FILE__, __LINE__, "last error is '%s', without '%s'", text, words);
}

static void properties(struct rank *r) {
  int value = -1;
  if (!rank_open(r)) return;
  EXPECT_RC(r, cpu_coll.comm_count(r->comm, &value), 0);
  EXPECT_RC(r, value, r->count);
  EXPECT_RC(r, cpu_coll.comm_user_rank(r->comm, &value), 0);
  EXPECT_RC(r, value, r->index);
  EXPECT_RC(r, cpu_coll.comm_cu_device(r->comm, &value), 0);
  EXPECT_RC(r, value, r->index);
  ncclResult_t async_error = ncclInternalError;
  EXPECT_RC(r, cpu_coll.comm_get_async_error(r->comm, &async_error), 0);
  EXPECT_RC(r, async_error, ncclSuccess);
  rank_close(r);
}

static void bad_arguments(struct rank *r) {
  ncclUniqueId foreign = {{0}};
  const int bad = ncclInvalidArgument;
  EXPECT_RC(r, cpu_coll.comm_init_rank(&r->comm, 1, foreign, 0), bad);
  EXPECT_RC(r, cpu_coll.comm_init_rank(&r->comm, 0, r->id, 0), bad);
  EXPECT_RC(r, cpu_coll.comm_init_rank(&r->comm, 2, r->id, 2), bad);
  EXPECT_RC(r, cpu_coll.comm_init_rank(&r->comm, 2, r->id, -1), bad);
  EXPECT_RC(r, cpu_coll.comm_init_rank(NULL, 1, r->id, 0), bad);
  if (!rank_open(r)) return;
  char x[8] = {0};
  const ncclDataType_t i8 = ncclInt8;
  const struct coll_api *a = &cpu_coll;
  ncclComm_t c = r->comm;
  EXPECT_RC(r, a->all_reduce(x, x, 1, i8, ncclSum, NULL, NULL), bad);
  EXPECT_RC(r, a->all_reduce(x, x, 1, ncclNumTypes, ncclSum, c, NULL), bad);
  EXPECT_RC(r, a->all_reduce(x, x, 1, i8, 77, c, NULL), bad);
  EXPECT_RC(r, a->all_reduce(x, x, 1, i8, -1, c, NULL), bad);
  EXPECT_RC(r, a->all_reduce(NULL, x, 1, i8, ncclSum, c, NULL), bad);
  EXPECT_RC(r, a->all_reduce(x, NULL, 1, i8, ncclSum, c, NULL), bad);
  EXPECT_RC(r, a->all_reduce(x, x, SIZE_MAX / 2, ncclInt64, ncclSum, c, NULL), bad);
  EXPECT_RC(r, a->broadcast(x, x, 1, i8, 1, c, NULL), bad);
  EXPECT_RC(r, a->send(x, 1, i8, -1, c, NULL), bad);
  EXPECT_RC(r, a->recv(x, 1, i8, 1, c, NULL), bad);
  EXPECT_RC(r, a->all_reduce(x, x, 1, i8, ncclSum, c, (CUstream)x), bad);
  last_error_has(r, NULL, "stream");
  rank_close(r);
}

static void operators(struct rank *r) {
  if (!rank_open(r)) return;
  float half = 0.5f, x = 3;
  ncclRedOp_t op;
  EXPECT_RC(
    r,
    cpu_coll.red_op_create_pre_mul_sum(&op, &half, ncclFloat32, ncclScalarDevice, r->comm),
    0);
  half = 2; /* a device's scalar is read when the operation runs */
  EXPECT_RC(r, cpu_coll.all_reduce(&x, &x, 1, ncclInt32, op, r->comm, NULL), 4);
  EXPECT_RC(r, cpu_coll.all_reduce(&x, &x, 1, ncclFloat32, op, r->comm, NULL), 0);
  EXPECT_RC(r, cpu_coll.red_op_destroy(op, r->comm), 0);
  rank_sync(r);
  EXPECT(r, x == 6.0f * (float)r->count);
  EXPECT_RC(r, cpu_coll.red_op_destroy(op, r->comm), ncclInvalidArgument);
  EXPECT_RC(r, cpu_coll.all_reduce(&x, &x, 1, ncclFloat32, op, r->comm, NULL), 4);
  rank_close(r);
}

static void different_counts(struct rank *r) {
  int nranks = r->index == 0 ? 2 : 3;
  EXPECT_RC(r, cpu_coll.comm_init_rank(&r->comm, nranks, r->id, r->index), 4);
  last_error_has(r, NULL, "rank 0 expects 2 ranks, but rank 1 expects 3");
}

static void same_rank_twice(struct rank *r) {
  int rank = r->index == 2 ? 1 : r->index;
  ncclResult_t rc = cpu_coll.comm_init_rank(&r->comm, 3, r->id, rank);
  EXPECT_RC(r, rc, ncclInvalidUsage);
  last_error_has(r, NULL, "two ranks say that they are rank 1");
}

static void same_device_twice(struct rank *r) {
  if (!rank_take_device(r, 0)) return;
  EXPECT_RC(r, cpu_coll.comm_init_rank(&r->comm, r->count, r->id, r->index), 5);
  last_error_has(r, NULL, "duplicate device");
}

/* Three are expected, two come. */
static void one_missing(struct rank *r) {
  EXPECT_RC(r, cpu_coll.comm_init_rank(&r->comm, 3, r->id, r->index), ncclSystemError);
  last_error_has(r, NULL, "rank 2 of 3 has not come");
  EXPECT(r, r->comm == NULL);
}

static void zero_missing(struct rank *r) {
  EXPECT_RC(r, cpu_coll.comm_init_rank(&r->comm, 2, r->id, 1), ncclSystemError);
  last_error_has(r, NULL, "rank 0 of 2 has not come");
}

static void split(struct rank *r) {
  ncclComm_t child, none;
  int place = -1, count = -1;
  if (!rank_open(r)) return;
  /* Odd and even ranks apart, the last one first. */
  EXPECT_RC(r, cpu_coll.comm_split(r->comm, r->index % 2, -r->index, &child, NULL), 0);
  EXPECT_RC(r, cpu_coll.comm_count(child, &count), 0);
  EXPECT_RC(r, count, (r->count + 1 - r->index % 2) / 2);
  EXPECT_RC(r, cpu_coll.comm_user_rank(child, &place), 0);
  EXPECT_RC(r, place, count - 1 - r->index / 2);
  int colors = r->index ? NCCL_SPLIT_NOCOLOR : 7;
  EXPECT_RC(r, cpu_coll.comm_split(r->comm, colors, 0, &none, NULL), 0);
  EXPECT(r, (none != NULL) == (r->index == 0));
  EXPECT_RC(r, sum_ranks(r, child, 1), count);
  EXPECT_RC(r, sum_ranks(r, r->comm, 1), r->count);
  rank_close(r); /* the child lives on */
  EXPECT_RC(r, sum_ranks(r, child, 10), 10 * count);
  EXPECT_RC(r, cpu_coll.comm_destroy(child), 0);
  EXPECT_RC(r, cpu_coll.comm_destroy(none), 0);
}

static void shrink(struct rank *r) {
  int out[] = {1}, flags = *(int *)r->argument;
  ncclComm_t rest;
  if (!rank_open(r)) return;
  EXPECT_RC(r, sum_ranks(r, r->comm, 1), r->count);
  if (r->index == 1) {
    EXPECT_RC(r, cpu_coll.comm_shrink(r->comm, out, 1, &rest, NULL, flags), 4);
  } else {
    EXPECT_RC(r, cpu_coll.comm_shrink(r->comm, out, 1, &rest, NULL, flags), 0);
    EXPECT_RC(r, sum_ranks(r, rest, 1), r->count - 1);
    EXPECT_RC(r, cpu_coll.comm_destroy(rest), 0);
  }
  rank_close(r);
}

static void finalize(struct rank *r) {
  if (!rank_open(r)) return;
  int x = 1;
  EXPECT_RC(r, cpu_coll.all_reduce(&x, &x, 1, ncclInt32, ncclSum, r->comm, NULL), 0);
  EXPECT_RC(r, cpu_coll.comm_finalize(r->comm), 0);
  EXPECT_RC(r, x, r->count); /* finalize waits for what was enqueued */
  EXPECT_RC(r, cpu_coll.all_reduce(&x, &x, 1, ncclInt32, ncclSum, r->comm, NULL), 4);
  EXPECT_RC(r, cpu_coll.comm_finalize(r->comm), ncclInvalidArgument);
  rank_close(r);
}

/* One thread, several ranks. */
static void init_all(struct rank *r) {
  ncclComm_t comms[4];
  int x[4] = {1, 2, 3, 4};
  int wrong[] = {0, 99};
  EXPECT_RC(r, cpu_coll.comm_init_all(comms, 2, wrong), ncclInvalidArgument);
  EXPECT_RC(r, cpu_coll.comm_init_all(comms, 4, NULL), 0);
  EXPECT_RC(r, cpu_coll.group_start(), 0);
  for (int i = 0; i < 4; i++) {
    EXPECT_RC(
      r, cpu_coll.all_reduce(&x[i], &x[i], 1, ncclInt32, ncclSum, comms[i], NULL), 0);
  }
  EXPECT_RC(r, cpu_coll.group_end(), 0);
  for (int i = 0; i < 4; i++) {
    EXPECT_RC(r, cpu_coll.comm_finalize(comms[i]), 0);
    EXPECT_RC(r, x[i], 10);
    EXPECT_RC(r, cpu_coll.comm_destroy(comms[i]), 0);
  }
}

static void init_and_split_in_groups(struct rank *r) {
  ncclComm_t comms[3], children[3];
  int count;
  EXPECT_RC(r, cpu_coll.group_start(), 0);
  for (int i = 0; i < 3; i++) {
    rank_take_device(r, i);
    EXPECT_RC(r, cpu_coll.comm_init_rank(&comms[i], 3, r->id, i), 0);
  }
  EXPECT_RC(r, cpu_coll.group_end(), 0);
  EXPECT_RC(r, cpu_coll.group_start(), 0);
  for (int i = 0; i < 3; i++) {
    EXPECT_RC(r, cpu_coll.comm_split(comms[i], i == 2, i, &children[i], NULL), 0);
  }
  EXPECT_RC(r, cpu_coll.group_end(), 0);
  for (int i = 0; i < 3; i++) {
    EXPECT_RC(r, cpu_coll.comm_count(children[i], &count), 0);
    EXPECT_RC(r, count, i == 2 ? 1 : 2);
    EXPECT_RC(r, cpu_coll.comm_destroy(comms[i]), 0);
    EXPECT_RC(r, cpu_coll.comm_destroy(children[i]), 0);
  }
}

/* A rank that aborts sets the others free. */
static void abort_peer(struct rank *r) {
  static char x[SOME];
  if (!rank_open(r)) return;
  if (r->index == 1) {
    EXPECT_RC(r, cpu_coll.comm_abort(r->comm), 0);
    return;
  }
  ncclResult_t error = ncclSuccess;
  const struct coll_api *a = &cpu_coll;
  ncclResult_t rc = a->all_reduce(x, x, SOME, ncclInt8, ncclMax, r->comm, NULL);
  EXPECT_RC(r, rc, 0);
  rank_sync(r);
  EXPECT_RC(r, a->comm_get_async_error(r->comm, &error), 0);
  EXPECT_RC(r, error, ncclRemoteError);
  last_error_has(r, r->comm, r->index == 0 && r->count == 2 ? "aborted" : "which has");
  rc = a->all_reduce(x, x, SOME, ncclInt8, ncclMax, r->comm, NULL);
  EXPECT_RC(r, rc, ncclRemoteError);
  rank_close(r);
}

static void *abort_comm(void *comm) {
  cpu_coll.comm_abort(comm);
  return NULL;
}

/* Another thread aborts what this one waits for. */
static void abort_self(struct rank *r) {
  static char x[SOME];
  pthread_t thread;
  if (!rank_open(r)) return;
  if (r->index == 0) {
    EXPECT_RC(r, cpu_coll.recv(x, SOME, ncclInt8, 1, r->comm, NULL), 0);
    EXPECT_RC(r, pthread_create(&thread, NULL, abort_comm, r->comm), 0);
    rank_sync(r);
    pthread_join(thread, NULL);
  } else {
    EXPECT_RC(r, cpu_coll.recv(x, SOME, ncclInt8, 0, r->comm, NULL), 0);
    rank_sync(r);
    rank_close(r);
  }
}

/* Ranks that disagree end with an error: nobody hangs, nothing is overrun. */
static void different_lengths(struct rank *r) {
  size_t mine = r->index == 0 ? SOME : SOME / 2;
  ncclResult_t error = ncclSuccess;
  char *x = calloc(SOME, 1);
  if (!rank_open(r)) return;
  EXPECT_RC(r, cpu_coll.all_reduce(x, x, mine, ncclInt8, ncclSum, r->comm, NULL), 0);
  rank_sync(r);
  EXPECT_RC(r, cpu_coll.comm_get_async_error(r->comm, &error), 0);
  EXPECT(r, error == ncclInvalidUsage || error == ncclRemoteError);
  EXPECT_RC(r, cpu_coll.comm_abort(r->comm), 0);
  free(x);
}

struct test {
  const char *name;
  int ranks;
  rank_function *fn;
  int argument;
};

static const struct test tests[] = {
  {"properties", 3, properties},
  {"bad arguments", 1, bad_arguments},
  {"operators", 2, operators},
  {"operators, alone", 1, operators},
  {"different numbers of ranks", 2, different_counts},
  {"the same rank twice", 3, same_rank_twice},
  {"the same device twice", 2, same_device_twice},
  {"a rank does not come", 2, one_missing},
  {"rank 0 does not come", 1, zero_missing},
  {"split", 2, split},
  {"split of 5", 5, split},
  {"shrink", 4, shrink, NCCL_SHRINK_DEFAULT},
  {"shrink by abort", 3, shrink, NCCL_SHRINK_ABORT},
  {"finalize", 2, finalize},
  {"init_all", 1, init_all},
  {"init and split in groups", 1, init_and_split_in_groups},
  {"a peer aborts", 2, abort_peer},
  {"a peer of four aborts", 4, abort_peer},
  {"abort what is stuck", 2, abort_self},
  {"different lengths", 2, different_lengths},
};

static void start_test(void **state) {
  struct test *t = *state;
  ranks_as_threads(t->ranks, t->fn, &t->argument);
}

int main(void) {
  enum { COUNT = sizeof tests / sizeof tests[0] };
  static struct CMUnitTest list[COUNT];
  setenv("NCLUA_CPU_INIT_TIMEOUT", "1.5", 1);
  for (int i = 0; i < COUNT; i++) {
    void *state = (void *)(uintptr_t)&tests[i];
    list[i] = (struct CMUnitTest){tests[i].name, start_test, NULL, NULL, state};
  }
  return cmocka_run_group_tests_name("cpu_comm", list, NULL, NULL);
}
