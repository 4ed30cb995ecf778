/* Ranks of the CPU backend that die: the others learn it, and nothing is left behind. */
#include "tests/host/cpu_ranks.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT ((size_t)1 << 20)
#define LIMIT_S 5

static void die(int unused) {
  (void)unused;
  raise(SIGKILL);
}

/* Keeps summing until a peer is missing. */
static void sum_until_error(struct rank *r) {
  char *x = calloc(COUNT, 1);
  ncclResult_t error = ncclSuccess;
  for (int i = 0; !error; i++) {
    if (r->index == 1 && i == 20) raise(SIGKILL);
    ncclResult_t rc = cpu_coll.all_reduce(x, x, COUNT, ncclInt8, ncclMax, r->comm, NULL);
    EXPECT_RC(r, rc, ncclSuccess);
    rank_sync(r);
    EXPECT_RC(r, cpu_coll.comm_get_async_error(r->comm, &error), 0);
  }
  EXPECT_RC(r, error, ncclRemoteError);
  EXPECT_RC(r, cpu_coll.comm_destroy(r->comm), 0);
  free(x);
}

static void killed(struct rank *r) {
  time_t start = time(NULL);
  if (!rank_open(r)) return;
  sum_until_error(r);
  EXPECT(r, time(NULL) - start <= LIMIT_S);
}

/* Rank 0 dies while it waits for a rank that never comes. */
static void killed_while_joining(struct rank *r) {
  if (r->index == 0) {
    signal(SIGALRM, die);
    alarm(1);
  }
  ncclResult_t rc = cpu_coll.comm_init_rank(&r->comm, 3, r->id, r->index);
  EXPECT_RC(r, rc, ncclRemoteError);
  EXPECT(r, strstr(cpu_coll.get_last_error(NULL), "rank 0 died"));
}

/* Who has done its part may go without a word: the others finish what they can. */
static void leaves_early(struct rank *r) {
  int x = 1;
  if (!rank_open(r)) return;
  EXPECT_RC(r, cpu_coll.broadcast(&x, &x, 1, ncclInt32, 0, r->comm, NULL), 0);
  rank_sync(r);
  if (r->index == 0) return;
  usleep(100000);
  ncclResult_t error = ncclInternalError;
  EXPECT_RC(r, cpu_coll.comm_get_async_error(r->comm, &error), 0);
  EXPECT_RC(r, error, ncclSuccess);
  EXPECT_RC(r, x, 1);
  rank_close(r);
}

static int count_shared_files(void) {
  int count = 0;
  DIR *d = opendir("/dev/shm");
  if (!d) return 0;
  for (struct dirent *e; (e = readdir(d));) count += strstr(e->d_name, "nclua") != NULL;
  closedir(d);
  return count;
}

static void run_and_look(int ranks, rank_function *fn) {
  ranks_as_processes(ranks, fn, NULL);
  assert_int_equal(count_shared_files(), 0);
}

static void test_killed(void **state) {
  (void)state;
  run_and_look(2, killed);
  run_and_look(4, killed);
}

static void test_killed_while_joining(void **state) {
  (void)state;
  run_and_look(2, killed_while_joining);
}

static void test_leaves_early(void **state) {
  (void)state;
  run_and_look(3, leaves_early);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_killed),
    cmocka_unit_test(test_killed_while_joining),
    cmocka_unit_test(test_leaves_early),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
