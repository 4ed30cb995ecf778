/* The profiler plugin through NCCL's ABI, as NCCL calls it, in each of its versions. */

#include "plugins/profiler/abi.h"
#include "plugins/trace/trace.h"
#include "tests/plugins/fake_cupti.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void *library;
static char path[64];
static int (*trace_start)(const char *file, char *why, size_t size);
static int (*trace_stop)(char *why, size_t size);

static const void *find(const char *name) {
  const void *symbol = dlsym(library, name);
  if (!symbol) fail_msg("%s", dlerror());
  return symbol;
}

static const char *ask(const char *sql) {
  static char answer[512];
  sqlite3 *db;
  sqlite3_stmt *stmt;
  assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
  if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL)) fail_msg("%s", sqlite3_errmsg(db));
  const int rc = sqlite3_step(stmt);
  const char *text =
    rc == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : "no row";
  snprintf(answer, sizeof answer, "%s", text ? text : "NULL");
  sqlite3_finalize(stmt);
  sqlite3_close(db);
  return answer;
}

#define assert_answer(sql, expected) assert_string_equal(ask(sql), expected)

static int begin(void **state) {
  (void)state;
  char why[256];
  strcpy(path, "/tmp/nclua-test-profiler-XXXXXX");
  close(mkstemp(path));
  if (trace_start(path, why, sizeof why)) fail_msg("%s", why);
  return 0;
}

static int end(void **state) {
  (void)state;
  unlink(path);
  return 0;
}

static void finish(void) {
  char why[256];
  if (trace_stop(why, sizeof why)) fail_msg("%s", why);
}

/* A descriptor of any version: the head, then the union at its place. */
static void *describe(int abi, uint64_t type, void *parent, const void *what, size_t size) {
  static _Alignas(8) char descriptor[128];
  memset(descriptor, 0xee, sizeof descriptor);
  if (abi >= 5) {
    *(struct abi_head_v5 *)(void *)descriptor = (struct abi_head_v5){type, parent, 3};
  } else {
    struct abi_head_v1 *head = (struct abi_head_v1 *)(void *)descriptor;
    head->type = (uint8_t)type;
    head->parent = parent;
    head->rank = 3;
  }
  memcpy(descriptor + ABI_UNION, what, size);
  return descriptor;
}

#define START(p, context, abi, type, parent, what)                                         \
  ({                                                                                       \
    void *handle_ = NULL;                                                                  \
    assert_int_equal(                                                                      \
      (p)->start(context, &handle_, describe(abi, type, parent, &(what), sizeof(what))),   \
      0);                                                                                  \
    handle_;                                                                               \
  })

static const struct abi_coll_v4 coll = {.sequence = 7,
                                        .func = "AllReduce",
                                        .count = 1024,
                                        .datatype = "ncclFloat32",
                                        .channels = 2,
                                        .warps = 17,
                                        .algorithm = "TREE",
                                        .protocol = "SIMPLE"};

static const char *const coll_columns =
  "SELECT format('%d %d %s %d %s %s %s %d %d', rank, seqNumber, function, count, datatype, "
  "algorithm, protocol, channels, warps) FROM NCCL_COLL";
static const char *const coll_expected = "3 7 AllReduce 1024 ncclFloat32 TREE SIMPLE 2 17";

/* One collective with its group and a proxy operation, as 2.23 to 2.26 tell it. */
static void tell_old(int abi, const struct abi_v1 *p, const void *what, size_t size,
                     const void *message, size_t message_size) {
  void *context, *handle;
  int mask = 0;
  const char nothing = 0;
  assert_int_equal(p->init(&context, &mask), 0);
  assert_int_equal(mask, abi < 3 ? 31 : 223);
  void *group = START(p, context, abi, ABI_GROUP, NULL, nothing);
  assert_non_null(group);
  p->start(context, &handle, describe(abi, ABI_COLL, group, what, size));
  p->stop(handle);
  p->stop(group);
  const struct abi_proxy_op op = {getpid(), 1, 2, 4, 65536, 1};
  void *proxy =
    START(p, context, abi, ABI_PROXY_OP, handle, op); /* after its parent's end */
  const union abi_state_v1 done = {.op = {4096, 4}};
  p->record(proxy, 2, (void *)(uintptr_t)&done);
  p->record(proxy, 3, NULL);
  p->stop(proxy);
  p->start(context, &handle, describe(abi, ABI_P2P, NULL, message, message_size));
  p->stop(handle);
  p->stop(handle); /* twice is once */
  assert_int_equal(p->finalize(context), 0);
  finish();
  assert_answer(coll_columns, coll_expected);
  assert_answer("SELECT count(*) FROM NCCL_COLL c JOIN NCCL_GROUP g ON c.parentId = g.id "
                "WHERE g.start <= c.start AND c.end <= g.end",
                "1");
  assert_answer("SELECT format('%d %d %d %d %d', p.channel, peer, steps, isSend, "
                "transferred) FROM NCCL_PROXY_OP p JOIN NCCL_COLL c ON p.parentId = c.id",
                "1 2 4 1 4096");
  assert_answer(
    "SELECT format('%s %d %s %d', function, count, datatype, peer) FROM NCCL_P2P",
    "Send 512 ncclInt8 1");
}

static void test_v1(void **state) {
  (void)state;
  const struct abi_coll_v1 c = {.sequence = 7,
                                .func = 4,
                                .count = 1024,
                                .datatype = 7,
                                .channels = 2,
                                .warps = 17,
                                .algorithm = 0,
                                .protocol = 2,
                                .traffic_bytes = 8192};
  const struct abi_p2p_v1 m = {.func = 6, .datatype = 0, .count = 512, .peer = 1};
  tell_old(1, find("ncclProfiler_v1"), &c, sizeof c, &m, sizeof m);
  assert_answer("SELECT trafficBytes FROM NCCL_COLL", "8192");
}

static void test_v2(void **state) {
  (void)state;
  const struct abi_coll_v2 c = {.sequence = 7,
                                .func = coll.func,
                                .count = 1024,
                                .datatype = coll.datatype,
                                .channels = 2,
                                .warps = 17,
                                .algorithm = coll.algorithm,
                                .protocol = coll.protocol,
                                .traffic_bytes = 8192};
  const struct abi_p2p_v2 m = {
    .func = "Send", .datatype = "ncclInt8", .count = 512, .peer = 1};
  tell_old(2, find("ncclProfiler_v2"), &c, sizeof c, &m, sizeof m);
  assert_answer("SELECT trafficBytes FROM NCCL_COLL", "8192");
}

static void test_v3(void **state) {
  (void)state;
  const struct abi_coll_v3 c = {.sequence = 7,
                                .func = coll.func,
                                .count = 1024,
                                .datatype = coll.datatype,
                                .channels = 2,
                                .warps = 17,
                                .algorithm = coll.algorithm,
                                .protocol = coll.protocol};
  const struct abi_p2p_v2 m = {
    .func = "Send", .datatype = "ncclInt8", .count = 512, .peer = 1};
  tell_old(3, find("ncclProfiler_v3"), &c, sizeof c, &m, sizeof m);
}

/* What happens below a collective: channels of its kernel, the network. */
static void tell_below(int abi, const struct abi_v5 *p, void *context, void *parent) {
  const struct abi_kernel_channel channel = {.channel = 1, .timer = 5000};
  const union abi_state_v4 stopped = {.timer = 9000}, sent = {.step_bytes = 777};
  void *kernel = START(p, context, abi, ABI_KERNEL_CHANNEL, parent, channel);
  p->record(kernel, ABI_CHANNEL_STOP, (void *)(uintptr_t)&stopped);
  p->stop(kernel);
  const struct abi_proxy_op op = {getpid() + 1, 1, 2, 4, 65536, 0};
  void *proxy = START(p, context, abi, ABI_PROXY_OP, (void *)0x123456, op); /* another's */
  p->record(proxy, ABI_OP_IN_PROGRESS, NULL);
  const struct abi_proxy_step one = {5};
  void *step = START(p, context, abi, ABI_PROXY_STEP, proxy, one);
  p->record(step, ABI_SEND_GPU_WAIT, NULL);
  p->record(step, ABI_SEND_PEER_WAIT, NULL);
  p->record(step, ABI_SEND_WAIT, (void *)(uintptr_t)&sent);
  const struct abi_net socket = {(2 << 16) | 1, NULL};
  void *net = START(p, context, abi, ABI_NET, step, socket);
  p->record(net, ABI_NET_UPDATE, NULL);
  p->stop(net);
  p->stop(step);
  p->stop(proxy);
}

static void check_below(void) {
  assert_answer("SELECT format('%d %d %d', channel, gpuStart, gpuEnd) FROM "
                "NCCL_KERNEL_CHANNEL k JOIN NCCL_COLL c ON k.parentId = c.id",
                "1 5000 9000");
  assert_answer("SELECT kernelEnd = end AND kernelStart = end - 4000 FROM "
                "NCCL_CHANNEL_TIMES",
                "1");
  assert_answer("SELECT originPid <> (SELECT pid FROM PROCESSES) AND parentId = 0x123456 "
                "AND inProgress >= start FROM NCCL_PROXY_OP",
                "1");
  assert_answer("SELECT format('%d %d', step, bytes) FROM NCCL_PROXY_STEP s JOIN "
                "NCCL_PROXY_OP o ON s.parentId = o.id WHERE s.start <= gpuWait AND "
                "gpuWait <= peerWait AND peerWait <= sendWait AND sendWait <= s.end",
                "5 777");
  assert_answer("SELECT pluginId || ' ' || updates FROM NCCL_NET n JOIN NCCL_PROXY_STEP s "
                "ON n.parentId = s.id",
                "131073 1");
}

static void test_v4(void **state) {
  (void)state;
  const struct abi_v4 *p = find("ncclProfiler_v4");
  void *context;
  int mask = 0;
  const char nothing = 0;
  assert_int_equal(p->init(&context, &mask, "mine", 0xabc, 1, 4, 3, NULL), 0);
  assert_int_equal(mask, 223);
  void *group = START(p, context, 4, ABI_GROUP, NULL, nothing);
  void *c = START(p, context, 4, ABI_COLL, group, coll);
  p->stop(c);
  p->stop(group);
  /* From here the signatures do not differ. */
  tell_below(4, (const struct abi_v5 *)(const void *)p, context, c);
  p->finalize(context);
  finish();
  assert_answer(coll_columns, coll_expected);
  assert_answer(
    "SELECT format('%s %s %d %d %d %d', name, commHash, rank, ranks, nodes, abi) "
    "FROM NCCL_COMM",
    "mine 0xabc 3 4 1 4");
  check_below();
}

/* The driver's launch and its kernel, as CUPTI tells them. */
static void launch_kernel(void) {
  void *fake = dlopen(getenv("NCLUA_CUPTI_LIB"), RTLD_NOW);
  __typeof__(fake_kernel) *kernel;
  __typeof__(fake_call) *called;
  *(void **)&kernel = dlsym(fake, "fake_kernel");
  *(void **)&called = dlsym(fake, "fake_call");
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  const uint64_t now = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
  called(307, now - 1000000000, now - 999999000, 41); /* another, long before */
  kernel("ncclDevKernel_Other", 9, 9, now - 999998000, now - 999997000, 41);
  called(307, now, now + 100, 42);
  kernel("ncclDevKernel_AllReduce", 2, 544, now + 900, now + 5000, 42);
}

static void tell_new(int abi, const struct abi_v5 *p, void *context) {
  const struct abi_group_api in_group = {false, 1};
  const struct abi_coll_api call = {
    "AllReduce", 1024, "ncclFloat32", 0, (void *)0x77, true};
  const struct abi_p2p_api message = {"Recv", 9, "ncclInt8", (void *)0x77, false};
  const struct abi_kernel_launch launch = {(void *)0x77};
  const char nothing = 0;
  void *api = START(p, context, abi, ABI_GROUP_API, NULL, in_group);
  p->record(api, ABI_GROUP_START_API_STOP, NULL);
  void *coll_api = START(p, context, abi, ABI_COLL_API, api, call);
  p->stop(coll_api);
  void *p2p_api = START(p, context, abi, ABI_P2P_API, api, message);
  p->stop(p2p_api);
  p->record(api, ABI_GROUP_END_API_START, NULL);
  void *group = START(p, context, abi, ABI_GROUP, NULL, nothing);
  struct abi_coll_v4 in = coll;
  in.group = group;
  void *c = START(p, context, abi, ABI_COLL, coll_api, in);
  p->stop(c);
  const struct abi_p2p_v4 m = {"Recv", NULL, "ncclInt8", 9, 1, 4, group};
  void *p2p = START(p, context, abi, ABI_P2P, p2p_api, m);
  p->stop(p2p);
  void *launched = START(p, context, abi, ABI_KERNEL_LAUNCH, api, launch);
  launch_kernel();
  p->stop(launched);
  p->stop(group);
  p->stop(api);
  tell_below(abi, p, context, c);
}

static void check_new(void) {
  assert_answer(coll_columns, coll_expected);
  assert_answer("SELECT format('%s %d %s %d', a.function, a.graphCaptured, a.datatype, "
                "stream) FROM NCCL_COLL c JOIN NCCL_API a ON c.parentId = a.id JOIN "
                "NCCL_GROUP g ON a.parentId = g.id WHERE isApi AND depth = 1 AND "
                "g.startApiEnd <= a.start AND a.end <= g.endApiStart",
                "AllReduce 1 ncclFloat32 119");
  assert_answer("SELECT format('%s %d %d', p.function, p.peer, p.channels) FROM NCCL_P2P p "
                "JOIN NCCL_GROUP g ON p.groupId = g.id AND NOT isApi",
                "Recv 1 4");
  assert_answer("SELECT count(*) FROM NCCL_KERNEL_LAUNCH l JOIN NCCL_GROUP g ON "
                "l.parentId = g.id WHERE stream = 119 AND isApi",
                "1");
  assert_answer("SELECT group_concat(format('%s %d %d %d %s', function, gridX, blockX, "
                "correlationId, value)) FROM NCCL_COLL_KERNELS JOIN StringIds ON "
                "StringIds.id = shortName WHERE kernelStart > launchStart",
                "AllReduce 2 544 42 ncclDevKernel_AllReduce");
  check_below();
}

static void test_v5(void **state) {
  (void)state;
  const struct abi_v5 *p = find("ncclProfiler_v5");
  void *context;
  int mask = 0;
  assert_int_equal(p->init(&context, 0xabc, &mask, NULL, 1, 4, 3, NULL), 0);
  assert_int_equal(mask, 4095 & ~ABI_PROXY_CONTROL);
  tell_new(5, p, context);
  p->finalize(context);
  finish();
  check_new();
}

static void test_v6(void **state) {
  (void)state;
  const struct abi_v5 *p = find("ncclProfiler_v6");
  void *context;
  int mask = 0;
  assert_int_equal(p->init(&context, 0xabc, &mask, NULL, 1, 4, 3, NULL), 0);
  assert_int_equal(mask, 32767 & ~ABI_PROXY_CONTROL);
  tell_new(6, p, context);
  const struct abi_ce_coll c = {.sequence = 5, .func = "AllGather", .strategy = "batch"};
  void *ce = START(p, context, 6, ABI_CE_COLL, NULL, c);
  const struct abi_ce_sync sync = {true, 4};
  p->stop(START(p, context, 6, ABI_CE_SYNC, ce, sync));
  const struct abi_ce_batch batch = {3, 1 << 20, false};
  p->stop(START(p, context, 6, ABI_CE_BATCH, ce, batch));
  p->stop(ce);
  const char unknown = 0;
  assert_null(START(p, context, 6, UINT64_C(1) << 40, NULL, unknown));
  p->finalize(context);
  finish();
  check_new();
  assert_answer("SELECT group_concat(kind || ifnull(function, '') || ifnull(ranks, '') || "
                "ifnull(bytes, '')) FROM NCCL_COPY_ENGINE",
                "sync4,batch1048576,collAllGather");
}

/* What NCCLUA_PROFILER_EVENTS leaves out is not asked of NCCL. */
static void test_events_can_be_chosen(void **state) {
  (void)state;
  const struct abi_v5 *p = find("ncclProfiler_v6");
  void *context;
  int mask = 0;
  setenv("NCLUA_PROFILER_EVENTS", "control,kernel", 1);
  p->init(&context, 0, &mask, NULL, 1, 1, 0, NULL);
  unsetenv("NCLUA_PROFILER_EVENTS");
  assert_int_equal(mask, ABI_KERNEL_CHANNEL | ABI_PROXY_CONTROL);
  const char nothing = 0;
  const int appended = 6;
  void *control = START(p, context, 6, ABI_PROXY_CONTROL, NULL, nothing);
  p->record(control, ABI_CONTROL_APPEND_END, (void *)(uintptr_t)&appended);
  p->stop(control);
  p->finalize(context);
  finish();
  assert_answer("SELECT state || ' ' || appended FROM NCCL_PROXY_CONTROL", "append end 6");
}

static void test_without_a_trace_nothing_is_asked(void **state) {
  (void)state;
  finish();
  const struct abi_v5 *p = find("ncclProfiler_v6");
  void *context, *handle = (void *)1;
  int mask = 99;
  p->init(&context, 0, &mask, NULL, 1, 1, 0, NULL);
  assert_int_equal(mask, 0);
  p->start(context, &handle, describe(6, ABI_COLL, NULL, &coll, sizeof coll));
  assert_null(handle);
  p->stop(handle);
  p->record(handle, 0, NULL);
  p->finalize(context);
}

enum { THREADS = 4, EACH = 20000 };

static void *tell_many(void *context) {
  const struct abi_v5 *p = find("ncclProfiler_v6");
  for (int i = 0; i < EACH; i++) {
    _Alignas(8) char descriptor[128] = {0};
    void *handle;
    *(struct abi_head_v5 *)(void *)descriptor =
      (struct abi_head_v5){ABI_PROXY_STEP, NULL, 0};
    p->start(context, &handle, descriptor);
    p->record(handle, ABI_SEND_WAIT, NULL);
    p->stop(handle);
  }
  return NULL;
}

static void test_from_several_threads(void **state) {
  (void)state;
  const struct abi_v5 *p = find("ncclProfiler_v6");
  void *context;
  int mask;
  pthread_t threads[THREADS];
  p->init(&context, 0, &mask, NULL, 1, 1, 0, NULL);
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, tell_many, context);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  p->finalize(context);
  finish();
  assert_answer("SELECT count(DISTINCT id) FROM NCCL_PROXY_STEP", "80000");
}

/* Events that are never stopped fill their places, and then are counted as lost. */
static void test_is_bounded(void **state) {
  (void)state;
  const struct abi_v5 *p = find("ncclProfiler_v6");
  void *context, *kept[20000];
  int mask;
  p->init(&context, 0, &mask, NULL, 1, 1, 0, NULL);
  for (int i = 0; i < 20000; i++) {
    p->start(context, &kept[i], describe(6, ABI_COLL, NULL, &coll, sizeof coll));
  }
  assert_null(kept[19999]);
  for (int i = 0; i < 20000; i++) p->stop(kept[i]);
  p->finalize(context);
  finish();
  assert_answer("SELECT (SELECT count(*) FROM NCCL_COLL) + (SELECT sum(count) FROM "
                "NCLUA_LOST WHERE source = 'NCCL events')",
                "20000");
}

int main(void) {
  library = dlopen(getenv("NCLUA_PROFILER_PLUGIN"), RTLD_NOW);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return EXIT_FAILURE;
  }
  /* The same file under its other name is the same library. */
  void *again = dlopen(getenv("NCLUA_TRACE_PLUGIN"), RTLD_NOW);
  if (again != library) return EXIT_FAILURE;
  *(const void **)&trace_start = find("nclua_trace_start");
  *(const void **)&trace_stop = find("nclua_trace_stop");
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
    TEST(test_v1),
    TEST(test_v2),
    TEST(test_v3),
    TEST(test_v4),
    TEST(test_v5),
    TEST(test_v6),
    TEST(test_events_can_be_chosen),
    TEST(test_without_a_trace_nothing_is_asked),
    TEST(test_from_several_threads),
    TEST(test_is_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
