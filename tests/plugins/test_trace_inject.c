/* The plugin as CUDA's driver and NVTX's headers load it, over a CUPTI that needs no GPU. A
   process has one trace, so each case is a process of its own. */

#include "plugins/trace/abi.h"
#include "plugins/trace/trace.h"
#include "tests/plugins/fake_cupti.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include <cmocka.h>

static char folder[64];

static void *find(const char *library, const char *symbol) {
  void *handle = dlopen(library, RTLD_NOW);
  void *address = handle ? dlsym(handle, symbol) : NULL;
  if (!address) fprintf(stderr, "%s\n", dlerror());
  return address;
}

#define PLUGIN(name, pointer)                                                              \
  do {                                                                                     \
    void *address = find(getenv("NCLUA_TRACE_PLUGIN"), name);                              \
    memcpy(&(pointer), &address, sizeof address);                                          \
  } while (0)

#define FAKE(name, pointer)                                                                \
  do {                                                                                     \
    void *address = find(getenv("NCLUA_CUPTI_LIB"), name);                                 \
    memcpy(&(pointer), &address, sizeof address);                                          \
  } while (0)

static uint64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Runs `body` in a child and returns its status; the child's stderr goes to `said`. */
static int run(void (*body)(void), char *said, size_t size) {
  int fd[2];
  assert_int_equal(pipe(fd), 0);
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    dup2(fd[1], STDERR_FILENO);
    body();
    exit(0);
  }
  close(fd[1]);
  size_t used = 0;
  for (ssize_t n; (n = read(fd[0], said + used, size - 1 - used)) > 0;) used += (size_t)n;
  said[used] = '\0';
  close(fd[0]);
  int status;
  waitpid(child, &status, 0);
  return status;
}

static const char *ask(const char *file, const char *sql) {
  static char answer[512], path[128];
  sqlite3 *db;
  sqlite3_stmt *stmt;
  snprintf(path, sizeof path, "%s/%s", folder, file);
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

#define assert_answer(file, sql, expected) assert_string_equal(ask(file, sql), expected)

static void set_file(const char *name) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  setenv("NCLUA_TRACE_FILE", path, 1);
}

static void initialize(void) {
  int (*function)(void);
  PLUGIN("InitializeInjection", function);
  if (function() != 1) _exit(9);
}

static void record(int kernels) {
  void (*kernel)(const char *, int, int, uint64_t, uint64_t, uint32_t);
  void (*call)(uint32_t, uint64_t, uint64_t, uint32_t);
  FAKE("fake_kernel", kernel);
  FAKE("fake_call", call);
  for (int i = 0; i < kernels; i++) {
    const uint64_t now = monotonic_ns();
    call(211, now, now + 10, (uint32_t)i + 1);
    kernel("_Z4axpyPf", i + 1, 256, now + 20, now + 30, (uint32_t)i + 1);
  }
}

static void trace_some(void) {
  set_file("some.sqlite");
  initialize();
  record(3);
}

static void test_records_a_program(void **state) {
  (void)state;
  char said[512], file[64];
  fflush(NULL);
  const int status = run(trace_some, said, sizeof said);
  assert_string_equal(said, "");
  assert_int_equal(status, 0);
  /* A name without %p got one. */
  char command[256], line[256] = "";
  snprintf(command, sizeof command, "ls %s | grep '^some[.][0-9]*[.]sqlite$'", folder);
  FILE *list = popen(command, "r");
  assert_non_null(fgets(line, sizeof line, list));
  pclose(list);
  line[strcspn(line, "\n")] = '\0';
  snprintf(file, sizeof file, "%s", line);
  assert_answer(
    file,
    "SELECT group_concat(gridX || '/' || blockX) FROM CUPTI_ACTIVITY_KIND_KERNEL",
    "1/256,2/256,3/256");
  assert_answer(file,
                "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN "
                "CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) JOIN StringIds "
                "ON id = shortName WHERE value = 'axpy' AND r.start < k.start "
                "AND r.globalTid >> 24 = k.globalPid >> 24",
                "3");
  /* The clock was translated: seconds since the start, not since the machine's. */
  assert_answer(
    file,
    "SELECT min(start) >= 0 AND max(end) < 60e9 FROM CUPTI_ACTIVITY_KIND_KERNEL",
    "1");
  assert_answer(file, "PRAGMA journal_mode", "delete");
}

static void trace_and_die(void) {
  set_file("dead.%p.sqlite");
  char link_name[128], path[160];
  snprintf(link_name, sizeof link_name, "%s/dead.sqlite", folder);
  snprintf(path, sizeof path, "dead.%d.sqlite", (int)getpid());
  if (symlink(path, link_name)) _exit(8);
  initialize();
  record(5000); /* more than a buffer of the fake's */
  usleep(400000);
  kill(getpid(), SIGKILL);
}

static void test_is_readable_after_a_kill(void **state) {
  (void)state;
  char said[512];
  const int status = run(trace_and_die, said, sizeof said);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  assert_answer(
    "dead.sqlite", "SELECT count(*) > 1000 FROM CUPTI_ACTIVITY_KIND_KERNEL", "1");
}

static void trace_beside_another(void) {
  set_file("held.%p.sqlite");
  setenv("FAKE_CUPTI_SUBSCRIBE", "39", 1);
  initialize();
}

static void trace_unprivileged(void) {
  set_file("held.%p.sqlite");
  setenv("FAKE_CUPTI_SUBSCRIBE", "35", 1);
  initialize();
}

static void trace_without_name(void) {
  unsetenv("NCLUA_TRACE_FILE");
  initialize();
}

static void trace_without_cupti(void) {
  set_file("none.%p.sqlite");
  setenv("NCLUA_CUPTI_LIB", "/nonexistent/libcupti.so", 1);
  initialize();
}

static void trace_nowhere(void) {
  setenv("NCLUA_TRACE_FILE", "/nonexistent/%p.sqlite", 1);
  initialize();
}

static void test_says_why_nothing_is_recorded(void **state) {
  (void)state;
  static const struct {
    void (*body)(void);
    const char *said;
  } cases[] = {
    {trace_beside_another, "another profiler holds CUPTI"},
    {trace_unprivileged, "only administrators"},
    {trace_without_name, "NCLUA_TRACE_FILE does not name a file"},
    {trace_without_cupti, "cannot open '/nonexistent/libcupti.so'"},
    {trace_nowhere, "cannot write '/nonexistent/"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char said[1024];
    assert_int_equal(run(cases[i].body, said, sizeof said), 0); /* the program lives on */
    if (!strstr(said, cases[i].said)) fail_msg("got '%s', want '%s'", said, cases[i].said);
  }
}

/* Only kernels: the launching thread's calls are not asked for. */
static void trace_kernels_only(void) {
  set_file("kinds.%p.sqlite");
  setenv("NCLUA_TRACE_KINDS", "memcpy,kernel", 1);
  initialize();
  record(2);
  char why[64];
  int (*stop)(char *, size_t);
  PLUGIN("nclua_trace_stop", stop);
  if (stop(why, sizeof why)) _exit(7);
  char from[128], to[128];
  snprintf(from, sizeof from, "%s/kinds.%d.sqlite", folder, (int)getpid());
  snprintf(to, sizeof to, "%s/kinds.sqlite", folder);
  if (rename(from, to)) _exit(8);
  record(2); /* after the end: nothing */
}

static void test_records_what_is_asked_for(void **state) {
  (void)state;
  char said[512];
  assert_int_equal(run(trace_kernels_only, said, sizeof said), 0);
  assert_string_equal(said, "");
  assert_answer("kinds.sqlite", "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL", "2");
  assert_answer("kinds.sqlite", "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME", "0");
}

static void trace_launches(void) {
  set_file("launch.sqlite");
  setenv("NCLUA_TRACE_FILE", "", 1);
  setenv("NCLUA_TRACE_KINDS", "kernel,launch", 1);
  int (*start)(const char *, char *, size_t), (*stop)(char *, size_t);
  void (*call)(uint32_t, uint64_t, uint64_t, uint32_t);
  PLUGIN("nclua_trace_start", start);
  PLUGIN("nclua_trace_stop", stop);
  FAKE("fake_call", call);
  char path[128], why[256];
  snprintf(path, sizeof path, "%s/launch.sqlite", folder);
  if (start(path, why, sizeof why)) _exit(2);
  record(2);
  call(165, 1, 2, 9); /* cudaDeviceSynchronize */
  if (stop(why, sizeof why)) _exit(3);
}

static void test_records_launches_alone(void **state) {
  (void)state;
  char said[512];
  assert_int_equal(run(trace_launches, said, sizeof said), 0);
  assert_string_equal(said, "");
  assert_answer("launch.sqlite", "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME", "2");
  assert_answer("launch.sqlite", "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL", "2");
}

/* A host that opens the plugin: two traces, one after the other, ranges in both. */
static void trace_as_a_host(void) {
  int (*start)(const char *, char *, size_t), (*stop)(char *, size_t);
  void (*push)(const char *), (*pop)(void);
  PLUGIN("nclua_trace_start", start);
  PLUGIN("nclua_trace_stop", stop);
  PLUGIN("nclua_trace_push", push);
  PLUGIN("nclua_trace_pop", pop);
  unsetenv("NCLUA_TRACE_FILE");
  for (int i = 0; i < 2; i++) {
    char path[128], why[256];
    snprintf(path, sizeof path, "%s/host%d.sqlite", folder, i);
    if (start(path, why, sizeof why)) _exit(2);
    if (start(path, why, sizeof why) == 0 || !strstr(why, "running already")) _exit(3);
    push("outer");
    push("inner");
    pop();
    record(1);
    pop();
    pop(); /* one too many */
    if (stop(why, sizeof why)) _exit(4);
    push("between"); /* no trace runs */
    pop();
  }
}

static void test_serves_a_host(void **state) {
  (void)state;
  static const char *const files[] = {"host0.sqlite", "host1.sqlite"};
  char said[512];
  assert_int_equal(run(trace_as_a_host, said, sizeof said), 0);
  for (int i = 0; i < 2; i++) {
    assert_answer(files[i], "SELECT group_concat(text) FROM NVTX_EVENTS", "inner,outer");
    assert_answer(files[i], "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL", "1");
  }
}

/* A fork of a traced process records nothing into its parent's file, nor hangs. */
static void trace_a_fork(void) {
  set_file("fork.sqlite");
  void (*push)(const char *), (*pop)(void);
  PLUGIN("nclua_trace_push", push);
  PLUGIN("nclua_trace_pop", pop);
  push("parent");
  pop();
  const pid_t child = fork();
  push(child ? "parent again" : "child");
  pop();
  if (child) waitpid(child, NULL, 0);
}

static void test_gives_a_fork_its_own_file(void **state) {
  (void)state;
  char said[512], command[256], line[2][256];
  assert_int_equal(run(trace_a_fork, said, sizeof said), 0);
  assert_string_equal(said, "");
  snprintf(command, sizeof command, "cd %s && ls fork.*.sqlite | sort -V", folder);
  FILE *list = popen(command, "r");
  for (int i = 0; i < 2; i++) {
    assert_non_null(fgets(line[i], sizeof line[i], list));
    line[i][strcspn(line[i], "\n")] = '\0';
  }
  pclose(list);
  assert_answer(
    line[0], "SELECT group_concat(text) FROM NVTX_EVENTS", "parent,parent again");
  assert_answer(line[1], "SELECT group_concat(text) FROM NVTX_EVENTS", "child");
}

/* NVTX's side: the tables of one library that has NVTX inside. */
typedef void any_function(void);
static any_function *core[16], *core2[16];
static any_function **core_slots[16], **core2_slots[16];

static int get_table(unsigned module, any_function ****table, unsigned *size) {
  if (module != 1 && module != 5) return 0;
  *table = module == 1 ? core_slots : core2_slots;
  *size = 16;
  return 1;
}

static const struct {
  size_t size;
  int (*get)(unsigned module, any_function ****table, unsigned *size);
} callbacks = {sizeof callbacks, get_table};

static const void *get_export(uint32_t id) {
  return id == 1 ? &callbacks : NULL;
}

struct attributes {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const void *message;
};

static void trace_nvtx(void) {
  set_file("nvtx.%p.sqlite");
  char link_name[128], path[64];
  snprintf(link_name, sizeof link_name, "%s/nvtx.sqlite", folder);
  snprintf(path, sizeof path, "nvtx.%d.sqlite", (int)getpid());
  if (symlink(path, link_name)) _exit(8);
  for (int i = 0; i < 16; i++) {
    core_slots[i] = &core[i];
    core2_slots[i] = &core2[i];
  }
  int (*initialize_nvtx)(const void *(*get)(uint32_t));
  PLUGIN("InitializeInjectionNvtx2", initialize_nvtx);
  if (initialize_nvtx(get_export) != 1) _exit(9);
  ((void (*)(const char *))core[2])("a mark");
  ((void (*)(const wchar_t *))core[3])(L"Zürich 東京 😀");
  const uint64_t id = ((uint64_t(*)(const char *))core[5])("start to end");
  void *domain = ((void *(*)(const char *))core2[12])("NCCL");
  void *text = ((void *(*)(void *, const char *))core2[10])(domain, "ncclAllReduce");
  const struct attributes a = {3, 48, 9, 1, 0xff00ff, 1, 0, 4096, 3, text};
  if (((int (*)(const char *))core[9])("outer") != 0) _exit(1);
  if (((int (*)(void *, const void *))core2[4])(domain, &a) != 1) _exit(2);
  if (((int (*)(void *))core2[5])(domain) != 1) _exit(3);
  if (((int (*)(void))core[11])() != 0) _exit(4);
  if (((int (*)(void))core[11])() >= 0) _exit(5);
  ((void (*)(uint64_t))core[7])(id);
  ((void (*)(uint64_t))core[7])(id); /* twice is once */
  ((void (*)(uint32_t, const char *))core[14])(77, "worker");
}

static void test_records_nvtx(void **state) {
  (void)state;
  char said[512];
  assert_int_equal(run(trace_nvtx, said, sizeof said), 0);
  assert_string_equal(said, "");
#define ASK(columns, where)                                                                \
  ask("nvtx.sqlite", "SELECT " columns " FROM NVTX_EVENTS WHERE " where)
  assert_string_equal(ASK("group_concat(text)", "eventType = 34"), "a mark,Zürich 東京 😀");
  assert_string_equal(ASK("count(*)",
                          "eventType = 60 AND text = 'start to end' AND "
                          "end > start AND rangeId = 1"),
                      "1");
  assert_string_equal(ASK("group_concat(text)", "eventType = 59"), "ncclAllReduce,outer");
  assert_string_equal(ASK("format('%d %d %d %d', domainId, category, color, uint64Value)",
                          "text = 'ncclAllReduce'"),
                      "1 9 16711935 4096");
  assert_string_equal(ASK("text", "eventType = 75 AND domainId = 1"), "NCCL");
  assert_answer("nvtx.sqlite",
                "SELECT value FROM NVTX_EVENTS JOIN StringIds ON id = textId",
                "ncclAllReduce");
  assert_answer("nvtx.sqlite",
                "SELECT value FROM ThreadNames JOIN StringIds ON id = nameId WHERE "
                "globalTid & 0xffffff = 77",
                "worker");
}

/* Through the real library of this machine, which has no GPU: it says so and goes on. */
static void trace_with_real_cupti(void) {
  unsetenv("NCLUA_CUPTI_LIB");
  set_file("real.%p.sqlite");
  initialize();
}

static void test_survives_the_real_library(void **state) {
  (void)state;
  char said[1024];
  assert_int_equal(run(trace_with_real_cupti, said, sizeof said), 0);
  print_message("the machine's own CUPTI: %s\n", said[0] ? said : "accepted");
}

static int make_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/nclua-test-inject-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_records_a_program),
    cmocka_unit_test(test_is_readable_after_a_kill),
    cmocka_unit_test(test_says_why_nothing_is_recorded),
    cmocka_unit_test(test_records_what_is_asked_for),
    cmocka_unit_test(test_records_launches_alone),
    cmocka_unit_test(test_serves_a_host),
    cmocka_unit_test(test_gives_a_fork_its_own_file),
    cmocka_unit_test(test_records_nvtx),
    cmocka_unit_test(test_survives_the_real_library),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
