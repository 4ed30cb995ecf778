#include "tests/host/cpu_ranks.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define FAILURE_BYTES 1024
#define RANKS_MAX 16

static pthread_mutex_t failure_lock = PTHREAD_MUTEX_INITIALIZER;

bool rank_fail(struct rank *r, const char *file, int line, const char *fmt, ...) {
  char text[FAILURE_BYTES / 2];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  pthread_mutex_lock(&failure_lock); /* of processes, the last one wins */
  if (!*r->failure) {
    snprintf(r->failure,
             FAILURE_BYTES,
             "%s:%d: rank %d of %d: %s",
             file,
             line,
             r->index,
             r->count,
             text);
  }
  pthread_mutex_unlock(&failure_lock);
  return false;
}

bool rank_check(struct rank *r, const char *file, int line, const char *text, bool holds) {
  return holds || rank_fail(r, file, line, "%s", text);
}

bool rank_expect(struct rank *r, const char *file, int line, const char *call, int got,
                 int wanted) {
  if (got == wanted) return true;
  const char *text = cpu_coll.get_last_error(NULL);
  return rank_fail(
    r, file, line, "%s is %d, expected %d; last error: %s", call, got, wanted, text);
}

bool rank_open(struct rank *r) {
  return EXPECT_RC(
    r, cpu_coll.comm_init_rank(&r->comm, r->count, r->id, r->index), ncclSuccess);
}

void rank_close(struct rank *r) {
  EXPECT_RC(r, cpu_coll.comm_destroy(r->comm), ncclSuccess);
  r->comm = NULL;
}

void rank_sync(struct rank *r) {
  EXPECT_RC(r, cpu_device.stream_synchronize(NULL), CUDA_SUCCESS);
}

bool rank_start_backend(struct rank *r) {
  struct err e;
  return EXPECT_RC(r, cpu_device.load(NULL, &e), 0) &&
         EXPECT_RC(r, cpu_coll.load(NULL, &e), 0) &&
         EXPECT_RC(r, cpu_device.init(0), CUDA_SUCCESS);
}

bool rank_take_device(struct rank *r, CUdevice device) {
  CUcontext ctx;
  return EXPECT_RC(r, cpu_device.primary_ctx_retain(&ctx, device), CUDA_SUCCESS) &&
         EXPECT_RC(r, cpu_device.ctx_set_current(ctx), CUDA_SUCCESS);
}

static rank_function *body; /* of the ranks that run now */

static void *run(void *argument) {
  struct rank *r = argument;
  if (rank_take_device(r, r->index % 8)) body(r);
  return NULL;
}

static void fill(struct rank *ranks, int count, void *argument, char *failure) {
  ncclUniqueId id;
  assert_int_equal(cpu_coll.get_unique_id(&id), ncclSuccess);
  assert_in_range(count, 1, RANKS_MAX);
  *failure = '\0';
  for (int i = 0; i < count; i++) {
    ranks[i] = (struct rank){i, count, id, NULL, argument, failure};
  }
}

void ranks_as_threads(int count, rank_function *fn, void *argument) {
  struct rank ranks[RANKS_MAX];
  pthread_t threads[RANKS_MAX];
  char failure[FAILURE_BYTES];
  fill(ranks, count, argument, failure);
  body = fn;
  if (!rank_start_backend(&ranks[0])) fail_msg("%s", failure);
  for (int i = 0; i < count; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, run, &ranks[i]), 0);
  }
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
  if (*failure) fail_msg("%s", failure);
}

/* exit, not _exit: LeakSanitizer looks at a process when it exits. */
static void run_and_exit(struct rank *r) {
  if (rank_start_backend(r)) run(r);
  exit(0);
}

void ranks_as_processes(int count, rank_function *fn, void *argument) {
  struct rank ranks[RANKS_MAX];
  pid_t pids[RANKS_MAX];
  char *failure =
    mmap(NULL, FAILURE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(failure, MAP_FAILED);
  fill(ranks, count, argument, failure);
  body = fn;
  fflush(NULL);
  for (int i = 0; i < count; i++) {
    pids[i] = fork();
    if (pids[i] == 0) run_and_exit(&ranks[i]);
  }
  for (int i = 0; i < count; i++) {
    int status;
    assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
    if (status && !WIFSIGNALED(status)) rank_fail(&ranks[i], __FILE__, __LINE__, "exit");
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
      rank_fail(&ranks[i], __FILE__, __LINE__, "signal %d", WTERMSIG(status));
    }
  }
  char text[FAILURE_BYTES];
  snprintf(text, sizeof text, "%s", failure);
  munmap(failure, FAILURE_BYTES);
  if (*text) fail_msg("%s", text);
}
