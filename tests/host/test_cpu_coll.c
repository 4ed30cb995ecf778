/* Every collective of the CPU backend against a serial reference: all types, operators,
   algorithms, numbers of ranks and odd sizes. With "processes" as argument the ranks are
   forked, else they are threads, which ThreadSanitizer can watch. */
#include "tests/host/cpu_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define RANKS 8
#define ROOM ((size_t)600 << 10) /* cases that need more are left out */

static bool forked;
static const char *algorithm; /* NCCL_ALGO */

static void run_ranks(int count, rank_function *fn, void *argument) {
  if (forked)
    ranks_as_processes(count, fn, argument);
  else
    ranks_as_threads(count, fn, argument);
}

static bool is_wanted(const struct rank *r, const struct cpu_case *c,
                      const struct buffers *b) {
  bool able = c->function == ALL_REDUCE || strcmp(algorithm, "Tree") != 0;
  return able && case_bytes(c, r->count) <= b->bytes;
}

static void run_case(struct rank *r, struct cpu_case c, const struct buffers *b) {
  if (is_wanted(r, &c, b)) case_run(r, &c, b);
}

static void run_both_ways(struct rank *r, struct cpu_case c, const struct buffers *b) {
  run_case(r, c, b);
  c.in_place = !c.in_place;
  run_case(r, c, b);
}

/* The roots, and whether it is in place, differ from case to case. */
static struct cpu_case make_case(const struct rank *r, enum function f, ncclDataType_t type,
                                 int op, size_t count) {
  int root = (int)(count + type) % r->count;
  return (struct cpu_case){f, type, op, count, root, ((int)type + op) % 2};
}

static void all_types(struct rank *r, const struct buffers *b) {
  static const int ops[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg, DOUBLED_SUM};
  static const size_t counts[] = {1, 1021};
  for (ncclDataType_t type = 0; type < ncclNumTypes; type++) {
    for (size_t o = 0; o < COUNT(ops); o++) {
      for (size_t n = 0; n < COUNT(counts) && !*r->failure; n++) {
        run_case(r, make_case(r, ALL_REDUCE, type, ops[o], counts[n]), b);
        run_case(r, make_case(r, REDUCE, type, ops[o], counts[n]), b);
        run_case(r, make_case(r, REDUCE_SCATTER, type, ops[o], counts[n]), b);
      }
    }
  }
}

/* Around one slice (4 KiB), one slot (64 KiB), all slots of a connection (512 KiB). */
static void all_counts(struct rank *r, const struct buffers *b) {
  static const size_t counts[] = {
    0, 2, 17, 1023, 1024, 1025, 4099, 16383, 16384, 16385, 131071, 131072, 131073};
  for (size_t n = 0; n < COUNT(counts); n++) {
    for (enum function f = 0; f < FUNCTIONS && !*r->failure; f++) {
      run_both_ways(r, make_case(r, f, ncclFloat32, ncclSum, counts[n]), b);
      run_both_ways(r, make_case(r, f, ncclUint8, ncclMax, counts[n]), b);
    }
  }
}

static void sweep(struct rank *r) {
  struct buffers b;
  if (!rank_open(r) || !buffers_open(r, &b, ROOM)) return;
  all_types(r, &b);
  all_counts(r, &b);
  buffers_close(r, &b);
  rank_close(r);
}

static void test_ranks(void **state) {
  const int *ranks = *state;
  run_ranks(*ranks, sweep, NULL);
}

int main(int argc, char **argv) {
  static const char *const algorithms[] = {"Ring", "Tree"};
  static int ranks[RANKS];
  static char names[RANKS][32];
  struct CMUnitTest tests[RANKS];
  int failures = 0;
  forked = argc > 1 && strcmp(argv[1], "processes") == 0;
  for (int i = 0; i < RANKS; i++) {
    ranks[i] = i + 1;
    snprintf(names[i], sizeof names[i], "%d %s", i + 1, forked ? "processes" : "threads");
    tests[i] = (struct CMUnitTest){names[i], test_ranks, NULL, NULL, &ranks[i]};
  }
  for (size_t a = 0; a < COUNT(algorithms); a++) {
    algorithm = algorithms[a];
    setenv("NCCL_ALGO", algorithm, 1);
    failures += cmocka_run_group_tests_name(algorithm, tests, NULL, NULL);
  }
  return failures;
}
