/* The tuner plugin through NCCL's ABI, as NCCL calls it, and its rule reader. */

#include "plugins/tuner/abi.h"
#include "plugins/tuner/rules.h"
#include "plugins/tuner/steer.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ALL_REDUCE = 4, TREE = 0, RING = 1, PAT = 6, LL = 0, SIMPLE = 2, CELLS = 21 };

static char *write_file(const char *text) {
  static char path[64];
  strcpy(path, "/tmp/nclua-test-tuner-XXXXXX");
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  close(fd);
  return path;
}

static void test_reads_rules(void **state) {
  (void)state;
  struct rules r = {0};
  char why[512];
  char *path =
    write_file("# a comment\ncolltype,minbytes,maxbytes,algorithm,protocol,channels,...\n\n"
               "allreduce,0,65536,tree,ll,2,2,16,-1,-1\n"
               "allgather, 1K , 8G ,nvls_tree,SIMPLE,-1\n");
  assert_int_equal(rules_read(&r, path, why, sizeof why), 0);
  unlink(path);
  assert_int_equal(r.count, 2);
  assert_int_equal(r.rows[0].func, ALL_REDUCE);
  assert_int_equal(r.rows[0].max_bytes, 65536);
  assert_int_equal(r.rows[0].channels, 2);
  assert_int_equal(r.rows[0].ranks, 16);
  assert_int_equal(r.rows[1].min_bytes, 1024);
  assert_true(r.rows[1].max_bytes == 8ull << 30);
  assert_int_equal(r.rows[1].algorithm, 5);
  assert_int_equal(r.rows[1].channels, 0);
  assert_int_equal(r.rows[1].nodes, ANY);
  rules_free(&r);
}

static void test_rejects_malformed_files_whole(void **state) {
  (void)state;
  static const struct {
    const char *text, *why;
  } cases[] = {
    {"allreduce,0,1,tree\n", "line 1: 4 fields, expected 6 to 10"},
    {"allreduce,0,1,tree,ll,1,1,1,1,1,1\n", "line 1: 11 fields"},
    {"allreduce,0,1,tree,ll,1\nbarrier,0,1,tree,ll,1\n", "line 2: unknown collective"},
    {"allreduce,0,1,star,ll,1\n", "unknown algorithm 'star'"},
    {"allreduce,0,1,tree,fast,1\n", "unknown protocol 'fast'"},
    {"allreduce,x,1,tree,ll,1\n", "field 2: 'x' is not a number"},
    {"allreduce,0,99999999999999999999,tree,ll,1\n", "field 3"},
    {"allreduce,9,1,tree,ll,1\n", "minbytes > maxbytes"},
    {"allreduce,0,1,tree,ll,99999\n", "99999 channels"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct rules r = {0};
    char why[512] = "";
    char *path = write_file(cases[i].text);
    assert_int_equal(rules_read(&r, path, why, sizeof why), -1);
    unlink(path);
    if (!strstr(why, cases[i].why)) fail_msg("got '%s', want '%s'", why, cases[i].why);
    assert_int_equal(r.count, 0);
  }
}

static void test_parses_force(void **state) {
  (void)state;
  struct rules r = {0};
  char why[512];
  const char *text = "all_reduce:Tree/Simple/2:64M-1G; broadcast:ring/ll";
  assert_int_equal(rules_parse_force(&r, text, why, sizeof why), 0);
  assert_int_equal(r.count, 2);
  assert_true(r.rows[0].min_bytes == 64 << 20 && r.rows[0].max_bytes == 1 << 30);
  assert_int_equal(r.rows[0].channels, 2);
  assert_true(r.rows[1].max_bytes == UINT64_MAX);
  rules_free(&r);
  assert_int_equal(rules_parse_force(&r, "all_reduce=tree", why, sizeof why), -1);
  assert_non_null(strstr(why, "expected FUNCTION:ALGORITHM/PROTOCOL"));
}

static void *library;

static void fill(float table[CELLS]) {
  for (int i = 0; i < CELLS; i++) table[i] = (float)(10 + i);
  table[PAT * 3 + LL] = -1;
}

static int ask(void *context, uint64_t bytes, float table[CELLS], int *channels) {
  const struct abi_v4 *v4 = dlsym(library, "ncclTunerPlugin_v4");
  *channels = 0;
  fill(table);
  return v4->get_coll_info(
    context, ALL_REDUCE, bytes, 1, (float **)(void *)table, 7, 3, 0, channels);
}

static void test_all_versions_are_there(void **state) {
  (void)state;
  static const char *const symbols[] = {"ncclTunerPlugin_v2",
                                        "ncclTunerPlugin_v3",
                                        "ncclTunerPlugin_v4",
                                        "ncclTunerPlugin_v5",
                                        "ncclTunerPlugin_v6"};
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    const char *const *plugin = dlsym(library, symbols[i]);
    assert_non_null(plugin);
    assert_string_equal(*plugin, "nclua");
  }
  assert_int_equal(sizeof(struct abi_v5), 32);
  assert_int_equal(sizeof(struct abi_v6), 40);
}

static void test_live_choice(void **state) {
  (void)state;
  const struct abi_v4 *v4 = dlsym(library, "ncclTunerPlugin_v4");
  int (*force)(int, int, int, int);
  void (*report)(struct steer_report *);
  *(void **)&force = dlsym(library, "nclua_tuner_force");
  *(void **)&report = dlsym(library, "nclua_tuner_report");
  void *context;
  float table[CELLS];
  int channels;
  struct steer_report before, after;
  assert_int_equal(v4->init(4, 1, NULL, &context), 0);
  report(&before);

  assert_int_equal(ask(context, 1 << 20, table, &channels), 0);
  assert_true(table[TREE * 3 + SIMPLE] == 12 && channels == 0);

  assert_int_equal(force(ALL_REDUCE, TREE, SIMPLE, 2), 0);
  assert_int_equal(ask(context, 1 << 20, table, &channels), 0);
  assert_true(table[TREE * 3 + SIMPLE] == 0 && table[RING * 3 + LL] == 13);
  assert_int_equal(channels, 2);

  assert_int_equal(force(-1, PAT, LL, 0), 0); /* not available: nothing changes */
  assert_int_equal(ask(context, 1 << 20, table, &channels), 0);
  assert_true(table[PAT * 3 + LL] == -1 && channels == 0);

  assert_int_equal(force(-1, -1, 0, 0), 0);
  assert_int_equal(ask(context, 1 << 20, table, &channels), 0);
  assert_true(table[TREE * 3 + SIMPLE] == 12);

  report(&after);
  assert_int_equal(after.calls - before.calls, 4);
  assert_int_equal(after.forced - before.forced, 1);
  assert_int_equal(after.unavailable - before.unavailable, 1);
  assert_int_equal(force(5, 0, 0, 0), -1);
  assert_int_equal(force(0, 8, 0, 0), -1);
  assert_int_equal(force(0, 0, 3, 0), -1);
  v4->destroy(context);
}

static void test_version_2_has_no_table(void **state) {
  (void)state;
  const struct abi_v2 *v2 = dlsym(library, "ncclTunerPlugin_v2");
  int (*force)(int, int, int, int);
  *(void **)&force = dlsym(library, "nclua_tuner_force");
  void *context;
  int algorithm = -1, protocol = -1, channels = 0;
  assert_int_equal(v2->init(4, 1, NULL, &context), 0);
  v2->get_coll_info(context, ALL_REDUCE, 64, 0, 0, 1, &algorithm, &protocol, &channels);
  assert_int_equal(algorithm, -1);
  force(ALL_REDUCE, RING, LL, 3);
  v2->get_coll_info(context, ALL_REDUCE, 64, 0, 0, 1, &algorithm, &protocol, &channels);
  assert_true(algorithm == RING && protocol == LL && channels == 3);
  force(-1, -1, 0, 0);
  v2->destroy(context);
}

static void test_shapes_of_the_future_are_left_alone(void **state) {
  (void)state;
  const struct abi_v5 *v5 = dlsym(library, "ncclTunerPlugin_v5");
  void *context;
  float table[64] = {0};
  int channels = 0;
  assert_int_equal(v5->init(&context, 1, 4, 1, NULL, NULL, NULL), 0);
  float **cells = (float **)(void *)table;
  assert_int_equal(v5->get_coll_info(context, 9, 1, 1, cells, 7, 3, 0, &channels), 0);
  assert_int_equal(v5->get_coll_info(context, 4, 1, 1, cells, 9, 3, 0, &channels), 0);
  assert_int_equal(v5->get_coll_info(context, 4, 1, 1, cells, 7, 4, 0, &channels), 0);
  assert_int_equal(v5->get_coll_info(NULL, 4, 1, 1, cells, 7, 3, 0, &channels), 0);
  v5->finalize(context);
}

static void test_observation_is_written(void **state) {
  (void)state;
  const char *path = getenv("NCLUA_TUNER_OBSERVE");
  void (*flush)(void);
  *(void **)&flush = dlsym(library, "nclua_tuner_flush");
  const struct abi_v4 *v4 = dlsym(library, "ncclTunerPlugin_v4");
  void *context;
  float table[CELLS];
  int channels;
  assert_int_equal(v4->init(4, 2, NULL, &context), 0);
  ask(context, 123456, table, &channels);
  flush();
  FILE *file = fopen(path, "re");
  assert_non_null(file);
  char line[1024];
  int seen = 0;
  while (fgets(line, sizeof line, file)) {
    seen += strncmp(line, "allreduce,123456,4,2,1,0,0,kept,tree,ll,10,11,12,", 49) == 0;
  }
  fclose(file);
  assert_int_equal(seen, 1);
  v4->destroy(context);
}

int main(void) {
  static char observed[] = "/tmp/nclua-test-observe-XXXXXX";
  int fd = mkstemp(observed);
  if (fd < 0) return 1;
  close(fd);
  setenv("NCLUA_TUNER_OBSERVE", observed, 1);
  library = dlopen(getenv("NCLUA_TUNER_PLUGIN"), RTLD_NOW);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_reads_rules),
    cmocka_unit_test(test_rejects_malformed_files_whole),
    cmocka_unit_test(test_parses_force),
    cmocka_unit_test(test_all_versions_are_there),
    cmocka_unit_test(test_live_choice),
    cmocka_unit_test(test_version_2_has_no_table),
    cmocka_unit_test(test_shapes_of_the_future_are_left_alone),
    cmocka_unit_test(test_observation_is_written),
  };
  int rc = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(observed);
  return rc;
}
