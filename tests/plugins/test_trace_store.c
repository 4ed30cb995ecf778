/* Records of every CUPTI version become rows; what is given comes into the file, whole, in
   order, and within the bound of memory. */

#include "plugins/expand.h"
#include "plugins/trace/decode.h"
#include "plugins/trace/demangle.h"
#include "plugins/trace/pack.h"
#include "plugins/trace/writer.h"
#include "tests/plugins/cupti_records.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];

static int make_path(void **state) {
  (void)state;
  strcpy(path, "/tmp/nclua-test-trace-XXXXXX");
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  return 0;
}

static int remove_path(void **state) {
  (void)state;
  char companion[80];
  unlink(path);
  snprintf(companion, sizeof companion, "%s-wal", path);
  unlink(companion);
  snprintf(companion, sizeof companion, "%s-shm", path);
  unlink(companion);
  return 0;
}

/* The one number or text that a query answers. */
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

static const struct cupti_kernel kernel = {
  .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
  .registersPerThread = 96,
  .start = 5000,
  .end = 7000,
  .deviceId = 3,
  .contextId = 1,
  .streamId = 13,
  .gridX = 2,
  .gridY = 1,
  .gridZ = 1,
  .blockX = 512,
  .blockY = 1,
  .blockZ = 1,
  .dynamicSharedMemory = 82240,
  .localMemoryTotal = 55,
  .correlationId = 42,
  .gridId = 99,
  .name = "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
};

static size_t add_all(uint8_t *buffer, uint32_t version) {
  const struct cupti_memcpy copy = {
    .kind = CUPTI_ACTIVITY_KIND_MEMCPY, .copyKind = 1, .bytes = 4096, .end = 9};
  const struct cupti_peer_copy peer = {
    .kind = CUPTI_ACTIVITY_KIND_MEMCPY2, .copyKind = 10, .dstDeviceId = 1, .end = 9};
  const struct cupti_memset set = {
    .kind = CUPTI_ACTIVITY_KIND_MEMSET, .value = 171, .bytes = 64, .memoryKind = 3};
  const struct cupti_api calls[] = {
    {CUPTI_ACTIVITY_KIND_RUNTIME, 211, 4000, 4500, 1, 77, 42, 0},
    {CUPTI_ACTIVITY_KIND_DRIVER, 307, 4100, 4400, 1, 77, 42, 0},
    {CUPTI_ACTIVITY_KIND_DRIVER, 5, 4100, 4400, 1, 77, 43, 0},
    {CUPTI_ACTIVITY_KIND_DRIVER, 307, 4100, 4400, 1, 88, 44, 0}};
  const struct cupti_sync sync = {
    .kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, .type = 4, .streamId = 13};
  const struct cupti_graph graph = {
    .kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE, .graphId = 6, .end = 8};
  struct cupti_kernel untimed = kernel;
  untimed.start = untimed.end = 0;
  size_t at = records_add(buffer, 0, version, &kernel, sizeof kernel);
  at = records_add(buffer, at, version, &untimed, sizeof untimed);
  at = records_add(buffer, at, version, &copy, sizeof copy);
  at = records_add(buffer, at, version, &peer, sizeof peer);
  at = records_add(buffer, at, version, &set, sizeof set);
  for (int i = 0; i < 4; i++)
    at = records_add(buffer, at, version, &calls[i], sizeof *calls);
  at = records_add(buffer, at, version, &sync, sizeof sync);
  return records_add(buffer, at, version, &graph, sizeof graph);
}

static void check_version(uint32_t version) {
  char why[256] = "";
  static uint8_t buffer[4096];
  records_version = version;
  const struct session session = {.start_ns = 1000, .global_pid = (int64_t)5 << 24};
  struct store *store = store_open(path, &session, why, sizeof why);
  if (!store) fail_msg("%s", why);
  struct decoder d = {.session = session,
                      .shift_ns = 100,
                      .layout = abi_layout(version),
                      .own_tid = 88,
                      .next_record = records_next,
                      .callback_name = records_name};
  decode_buffer(&d, store, buffer, add_all(buffer, version));
  assert_string_equal(store_error(store), "");
  assert_int_equal(d.untimed, 1);
  store_close(store);
}

#define KERNEL_IS(columns, expected)                                                       \
  assert_answer("SELECT " columns " FROM CUPTI_ACTIVITY_KIND_KERNEL", expected)

static void test_decodes_every_version(void **state) {
  (void)state;
  static const struct {
    uint32_t version;
    const char *kernel, *copy, *set;
  } cases[] = {
    /* graph node, graph, local memory; graph node, graph, count; graph node, graph */
    {13, "7700 -1 55", "-1 -1 -1", "-1 -1"},
    {14, "7700 -1 55", "7700 -1 -1", "7700 -1"},
    {16, "7700 -1 55", "7700 -1 -1", "7700 -1"},
    {17, "7700 77 55", "7700 77 -1", "7700 77"},
    {18, "7700 77 777", "7700 77 -1", "7700 77"},
    {24, "7700 77 777", "7700 77 -1", "7700 77"},
    {28, "7700 77 777", "7700 77 7", "7700 77"},
    {130001, "7700 77 777", "7700 77 7", "7700 77"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check_version(cases[i].version);
    KERNEL_IS("format('%d %d %d', ifnull(graphNodeId, -1), ifnull(graphId, -1), "
              "localMemoryTotal)",
              cases[i].kernel);
    assert_answer("SELECT format('%d %d %d', ifnull(graphNodeId, -1), ifnull(graphId, -1), "
                  "ifnull(copyCount, -1)) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind=1",
                  cases[i].copy);
    assert_answer("SELECT format('%d %d', ifnull(graphNodeId, -1), ifnull(graphId, -1)) "
                  "FROM CUPTI_ACTIVITY_KIND_MEMSET",
                  cases[i].set);
  }
}

static void test_decodes_all_kinds(void **state) {
  (void)state;
  check_version(130001);
  KERNEL_IS("count(*)", "1");
  /* 100 from CUPTI's clock to ours, 1000 to the session's start. */
  KERNEL_IS("start || ' ' || end", "4100 6100");
  KERNEL_IS("format('%d %d %d %d %d', deviceId, contextId, streamId, correlationId, "
            "globalPid >> 24)",
            "3 1 13 42 5");
  KERNEL_IS("format('%d %d %d %d', gridX, gridY, blockX, gridId)", "2 1 512 99");
  KERNEL_IS("registersPerThread || ' ' || dynamicSharedMemory", "96 82240");
  assert_answer("SELECT value FROM StringIds JOIN CUPTI_ACTIVITY_KIND_KERNEL "
                "ON id = shortName",
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  assert_answer(
    "SELECT value FROM StringIds JOIN CUPTI_ACTIVITY_KIND_KERNEL "
    "ON id = demangledName",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  assert_answer("SELECT format('%d %d', bytes, copyKind) FROM CUPTI_ACTIVITY_KIND_MEMCPY "
                "WHERE copyKind = 1",
                "4096 1");
  assert_answer("SELECT dstDeviceId FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 10",
                "1");
  assert_answer("SELECT format('%d %d %d', value, bytes, memKind) FROM "
                "CUPTI_ACTIVITY_KIND_MEMSET",
                "171 64 3");
  assert_answer("SELECT group_concat(value || eventClass) FROM CUPTI_ACTIVITY_KIND_RUNTIME "
                "JOIN StringIds ON id = nameId",
                "cudaLaunchKernel_v70000,cuLaunchKernel1,driver call 51");
  assert_answer("SELECT globalTid & 0xffffff FROM CUPTI_ACTIVITY_KIND_RUNTIME", "77");
  assert_answer("SELECT syncType FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "4");
  assert_answer("SELECT graphId FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "6");
  assert_answer("SELECT name FROM PROCESSES WHERE name LIKE '%test_trace_store%'",
                ask("SELECT name FROM PROCESSES"));
}

static void test_brief_names(void **state) {
  (void)state;
  static const struct {
    const char *name, *brief;
  } cases[] = {
    {"plain", "plain"},
    {"axpy(float*, int)", "axpy"},
    {"void at::native::vec_kernel<4, at::native::F<float>, std::array<char*, 2ul> >(int)",
     "vec_kernel"},
    {"void (anonymous namespace)::soft<float, (int)8>(float*)", "soft"},
    {"_ZN2at6native12index_kernelILi4EEEvi", "index_kernel"},
    {"_Z4axpyPf", "axpy"},
    {"_Zx", "_Zx"},
    {"", ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char brief[64];
    demangle_brief(cases[i].name, brief, sizeof brief);
    assert_string_equal(brief, cases[i].brief);
  }
}

static void test_packs_rows(void **state) {
  (void)state;
  static uint8_t buffer[PACK_TEXT_MOST * 2];
  static char text[PACK_TEXT_MOST + 100];
  memset(text, 'x', sizeof text - 1);
  static const char *const texts[] = {"", "1234567", "12345678", NULL, text};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct trace_row in = {.table = TRACE_NVTX}, out;
    PUT(&in, NVTX, start, -5);
    PUT_TEXT(&in, NVTX, text, texts[i]);
    PUT_REAL(&in, NVTX, floatValue, 0.5);
    pack_row(&in, buffer);
    assert_int_equal(pack_read(buffer, &out), pack_size(&in));
    assert_int_equal(out.table, TRACE_NVTX);
    assert_int_equal(out.set, in.set);
    assert_int_equal(out.cell[CELL_INDEX(NVTX, start)].i, -5);
    assert_true(out.cell[CELL_INDEX(NVTX, floatValue)].d == 0.5);
    const char *got = out.cell[CELL_INDEX(NVTX, text)].s;
    assert_int_equal(strlen(got), strnlen(texts[i] ? texts[i] : "", PACK_TEXT_MOST));
  }
}

static struct writer *start_writer(size_t memory_bytes) {
  char why[256];
  const struct writer_options options = {
    .path = path, .session = session_new(), .memory_bytes = memory_bytes};
  struct writer *w = writer_start(&options, why, sizeof why);
  if (!w) fail_msg("%s", why);
  return w;
}

static void stop_writer(struct writer *w) {
  char why[256];
  writer_stop(w, why, sizeof why);
  writer_free(w);
  assert_string_equal(why, "");
}

static void put_mark(struct writer *w, int64_t n) {
  struct trace_row row = {.table = TRACE_NVTX};
  PUT(&row, NVTX, start, n);
  PUT_TEXT(&row, NVTX, text, "a mark with some text");
  writer_put(w, &row);
}

enum { THREADS = 4, MARKS = 20000 };

static void *put_many(void *w) {
  for (int64_t i = 0; i < MARKS; i++) put_mark(w, i);
  return NULL;
}

static void test_writes_what_threads_give(void **state) {
  (void)state;
  struct writer *w = start_writer(0);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, put_many, w);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  stop_writer(w);
  assert_answer("SELECT count(*) FROM NVTX_EVENTS", "80000");
  assert_answer("SELECT sum(start) = 4 * 199990000 FROM NVTX_EVENTS", "1");
  assert_answer("SELECT count(*) FROM NCLUA_LOST", "0");
}

static void test_counts_what_finds_no_room(void **state) {
  (void)state;
  struct writer *w = start_writer(1); /* one buffer */
  enum { MANY = 400000 };
  for (int64_t i = 0; i < MANY; i++) put_mark(w, i);
  stop_writer(w);
  assert_answer("SELECT (SELECT count(*) FROM NVTX_EVENTS) + "
                "(SELECT sum(count) FROM NCLUA_LOST WHERE source = 'rows')",
                "400000");
  assert_answer("SELECT sum(count) > 0 FROM NCLUA_LOST", "1");
}

static void test_flushes_and_drops_after_the_end(void **state) {
  (void)state;
  char why[256];
  struct writer *w = start_writer(0);
  put_mark(w, 1);
  writer_flush(w);
  assert_answer("SELECT count(*) FROM NVTX_EVENTS", "1");
  uint8_t *late = writer_take(w);
  writer_stop(w, why, sizeof why);
  put_mark(w, 2);
  writer_give(w, late, 8);
  assert_null(writer_take(w));
  writer_free(w);
  assert_answer("SELECT count(*) FROM NVTX_EVENTS", "1");
}

static void test_is_readable_after_a_kill(void **state) {
  (void)state;
  int pipe_fd[2];
  assert_int_equal(pipe(pipe_fd), 0);
  const pid_t child = fork();
  if (child == 0) {
    struct writer *w = start_writer(0);
    for (int64_t i = 0; i < 1000; i++) put_mark(w, i);
    writer_flush(w);
    if (write(pipe_fd[1], "", 1) != 1) _exit(1);
    for (int64_t i = 1000;; i++) put_mark(w, i);
  }
  char byte;
  assert_int_equal(read(pipe_fd[0], &byte, 1), 1);
  usleep(200000);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  close(pipe_fd[0]);
  close(pipe_fd[1]);
  assert_answer("SELECT count(*) >= 1000 FROM NVTX_EVENTS", "1");
  /* Whole and in order: a row a number. */
  assert_answer("SELECT count(*) = max(start) + 1 FROM NVTX_EVENTS", "1");
  assert_answer("PRAGMA integrity_check", "ok");
}

static void test_replaces_only_traces(void **state) {
  (void)state;
  char why[256];
  const struct session session = session_new();
  FILE *file = fopen(path, "w");
  fputs("a thesis", file);
  fclose(file);
  assert_null(store_open(path, &session, why, sizeof why));
  assert_non_null(strstr(why, "exists and is not a trace"));
  file = fopen(path, "w"); /* empty */
  fclose(file);
  for (int i = 0; i < 2; i++) {
    struct store *store = store_open(path, &session, why, sizeof why);
    assert_non_null(store);
    store_close(store);
  }
  assert_answer("SELECT count(*) FROM PROCESSES", "1");
  assert_null(store_open("/nonexistent/x", &session, why, sizeof why));
  assert_non_null(strstr(why, "cannot write '/nonexistent/x'"));
}

static void test_expands_paths(void **state) {
  (void)state;
  char out[128], expected[128];
  assert_int_equal(expand_pattern("a%%b-%p.db", out, sizeof out), 0);
  snprintf(expected, sizeof expected, "a%%%%b-%d.db", (int)getpid());
  assert_string_equal(out, expected);
  assert_int_equal(expand_pattern("%p%p%p%p%p%p%p%p%p%p%p%p", out, 8), -1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_path, remove_path)
  const struct CMUnitTest tests[] = {
    TEST(test_decodes_every_version),
    TEST(test_decodes_all_kinds),
    TEST(test_brief_names),
    TEST(test_packs_rows),
    TEST(test_writes_what_threads_give),
    TEST(test_counts_what_finds_no_room),
    TEST(test_flushes_and_drops_after_the_end),
    TEST(test_is_readable_after_a_kill),
    TEST(test_replaces_only_traces),
    TEST(test_expands_paths),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
