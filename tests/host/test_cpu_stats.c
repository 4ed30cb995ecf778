/* What ranks send, and in how many steps, against the textbooks' formulas. */
#include "host/cpu/comm.h"
#include "tests/host/cpu_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RANKS 8
#define COUNT                                                                              \
  ((size_t)840 * 64) /* divisible by every number of ranks, in whole lines                 \
                      */
#define BYTES (COUNT * sizeof(float))

static struct cpu_stats sums[RANKS]; /* of one case, by rank */

static struct cpu_stats subtract(struct cpu_stats a, struct cpu_stats b) {
  return (struct cpu_stats){
    .bytes_sent = a.bytes_sent - b.bytes_sent,
    .bytes_received = a.bytes_received - b.bytes_received,
    .wire_sent = a.wire_sent - b.wire_sent,
    .bytes_reduced = a.bytes_reduced - b.bytes_reduced,
    .steps_sent = a.steps_sent - b.steps_sent,
    .steps_received = a.steps_received - b.steps_received,
  };
}

/* Runs one case and leaves in `sums` what it took. */
static void take(struct rank *r, struct cpu_case c) {
  struct buffers b;
  if (!rank_open(r)) return;
  if (buffers_open(r, &b, BYTES * (c.function > BROADCAST ? (size_t)r->count : 1))) {
    struct cpu_stats before = cpu_stats_read(&r->comm->stats);
    case_run(r, &c, &b);
    sums[r->index] = subtract(cpu_stats_read(&r->comm->stats), before);
    buffers_close(r, &b);
  }
  rank_close(r);
}

static void run_case(struct rank *r) {
  take(r, *(const struct cpu_case *)r->argument);
}

static void run(int ranks, enum function f, const char *algorithm, const char *protocol) {
  struct cpu_case c = {f, ncclFloat32, ncclSum, COUNT, 0, false};
  setenv("NCCL_ALGO", algorithm, 1);
  setenv("NCCL_PROTO", protocol, 1);
  if (f > BROADCAST) c.count = COUNT / (size_t)ranks;
  ranks_as_threads(ranks, run_case, &c);
}

static const struct {
  const char *name;
  size_t data, wire; /* bytes of its lines */
} protocols[] = {{"LL", 4, 8}, {"LL128", 120, 128}, {"Simple", 1, 1}};

/* At least the flags of whole lines, at most those of a line that each step leaves
 * unfilled.
 */
static void check_wire(const struct cpu_stats *s, size_t protocol) {
  size_t data = protocols[protocol].data, wire = protocols[protocol].wire;
  assert_true(s->wire_sent >= s->bytes_sent / data * wire);
  assert_true(s->wire_sent <= (s->bytes_sent / data + s->steps_sent) * wire);
}

static void ring_all_reduce(void **state) {
  size_t p = *(const size_t *)*state;
  for (int n = 2; n <= RANKS; n++) {
    run(n, ALL_REDUCE, "Ring", protocols[p].name);
    for (int r = 0; r < n; r++) {
      size_t part = BYTES / (size_t)n, neighbours = (size_t)n - 1;
      assert_int_equal(sums[r].bytes_sent, 2 * neighbours * part);
      assert_int_equal(sums[r].bytes_received, 2 * neighbours * part);
      assert_int_equal(sums[r].bytes_reduced, neighbours * part);
      assert_int_equal(sums[r].steps_sent % (2 * neighbours), 0);
      assert_int_equal(sums[r].steps_sent, sums[r].steps_received);
      check_wire(&sums[r], p);
    }
  }
}

/* Each of n blocks crosses n - 1 edges, whatever the way: as many for a rank. */
static void by_blocks(const char *algorithm, enum function f) {
  for (int n = 2; n <= RANKS; n++) {
    run(n, f, algorithm, "Simple");
    for (int r = 0; r < n; r++) {
      size_t blocks = ((size_t)n - 1) * (BYTES / (size_t)n);
      assert_int_equal(sums[r].bytes_sent, blocks);
      assert_int_equal(sums[r].bytes_received, blocks);
      assert_int_equal(sums[r].bytes_reduced, f == REDUCE_SCATTER ? blocks : 0);
    }
  }
}

static void gather_and_scatter(void **state) {
  (void)state;
  by_blocks("Ring", ALL_GATHER);
  by_blocks("Ring", REDUCE_SCATTER);
  by_blocks("PAT", ALL_GATHER);
  by_blocks("PAT", REDUCE_SCATTER);
}

/* A tree's edges carry the message once each way; a chain's once. */
static void along_edges(void **state) {
  (void)state;
  static const struct {
    enum function function;
    const char *algorithm;
    size_t times;
  } cases[] = {{ALL_REDUCE, "Tree", 2}, {BROADCAST, "Ring", 1}, {REDUCE, "Ring", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    for (int n = 2; n <= RANKS; n++) {
      size_t sent = 0, received = 0;
      run(n, cases[i].function, cases[i].algorithm, "LL128");
      for (int r = 0; r < n; r++) {
        sent += sums[r].bytes_sent;
        received += sums[r].bytes_received;
      }
      assert_int_equal(sent, cases[i].times * ((size_t)n - 1) * BYTES);
      assert_int_equal(received, sent);
    }
  }
}

/* A buffer of one page holds 512 bytes a slot: the steps follow from that. */
static void buffer_size(void **state) {
  (void)state;
  setenv("NCCL_BUFFSIZE", "4096", 1);
  run(2, ALL_REDUCE, "Ring", "Simple");
  unsetenv("NCCL_BUFFSIZE");
  assert_int_equal(sums[0].steps_sent, BYTES / 512);
}

int main(void) {
  static size_t numbers[] = {0, 1, 2};
  const struct CMUnitTest tests[] = {
    {"ring_all_reduce LL", ring_all_reduce, NULL, NULL, &numbers[0]},
    {"ring_all_reduce LL128", ring_all_reduce, NULL, NULL, &numbers[1]},
    {"ring_all_reduce Simple", ring_all_reduce, NULL, NULL, &numbers[2]},
    cmocka_unit_test(gather_and_scatter),
    cmocka_unit_test(along_edges),
    cmocka_unit_test(buffer_size),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
