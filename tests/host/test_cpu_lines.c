/* LL and LL128 where it is hardest: flags that come round again, and ranks that disagree.
 */
#include "host/cpu/comm.h"
#include "host/cpu/slot.h"
#include "tests/host/cpu_cases.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define RANKS 3

static pthread_barrier_t barrier;

/* As if all of the rank's connections had come so far: together, while nobody uses them. */
static void advance(struct rank *r, uint64_t steps, uint32_t uses) {
  pthread_barrier_wait(&barrier);
  for (int direction = 0; direction < CPU_DIRECTIONS; direction++) {
    for (int peer = 0; peer < r->count; peer++) {
      struct cpu_connection *c =
        cpu_connection_to(r->comm, CPU_LINK_COLLECTIVE, direction, 0, peer);
      c->step = c->seen = steps;
      for (int i = 0; i < CPU_STEPS; i++) c->uses[i] = uses;
      if (direction == CPU_RECV) atomic_store(&c->link->head, steps);
      if (direction == CPU_SEND) atomic_store(&c->link->tail, steps);
    }
  }
  pthread_barrier_wait(&barrier);
}

/* Small messages between large ones: most lines are not written most of the time. */
static void mix(struct rank *r, const struct buffers *b) {
  static const size_t counts[] = {1, 30000, 2, 3, 5, 8000, 1, 7, 9, 12, 1, 4, 20000};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    struct cpu_case c = {ALL_REDUCE, ncclInt32, i % 2 ? ncclSum : ncclMax, counts[i]};
    if (!case_run(r, &c, b)) return;
  }
}

static void far_steps(struct rank *r) {
  static const uint64_t steps[] = {
    0, (1u << 20) - 9, (1u << 24) - 40, ((uint64_t)1 << 32) - 30, (uint64_t)1 << 45};
  struct buffers b;
  if (!rank_open(r)) return;
  if (!buffers_open(r, &b, (size_t)256 << 10)) return;
  for (size_t i = 0; i < sizeof steps / sizeof steps[0] && !*r->failure; i++) {
    advance(r, steps[i], (uint32_t)steps[i]);
    mix(r, &b);
  }
  buffers_close(r, &b);
  rank_close(r);
}

/* The sum of `mine` over all ranks. */
static void sum_of(struct rank *r, int *x, size_t count, int mine) {
  for (size_t i = 0; i < count; i++) x[i] = mine;
  ncclResult_t rc = cpu_coll.all_reduce(x, x, count, ncclInt32, ncclSum, r->comm, NULL);
  EXPECT_RC(r, rc, ncclSuccess);
  rank_sync(r);
  size_t wrong = 0;
  for (size_t i = 0; i < count; i++) wrong += x[i] != mine * r->count;
  EXPECT_RC(r, wrong, 0);
}

/* Lines in the slots of all senders to this rank whose flag is that of a first use. */
static size_t count_first_flags(struct rank *r) {
  size_t found = 0;
  for (int peer = 0; peer < r->count; peer++) {
    struct cpu_connection c =
      *cpu_connection_to(r->comm, CPU_LINK_COLLECTIVE, CPU_RECV, 0, peer);
    for (int slot = 0; slot < CPU_STEPS; slot++, c.step++) {
      const uint32_t *words = (const void *)cpu_slot_data(&c, CPU_LL);
      size_t count = c.buffers->slot_bytes[CPU_LL] / sizeof *words;
      for (size_t i = 1; i < count; i += 2) found += (words[i] & 0xffffff) == 1;
    }
  }
  return found;
}

/* A flag's 24 bits come round again: by then no line may have the old one. */
static void stale_flags(struct rank *r) {
  enum { MANY = 12000 };
  int *x = calloc(MANY, sizeof *x);
  if (!rank_open(r)) return;
  sum_of(r, x, MANY, 1);
  pthread_barrier_wait(&barrier);
  EXPECT(r, count_first_flags(r) > MANY / RANKS);
  advance(r, 64, (1u << 20) - 1); /* where lines are cleaned */
  for (int i = 0; i < 2 * CPU_STEPS; i++) sum_of(r, x, 3, 5);
  pthread_barrier_wait(&barrier);
  EXPECT_RC(r, count_first_flags(r), 0);
  advance(r, 128, 1u << 24);
  sum_of(r, x, MANY, 2);
  rank_close(r);
  free(x);
}

/* Every rank but the first is in another operation. */
static const struct disagreement {
  size_t counts[2];
  ncclRedOp_t ops[2];
} disagreements[] = {
  {{1000, 500}, {ncclSum, ncclSum}},
  {{500, 1000}, {ncclSum, ncclSum}},
  {{1, 100000}, {ncclSum, ncclSum}},
  {{100000, 1}, {ncclMax, ncclMax}},
  {{1000, 1000}, {ncclSum, ncclProd}},
};

static void disagree(struct rank *r) {
  const struct disagreement *d = r->argument;
  int mine = r->index == 0;
  ncclResult_t error = ncclSuccess;
  int *x = calloc(100000, sizeof *x);
  if (!rank_open(r)) return;
  EXPECT_RC(
    r,
    cpu_coll.all_reduce(x, x, d->counts[mine], ncclInt32, d->ops[mine], r->comm, NULL),
    0);
  rank_sync(r);
  EXPECT_RC(r, cpu_coll.comm_get_async_error(r->comm, &error), 0);
  EXPECT(r, error == ncclInvalidUsage || error == ncclRemoteError);
  EXPECT_RC(r, cpu_coll.comm_abort(r->comm), 0);
  free(x);
}

static void test_disagreements(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof disagreements / sizeof disagreements[0]; i++) {
    ranks_as_threads(2, disagree, (void *)&disagreements[i]);
  }
}

static void test_far_steps(void **state) {
  (void)state;
  ranks_as_threads(RANKS, far_steps, NULL);
}

static void test_stale_flags(void **state) {
  (void)state;
  ranks_as_threads(RANKS, stale_flags, NULL);
}

int main(void) {
  static const char *const protocols[] = {"LL", "LL128"};
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_far_steps),
                                     cmocka_unit_test(test_disagreements)};
  const struct CMUnitTest of_ll[] = {cmocka_unit_test(test_stale_flags)};
  int failures = 0;
  pthread_barrier_init(&barrier, NULL, RANKS);
  setenv("NCCL_ALGO", "Ring", 1);
  setenv("NCCL_MAX_NCHANNELS", "1", 1);
  for (size_t i = 0; i < 2; i++) {
    setenv("NCCL_PROTO", protocols[i], 1);
    failures += cmocka_run_group_tests_name(protocols[i], tests, NULL, NULL);
  }
  setenv("NCCL_PROTO", "LL", 1);
  return failures + cmocka_run_group_tests(of_ll, NULL, NULL);
}
