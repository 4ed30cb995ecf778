/* Sends, receives and groups on the CPU backend, and how operations follow each other over
   streams and graphs. */
#include "tests/host/cpu_ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LARGE ((size_t)3000017) /* more than all slots of a connection */
#define SMALL ((size_t)100)

static const struct coll_api *const coll = &cpu_coll;

static ncclResult_t send(struct rank *r, const void *x, size_t bytes, int peer) {
  return coll->send(x, bytes, ncclInt8, peer, r->comm, NULL);
}

static ncclResult_t recv(struct rank *r, void *x, size_t bytes, int peer) {
  return coll->recv(x, bytes, ncclInt8, peer, r->comm, NULL);
}

static char *new_message(size_t bytes, int mark) {
  char *x = malloc(bytes);
  for (size_t i = 0; x && i < bytes; i++) x[i] = (char)((size_t)mark + i % 251);
  return x;
}

static bool is_message(const char *x, size_t bytes, int mark) {
  for (size_t i = 0; i < bytes; i++) {
    if (x[i] != (char)((size_t)mark + i % 251)) return false;
  }
  return true;
}

static ncclResult_t async_error(struct rank *r) {
  ncclResult_t error = ncclInternalError;
  EXPECT_RC(r, coll->comm_get_async_error(r->comm, &error), 0);
  return error;
}

/* Everybody sends before anybody receives: only a group can do that. */
static void ring_exchange(struct rank *r) {
  int right = (r->index + 1) % r->count, left = (r->index + r->count - 1) % r->count;
  char *out = new_message(LARGE, r->index), *in = calloc(LARGE, 1);
  if (!rank_open(r)) return;
  EXPECT_RC(r, coll->group_start(), 0);
  EXPECT_RC(r, send(r, out, LARGE, right), 0);
  EXPECT_RC(r, recv(r, in, LARGE, left), 0);
  EXPECT_RC(r, coll->group_end(), 0);
  rank_sync(r);
  EXPECT_RC(r, async_error(r), 0);
  EXPECT(r, is_message(in, LARGE, left));
  rank_close(r);
  free(out);
  free(in);
}

static void one_way(struct rank *r) {
  char *x = new_message(LARGE, 5);
  if (!rank_open(r)) return;
  if (r->index == 0)
    EXPECT_RC(r, send(r, x, LARGE, 1), 0);
  else {
    memset(x, 0, LARGE);
    EXPECT_RC(r, recv(r, x, LARGE, 0), 0);
  }
  rank_sync(r);
  EXPECT(r, is_message(x, LARGE, 5));
  rank_close(r);
  free(x);
}

/* Messages between the same two ranks come in the order in which they were sent, whatever
   their sizes, the empty one too. */
static void in_order(struct rank *r) {
  static const size_t sizes[] = {7, 0, 300000, 1, 65536, 0, 99};
  enum { COUNT = sizeof sizes / sizeof sizes[0] };
  char *x[COUNT];
  if (!rank_open(r)) return;
  EXPECT_RC(r, coll->group_start(), 0);
  for (int i = 0; i < COUNT; i++) {
    x[i] = r->index == 0 ? new_message(sizes[i] + 1, i) : calloc(sizes[i] + 1, 1);
    if (r->index == 0)
      EXPECT_RC(r, send(r, x[i], sizes[i], 1), 0);
    else
      EXPECT_RC(r, recv(r, x[i], sizes[i], 0), 0);
  }
  EXPECT_RC(r, coll->group_end(), 0);
  rank_sync(r);
  for (int i = 0; i < COUNT; i++) {
    EXPECT(r, is_message(x[i], sizes[i], i));
    free(x[i]);
  }
  rank_close(r);
}

static void to_itself(struct rank *r) {
  char *a = new_message(SMALL, 1), *b = new_message(SMALL, 2), *x = calloc(2, SMALL);
  if (!rank_open(r)) return;
  EXPECT_RC(r, coll->group_start(), 0);
  EXPECT_RC(r, send(r, a, SMALL, r->index), 0);
  EXPECT_RC(r, recv(r, x, SMALL, r->index), 0);
  EXPECT_RC(r, recv(r, x + SMALL, SMALL, r->index), 0);
  EXPECT_RC(r, send(r, b, SMALL, r->index), 0);
  EXPECT_RC(r, coll->group_end(), 0);
  rank_sync(r);
  EXPECT(r, is_message(x, SMALL, 1) && is_message(x + SMALL, SMALL, 2));
  EXPECT_RC(r, send(r, a, SMALL, r->index), ncclInvalidUsage);
  EXPECT_RC(r, coll->group_start(), 0);
  EXPECT_RC(r, send(r, a, SMALL, r->index), 0);
  EXPECT_RC(r, recv(r, x, SMALL - 1, r->index), 0);
  EXPECT_RC(r, coll->group_end(), ncclInvalidUsage);
  rank_close(r);
  free(a);
  free(b);
  free(x);
}

/* The receiver expects less or more than comes. */
static void unequal(struct rank *r) {
  size_t bytes = r->index == 0 ? (size_t) * (int *)r->argument : SMALL;
  char *x = new_message(bytes, 0);
  if (!rank_open(r)) return;
  if (r->index == 0)
    EXPECT_RC(r, send(r, x, bytes, 1), 0);
  else
    EXPECT_RC(r, recv(r, x, bytes, 0), 0);
  rank_sync(r);
  if (r->index == 1) EXPECT_RC(r, async_error(r), ncclInvalidUsage);
  EXPECT_RC(r, coll->comm_abort(r->comm), 0);
  free(x);
}

static void mixed_group(struct rank *r) {
  int peer = r->index ^ 1, sum = r->index, max = r->index;
  char *out = new_message(LARGE, r->index), *in = calloc(LARGE, 1);
  if (!rank_open(r)) return;
  EXPECT_RC(r, coll->group_start(), 0);
  EXPECT_RC(r, recv(r, in, LARGE, peer), 0);
  EXPECT_RC(r, coll->all_reduce(&sum, &sum, 1, ncclInt32, ncclSum, r->comm, NULL), 0);
  EXPECT_RC(r, coll->group_start(), 0);
  EXPECT_RC(r, send(r, out, LARGE, peer), 0);
  EXPECT_RC(r, coll->group_end(), 0);
  EXPECT_RC(r, coll->all_reduce(&max, &max, 1, ncclInt32, ncclMax, r->comm, NULL), 0);
  EXPECT_RC(r, coll->group_end(), 0);
  rank_sync(r);
  EXPECT(r, is_message(in, LARGE, peer));
  EXPECT_RC(r, sum, r->count * (r->count - 1) / 2);
  EXPECT_RC(r, max, r->count - 1);
  rank_close(r);
  free(out);
  free(in);
}

/* A group with a wrong call in it does nothing at all. */
static void failed_group(struct rank *r) {
  int x = 1;
  EXPECT_RC(r, coll->group_end(), ncclInvalidUsage);
  if (!rank_open(r)) return;
  EXPECT_RC(r, coll->group_start(), 0);
  EXPECT_RC(r, coll->all_reduce(&x, &x, 1, ncclInt32, ncclSum, r->comm, NULL), 0);
  EXPECT_RC(r, coll->send(&x, 1, ncclInt32, 99, r->comm, NULL), ncclInvalidArgument);
  EXPECT_RC(r, coll->group_end(), ncclInvalidArgument);
  EXPECT(r, strstr(coll->get_last_error(NULL), "99"));
  rank_sync(r);
  EXPECT_RC(r, x, 1);
  EXPECT_RC(r, coll->all_reduce(&x, &x, 1, ncclInt32, ncclSum, r->comm, NULL), 0);
  rank_sync(r);
  EXPECT_RC(r, x, r->count);
  rank_close(r);
}

/* What was called in the group of a communicator that ends in it does not happen. */
static void destroyed_in_group(struct rank *r) {
  int x = 5, y = 5;
  ncclComm_t child;
  if (!rank_open(r)) return;
  EXPECT_RC(r, coll->group_start(), 0);
  EXPECT_RC(r, coll->all_reduce(&x, &y, 1, ncclInt32, ncclSum, r->comm, NULL), 0);
  EXPECT_RC(r, send(r, &x, 4, r->index), 0);
  EXPECT_RC(r, recv(r, &y, 4, r->index), 0);
  rank_close(r);
  x = 6;
  EXPECT_RC(r, coll->group_end(), 0);
  rank_sync(r);
  EXPECT_RC(r, y, 5);
  EXPECT_RC(r, coll->get_unique_id(&r->id), 0);
  if (!rank_open(r)) return;
  EXPECT_RC(r, coll->group_start(), 0);
  EXPECT_RC(r, coll->comm_split(r->comm, 0, 0, &child, NULL), 0);
  rank_close(r);
  coll->group_end();
  if (child) EXPECT_RC(r, coll->comm_destroy(child), 0);
}

/* Sends on one stream, receives on another: still one operation. */
static void two_streams(struct rank *r) {
  int peer = 1 - r->index;
  CUstream a, b;
  char *out = new_message(LARGE, r->index), *in = calloc(LARGE, 1);
  if (!rank_open(r)) return;
  EXPECT_RC(r, cpu_device.stream_create_with_priority(&a, CU_STREAM_NON_BLOCKING, 0), 0);
  EXPECT_RC(r, cpu_device.stream_create_with_priority(&b, CU_STREAM_NON_BLOCKING, 0), 0);
  for (int i = 0; i < 3; i++) {
    EXPECT_RC(r, coll->group_start(), 0);
    EXPECT_RC(r, coll->send(out, LARGE, ncclInt8, peer, r->comm, a), 0);
    EXPECT_RC(r, coll->recv(in, LARGE, ncclInt8, peer, r->comm, b), 0);
    EXPECT_RC(r, coll->group_end(), 0);
    EXPECT_RC(r, cpu_device.stream_synchronize(i == 1 ? a : b), 0);
    EXPECT(r, is_message(in, LARGE, peer));
  }
  EXPECT_RC(r, cpu_device.stream_destroy(a), 0);
  EXPECT_RC(r, cpu_device.stream_destroy(b), 0);
  rank_close(r);
  free(out);
  free(in);
}

/* On two streams, in turn: each call needs the result of the one before, and no event
   says so, but a communicator keeps its order. */
static void order_over_streams(struct rank *r) {
  CUstream s[2];
  int64_t x = 1;
  if (!rank_open(r)) return;
  for (int i = 0; i < 2; i++) {
    EXPECT_RC(r, cpu_device.stream_create_with_priority(&s[i], 1, 0), 0);
  }
  for (int i = 0; i < 30; i++) {
    EXPECT_RC(r, coll->all_reduce(&x, &x, 1, ncclInt64, ncclSum, r->comm, s[i % 2]), 0);
  }
  for (int i = 0; i < 2; i++) EXPECT_RC(r, cpu_device.stream_synchronize(s[i]), 0);
  EXPECT(r, x == 1 << 30); /* two ranks */
  for (int i = 0; i < 2; i++) EXPECT_RC(r, cpu_device.stream_destroy(s[i]), 0);
  rank_close(r);
}

struct capture {
  CUstream stream;
  CUgraph graph;
  CUgraphExec exec;
};

static void end_capture(struct rank *r, struct capture *c) {
  EXPECT_RC(r, coll->group_end(), 0);
  EXPECT_RC(r, cpu_device.stream_end_capture(c->stream, &c->graph), 0);
  EXPECT_RC(r, cpu_device.graph_instantiate(&c->exec, c->graph, 0), 0);
}

static void launch(struct rank *r, struct capture *c) {
  EXPECT_RC(r, cpu_device.graph_launch(c->exec, c->stream), 0);
  EXPECT_RC(r, cpu_device.stream_synchronize(c->stream), 0);
}

/* A captured sum and exchange run at each launch; after the communicator's end they do
   nothing. */
static void graph(struct rank *r) {
  struct capture c;
  int x = 1, out = r->index, in = -1, peer = 1 - r->index;
  if (!rank_open(r)) return;
  EXPECT_RC(r, cpu_device.stream_create_with_priority(&c.stream, 1, 0), 0);
  EXPECT_RC(r, cpu_device.stream_begin_capture(c.stream, 1), 0);
  EXPECT_RC(r, coll->group_start(), 0);
  EXPECT_RC(r, coll->all_reduce(&x, &x, 1, ncclInt32, ncclSum, r->comm, c.stream), 0);
  EXPECT_RC(r, coll->send(&out, 1, ncclInt32, peer, r->comm, c.stream), 0);
  EXPECT_RC(r, coll->recv(&in, 1, ncclInt32, peer, r->comm, c.stream), 0);
  end_capture(r, &c);
  EXPECT_RC(r, x, 1);
  for (int i = 0; i < 3; i++) {
    out = r->index + 10 * i;
    launch(r, &c);
    EXPECT_RC(r, in, peer + 10 * i);
  }
  EXPECT_RC(r, x, 8);
  rank_close(r);
  launch(r, &c);
  EXPECT_RC(r, x, 8);
  EXPECT_RC(r, cpu_device.graph_exec_destroy(c.exec), 0);
  EXPECT_RC(r, cpu_device.graph_destroy(c.graph), 0);
  EXPECT_RC(r, cpu_device.stream_destroy(c.stream), 0);
}

static uint64_t completions[8]; /* of a rank, if they came in order */

static void note_completion(ncclComm_t comm, uint64_t op_count) {
  int rank;
  coll->comm_user_rank(comm, &rank);
  uint64_t before = __atomic_fetch_add(&completions[rank], 1, __ATOMIC_RELAXED);
  if (before != op_count) __atomic_store_n(&completions[rank], 1000, __ATOMIC_RELAXED);
}

static void told_of_completion(struct rank *r) {
  char out = 1, in[8];
  completions[r->index] = 0;
  if (!rank_open(r)) return;
  for (int i = 0; i < 3; i++) {
    EXPECT_RC(r, coll->all_reduce(&out, &out, 1, ncclInt8, ncclMax, r->comm, NULL), 0);
    EXPECT_RC(r, coll->all_gather(&out, in, 0, ncclInt8, r->comm, NULL), 0);
    EXPECT_RC(r, coll->all_to_all(in, in + 4, 1, ncclInt8, r->comm, NULL), 0);
  }
  rank_sync(r);
  EXPECT(r, __atomic_load_n(&completions[r->index], __ATOMIC_RELAXED) == 9);
  rank_close(r);
}

struct test {
  const char *name;
  int ranks;
  rank_function *fn;
  int argument;
};

static const struct test tests[] = {
  {"exchange in a ring of 2", 2, ring_exchange},
  {"exchange in a ring of 5", 5, ring_exchange},
  {"exchange with itself", 1, ring_exchange},
  {"one way", 2, one_way},
  {"messages in order", 2, in_order},
  {"to itself", 1, to_itself},
  {"shorter than expected", 2, unequal, 40},
  {"empty, not expected so", 2, unequal, 0},
  {"longer than expected", 2, unequal, 300},
  {"much longer than expected", 2, unequal, 2000000},
  {"collectives and messages in a group", 4, mixed_group},
  {"a group that fails", 2, failed_group},
  {"destroyed in a group", 1, destroyed_in_group},
  {"a group over two streams", 2, two_streams},
  {"order over streams", 2, order_over_streams},
  {"graph", 2, graph},
  {"completions are told", 3, told_of_completion},
};

static void start_test(void **state) {
  struct test *t = *state;
  ranks_as_threads(t->ranks, t->fn, &t->argument);
}

int main(void) {
  enum { COUNT = sizeof tests / sizeof tests[0] };
  static struct CMUnitTest list[COUNT];
  cpu_coll.completed = note_completion;
  for (int i = 0; i < COUNT; i++) {
    void *state = (void *)(uintptr_t)&tests[i];
    list[i] = (struct CMUnitTest){tests[i].name, start_test, NULL, NULL, state};
  }
  return cmocka_run_group_tests_name("cpu_group", list, NULL, NULL);
}
