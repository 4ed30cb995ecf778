/* Every collective of the CPU backend against a serial reference: all types, operators,
   numbers of ranks and odd sizes, with the algorithm, protocol and number of channels that
   are named. test_cpu_coll ALGORITHM PROTOCOL CHANNELS [processes]: there the ranks are
   forked, else they are threads, which ThreadSanitizer can watch. */
#include "host/cpu/algorithm.h"
#include "tests/host/cpu_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define ROOM ((size_t)600 << 10) /* cases that need more are left out */

/* Sanitizers are slow: fewer of the sizes and numbers of ranks, but of all kinds. */
#if defined(__SANITIZE_THREAD__)
static const int ranks[] = {2, 3, 8};
#define STRIDE 5
#elif defined(__SANITIZE_ADDRESS__)
static const int ranks[] = {1, 2, 3, 5, 8};
#define STRIDE 3
#else
static const int ranks[] = {1, 2, 3, 4, 5, 6, 7, 8};
#define STRIDE 1
#endif

static bool forked;
static const struct cpu_algorithm *algorithm;

static void run_ranks(int count, rank_function *fn, void *argument) {
  if (forked)
    ranks_as_processes(count, fn, argument);
  else
    ranks_as_threads(count, fn, argument);
}

/* What is composed of sends and receives is run beside one algorithm. */
static bool is_able(enum function f) {
  switch (f) {
    case ALL_REDUCE: return algorithm->run[CPU_ALL_REDUCE];
    case REDUCE: return algorithm->run[CPU_REDUCE];
    case BROADCAST: return algorithm->run[CPU_BROADCAST];
    case ALL_GATHER: return algorithm->run[CPU_ALL_GATHER];
    case REDUCE_SCATTER: return algorithm->run[CPU_REDUCE_SCATTER];
    default: return algorithm == &cpu_ring;
  }
}

/* Like NCCL, the selection keeps these away from PAT. */
static bool is_barred(const struct cpu_case *c) {
  bool scales = c->op == ncclAvg || c->op == DOUBLED_SUM;
  return algorithm == &cpu_pat && c->function == REDUCE_SCATTER && scales;
}

static bool is_wanted(const struct rank *r, const struct cpu_case *c,
                      const struct buffers *b) {
  return is_able(c->function) && !is_barred(c) && case_bytes(c, r->count) <= b->bytes;
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

/* Around lines (4, 120 bytes), one block of them (3840), one slot of threads (LL 4 KiB,
   LL128 7680, Simple 8 KiB), one chunk (32 KiB), and one of processes (512 KiB). */
static void all_counts(struct rank *r, const struct buffers *b) {
  static const size_t counts[] = {0,    1,    2,     17,    29,     30,     31,
                                  959,  960,  961,   1023,  1024,   1025,   1919,
                                  1920, 1921, 2047,  2048,  2049,   4099,   8191,
                                  8192, 8193, 16385, 32769, 131071, 131072, 131073};
  for (size_t n = 0; n < COUNT(counts); n += STRIDE) {
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

static void set_buffers(const char *bytes) {
  setenv("NCCL_LL_BUFFSIZE", bytes, 1);
  setenv("NCCL_LL128_BUFFSIZE", bytes, 1);
  setenv("NCCL_BUFFSIZE", bytes, 1);
}

static void test_ranks(void **state) {
  run_ranks(*(const int *)*state, sweep, NULL);
}

int main(int argc, char **argv) {
  static char names[COUNT(ranks)][32];
  struct CMUnitTest tests[COUNT(ranks)];
  if (argc < 4) {
    fprintf(stderr, "usage: %s ALGORITHM PROTOCOL CHANNELS [processes]\n", argv[0]);
    return 2;
  }
  for (int i = 0; i < CPU_ALGORITHMS; i++) {
    const struct cpu_algorithm *a = cpu_algorithms[i];
    if (a && strcmp(a->name, argv[1]) == 0) algorithm = a;
  }
  if (!algorithm) return 2;
  forked = argc > 4 && strcmp(argv[4], "processes") == 0;
  setenv("NCCL_ALGO", argv[1], 1);
  setenv("NCCL_PROTO", argv[2], 1);
  setenv("NCCL_MIN_NCHANNELS", argv[3], 1);
  setenv("NCCL_MAX_NCHANNELS", argv[3], 1);
  setenv("NCLUA_CPU_THREADS", "2", 1);
  if (!forked) set_buffers("65536"); /* more of everything for the same number of bytes */
  for (size_t i = 0; i < COUNT(ranks); i++) {
    snprintf(
      names[i], sizeof names[i], "%d %s", ranks[i], forked ? "processes" : "threads");
    tests[i] = (struct CMUnitTest){names[i], test_ranks, NULL, NULL, (void *)&ranks[i]};
  }
  return cmocka_run_group_tests_name(argv[1], tests, NULL, NULL);
}
