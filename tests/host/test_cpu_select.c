/* How the CPU backend chooses: NCCL's rules, on tables and sizes of NCCL's own. */

#include "host/cpu/comm.h"
#include "host/cpu/deal.h"
#include "host/cpu/select.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

#define ONES                                                                               \
  { 1, 1, 1, 1, 1 }

static const struct cpu_constants flat = {
  .cells = {[CPU_TREE] = {ONES, ONES, ONES},
            [CPU_RING] = {ONES, ONES, ONES},
            [CPU_PAT] = {[CPU_SIMPLE] = ONES}},
};

/* A communicator that has nothing but what the selection looks at. */
static struct ncclComm make_comm(int ranks, int cores, int channels,
                                 const struct cpu_constants *constants) {
  struct ncclComm comm = {.nranks = ranks, .rank = 1};
  struct cpu_tuner_constants edited;
  assert_int_equal(cpu_enabled_read(&comm.model.enabled), ncclSuccess);
  cpu_model_place(&comm.model, ranks, cores, (struct cpu_bounds){channels, channels});
  cpu_model_export(&comm.model, constants, &edited);
  cpu_model_make(&comm.model, constants, &edited);
  return comm;
}

static struct cpu_call make_call(struct ncclComm *comm, enum cpu_function f, size_t count) {
  struct cpu_call call = {.comm = comm};
  call.op = (struct cpu_op){.function = f, .count = count, .type = ncclFloat32};
  return call;
}

/* 24 channels, 2 ranks, Ring/LL: the channels that NCCL 2.28.3 logged on 2 H200. */
static void test_channels_as_nccl_logged_them(void **state) {
  (void)state;
  static const struct {
    size_t bytes;
    int channels;
  } cases[] = {{4, 1},
               {8 << 10, 1},
               {16 << 10, 2},
               {32 << 10, 4},
               {64 << 10, 8},
               {128 << 10, 16},
               {256 << 10, 22},
               {512 << 10, 24},
               {1 << 20, 24}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    struct cpu_op op = {.function = CPU_ALL_REDUCE, .count = cases[i].bytes / 4};
    struct cpu_choice choice = {.algorithm = CPU_RING, .protocol = CPU_LL};
    op.type = ncclFloat32;
    int most = 24; /* bytes that make a thread worth it: 8 by rank, 512 threads */
    while (most > 1 && cases[i].bytes < (size_t)most * 512 * 16) most--;
    cpu_deal(&choice, &op, 2, most, 24);
    assert_int_equal(choice.channels, cases[i].channels);
    assert_int_equal(choice.first_channel, 0);
  }
}

static void check_shares(const struct cpu_op *op, int ranks, int most, int channels) {
  for (int protocol = 0; protocol < CPU_PROTOCOLS; protocol++) {
    struct cpu_choice choice = {.algorithm = CPU_RING, .protocol = protocol};
    cpu_deal(&choice, op, ranks, most, channels);
    size_t next = 0;
    assert_in_range(choice.channels, 1, channels);
    for (int i = 0; i < choice.channels; i++) {
      const struct cpu_part part = cpu_choice_part(&choice, i);
      assert_int_equal(part.first, next);
      assert_true(part.count > 0);
      next += part.count;
    }
    assert_int_equal(next, op->count);
  }
}

static void test_shares_are_the_whole(void **state) {
  (void)state;
  static const ncclDataType_t types[] = {ncclInt8, ncclFloat16, ncclFloat32, ncclFloat64};
  srand(1);
  for (int i = 0; i < 20000; i++) {
    const size_t count = ((size_t)rand() * 32768 + (size_t)rand()) >> (rand() % 40);
    struct cpu_op op = {.function = (enum cpu_function)(rand() % CPU_MODELLED)};
    const int channels = rand() % 32 + 1, most = rand() % 40 + 1;
    op.count = count ? count : 1;
    op.type = types[rand() % 4];
    check_shares(&op, rand() % 9 + 1, most, channels);
  }
}

/* All cells cost the same: NCCL takes the first that is strictly smaller, so the lowest
   algorithm, then the lowest protocol. */
static void test_ties_go_to_the_lowest_numbers(void **state) {
  (void)state;
  struct cpu_constants c = flat;
  c.cells[CPU_RING][CPU_LL].bandwidth_gbps = c.cells[CPU_RING][CPU_LL128].bandwidth_gbps =
    c.cells[CPU_RING][CPU_SIMPLE].bandwidth_gbps = 1;
  struct ncclComm comm = make_comm(2, 2, 1, &c);
  struct cpu_call reduce = make_call(&comm, CPU_ALL_REDUCE, 1000);
  struct cpu_call gather = make_call(&comm, CPU_ALL_GATHER, 1000);
  memcpy(comm.model.bandwidth[CPU_ALL_REDUCE][CPU_TREE],
         comm.model.bandwidth[CPU_ALL_REDUCE][CPU_RING],
         sizeof comm.model.bandwidth[CPU_ALL_REDUCE][CPU_RING]);
  assert_int_equal(cpu_select(&reduce, 1), ncclSuccess);
  assert_int_equal(reduce.choice.algorithm, CPU_TREE);
  assert_int_equal(reduce.choice.protocol, CPU_LL);
  assert_int_equal(cpu_select(&gather, 1), ncclSuccess);
  assert_int_equal(gather.choice.algorithm, CPU_RING);
  assert_int_equal(gather.choice.protocol, CPU_LL);
}

static void test_the_cheapest_wins(void **state) {
  (void)state;
  struct cpu_constants c = flat;
  c.cells[CPU_RING][CPU_LL] = (struct cpu_cell_constants){0.1f, 0.1f, 1, 0.1f, 1};
  c.cells[CPU_RING][CPU_SIMPLE] = (struct cpu_cell_constants){5, 5, 100, 5, 100};
  struct ncclComm comm = make_comm(2, 2, 1, &c);
  comm.recent = cpu_select_recent();
  for (size_t round = 0; round < 2 * 20; round++) { /* the second time it remembers them */
    const size_t count = (size_t)1 << round % 20;
    if (count > 1 << 9 && count < 1 << 14) continue; /* the two lines cross there */
    struct cpu_call call = make_call(&comm, CPU_ALL_REDUCE, count);
    assert_int_equal(cpu_select(&call, 1), ncclSuccess);
    float best = 1e30f;
    for (int i = 0; i < CPU_ALGORITHMS * CPU_PROTOCOLS; i++) {
      const float time =
        cpu_model_time(&comm.model, CPU_ALL_REDUCE, i / 3, i % 3, 4 * count, 1);
      if (time >= 0 && time < best) best = time;
    }
    assert_true(cpu_model_time(&comm.model,
                               CPU_ALL_REDUCE,
                               call.choice.algorithm,
                               call.choice.protocol,
                               4 * count,
                               1) == best);
    assert_int_equal(call.choice.protocol, count < 1 << 10 ? CPU_LL : CPU_SIMPLE);
  }
  free(comm.recent);
}

/* The model's terms, computed by hand. */
static void test_model(void **state) {
  (void)state;
  struct ncclComm own = make_comm(4, 8, 2, &flat), shared = make_comm(8, 2, 1, &flat);
  const struct cpu_model *m = &own.model, *s = &shared.model;
  assert_int_equal(m->channels, 2);
  assert_true(m->core_share == 1 && s->core_share == 0.125f * 2);
  /* 6 steps of the ring, 2 * 2 of the tree; each µs. */
  assert_true(m->latency[CPU_ALL_REDUCE][CPU_RING][CPU_LL] == 7);
  assert_true(m->latency[CPU_ALL_REDUCE][CPU_TREE][CPU_LL] == 5);
  assert_true(m->latency[CPU_ALL_GATHER][CPU_RING][CPU_LL] == 4);
  assert_true(m->latency[CPU_ALL_GATHER][CPU_PAT][CPU_SIMPLE] == 3);
  assert_true(m->latency[CPU_BROADCAST][CPU_RING][CPU_LL] == 4);
  /* 2 GB/s, of which an AllReduce gives 4 of 6. */
  assert_true(m->bandwidth[CPU_ALL_REDUCE][CPU_RING][CPU_LL] == 2.0f * 4 / 6);
  assert_true(m->bandwidth[CPU_ALL_REDUCE][CPU_TREE][CPU_LL] == 2.0f * 4 / 6);
  assert_true(m->bandwidth[CPU_REDUCE_SCATTER][CPU_RING][CPU_LL] == 2.0f * 4 / 3);
  assert_true(m->bandwidth[CPU_REDUCE][CPU_RING][CPU_LL] == 2);
  /* What NCCL has no cell for. */
  assert_true(m->bandwidth[CPU_BROADCAST][CPU_TREE][CPU_LL] == 0);
  assert_true(m->bandwidth[CPU_ALL_REDUCE][CPU_PAT][CPU_SIMPLE] == 0);
  assert_true(m->bandwidth[CPU_ALL_GATHER][CPU_PAT][CPU_LL] == 0);
  /* 14 steps, each of which a core takes 4 times; the tree's 7 edges over 2 cores. */
  assert_true(s->latency[CPU_ALL_REDUCE][CPU_RING][CPU_LL] == 1 + 14 * 4);
  assert_true(s->latency[CPU_ALL_REDUCE][CPU_TREE][CPU_LL] == 1 + 2 * 3.5f);
  /* A group of 12: the ring pays for each, the tree for every ten. */
  assert_true(cpu_model_time(m, CPU_ALL_REDUCE, CPU_RING, CPU_LL, 0, 12) == 7 * 12);
  assert_true(cpu_model_time(m, CPU_ALL_REDUCE, CPU_TREE, CPU_LL, 0, 12) == 5 * 2);
  assert_true(cpu_model_time(m, CPU_ALL_REDUCE, CPU_TREE, CPU_LL, 4000, 1) == 5 + 3);
}

static void test_groups_are_chosen_for_as_one(void **state) {
  (void)state;
  struct cpu_constants c = flat;
  c.cells[CPU_RING][CPU_LL] = (struct cpu_cell_constants){0.1f, 0.1f, 1, 0.1f, 1};
  c.cells[CPU_RING][CPU_SIMPLE] = (struct cpu_cell_constants){5, 5, 100, 5, 100};
  struct ncclComm comm = make_comm(2, 2, 1, &c);
  /* The small ones are one bundle, whatever stands between them; the large one another. */
  enum { MANY = 64 };
  struct cpu_call calls[MANY + 2];
  for (int i = 0; i < MANY; i++) calls[i] = make_call(&comm, CPU_ALL_GATHER, 512);
  calls[MANY] = make_call(&comm, CPU_SEND_TO, 512);
  calls[MANY + 1] = make_call(&comm, CPU_ALL_GATHER, 1 << 20);
  assert_int_equal(cpu_select(calls, COUNT(calls)), ncclSuccess);
  for (int i = 1; i < MANY; i++) {
    assert_int_equal(calls[i].choice.protocol, calls[0].choice.protocol);
    assert_int_equal(calls[i].choice.low, 512);
  }
  assert_int_equal(calls[MANY].choice.channels, 0);
  assert_int_equal(calls[MANY + 1].choice.protocol, CPU_SIMPLE);
}

static void test_nothing_to_choose(void **state) {
  (void)state;
  struct ncclComm alone = make_comm(1, 2, 1, &flat), two = make_comm(2, 2, 1, &flat);
  struct cpu_call calls[] = {make_call(&alone, CPU_ALL_REDUCE, 10),
                             make_call(&two, CPU_ALL_REDUCE, 0)};
  assert_int_equal(cpu_select(calls, 2), ncclSuccess);
  assert_int_equal(calls[0].choice.channels, 0);
  assert_int_equal(calls[1].choice.channels, 0);
  assert_int_equal(cpu_select(NULL, 0), ncclSuccess);
  two.model.enabled.algorithms[CPU_ALL_REDUCE][CPU_TREE] = 0;
  memset(two.model.bandwidth, 0, sizeof two.model.bandwidth);
  calls[1] = make_call(&two, CPU_ALL_REDUCE, 10);
  assert_int_equal(cpu_select(calls, 2), ncclInternalError);
}

int main(void) {
  unsetenv("NCCL_ALGO");
  unsetenv("NCCL_PROTO");
  unsetenv("NCCL_THREAD_THRESHOLDS");
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_channels_as_nccl_logged_them),
    cmocka_unit_test(test_shares_are_the_whole),
    cmocka_unit_test(test_ties_go_to_the_lowest_numbers),
    cmocka_unit_test(test_the_cheapest_wins),
    cmocka_unit_test(test_model),
    cmocka_unit_test(test_groups_are_chosen_for_as_one),
    cmocka_unit_test(test_nothing_to_choose),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
