#include "host/cpu/model.h"
#include "host/cpu/algorithm.h"
#include "host/cpu/env.h"
#include "host/cpu/log.h"

#include <stdio.h>

#define WARP 32
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static float at_most(float value, double limit) {
  return (double)value < limit ? value : (float)limit;
}

static int clamp(int value, int least, int most) {
  return value < least ? least : value > most ? most : value;
}

/* A channel needs a core in every rank to be worth its thread. */
static int count_channels(int ranks, int cores, struct cpu_bounds bounds) {
  int channels = clamp(cores / ranks, 1, CPU_CHANNELS);
  if (bounds.most > 0 && channels > bounds.most) channels = bounds.most;
  if (channels < bounds.least) channels = bounds.least;
  return clamp(channels, 1, CPU_CHANNELS);
}

/* As NCCL reads NCCL_NTHREADS: multiples of a warp, within limits. */
static int count_threads(const char *name, int least, int most, int fallback) {
  const int64_t asked = cpu_env_number(name, -2);
  const unsigned long topic = CPU_LOG_GRAPH | CPU_LOG_ENV;
  const int threads = (int)asked;
  if (asked <= 0) return fallback;
  if (threads % WARP) {
    cpu_log(topic, "Invalid %s %d (must be a multiple of %d)", name, threads, WARP);
    return most;
  }
  if (threads > most) cpu_log(topic, "Invalid %s %d (maximum %d).", name, threads, most);
  if (threads < least) cpu_log(topic, "Invalid %s %d (minimum %d).", name, threads, least);
  return clamp(threads, least, most);
}

static void set_threads(struct cpu_model *m) {
  const int threads = count_threads("NCCL_NTHREADS", 64, 512, 512);
  const int ll128 = count_threads("NCCL_LL128_NTHREADS", 160, 640, 640);
  for (int a = CPU_TREE; a <= CPU_RING; a++) {
    m->max_threads[a][CPU_LL] = m->max_threads[a][CPU_SIMPLE] = threads;
    m->max_threads[a][CPU_LL128] = ll128;
  }
  for (int a = CPU_RING + 1; a < CPU_PAT; a++) m->max_threads[a][CPU_SIMPLE] = 640;
}

/* Six numbers: the tree's LL, LL128 and Simple, then the ring's; a negative one stands for
   the default. */
static void read_thresholds(struct cpu_model *m) {
  const char *text = cpu_env_text("NCCL_THREAD_THRESHOLDS");
  long t[6] = {-2, -2, -2, -2, -2, -2};
  if (!text) return;
  sscanf(text, "%ld %ld %ld %ld %ld %ld", t, t + 1, t + 2, t + 3, t + 4, t + 5);
  for (int i = 0; i < (int)COUNT(t); i++) {
    if (t[i] >= 0) m->thresholds[i / CPU_PROTOCOLS][i % CPU_PROTOCOLS] = t[i];
  }
}

/* NCCL's are 8 for the LL protocols: a block of threads is there anyhow. Here a channel is
   a thread to wake, whatever the protocol. */
static void set_thresholds(struct cpu_model *m) {
  for (int a = 0; a < CPU_ALGORITHMS; a++) {
    for (int p = 0; p < CPU_PROTOCOLS; p++) m->thresholds[a][p] = 64;
  }
  m->thresholds[2][CPU_SIMPLE] = m->thresholds[3][CPU_SIMPLE] = 512; /* CollNet's */
  read_thresholds(m);
}

void cpu_model_place(struct cpu_model *m, int ranks, int cores, struct cpu_bounds bounds) {
  *m = (struct cpu_model){.ranks = ranks, .cores = cores, .enabled = m->enabled};
  m->channels = count_channels(ranks, cores, bounds);
  const float share = (float)cores / (float)(ranks * m->channels);
  m->core_share = share < 1 ? share : 1;
  m->has_pat = cpu_env_number("NCCL_PAT_ENABLE", 2) != 0;
  set_threads(m);
  if (ranks > 1) set_thresholds(m);
}

static bool is_shared(const struct cpu_model *m) {
  return m->ranks > m->cores;
}

/* What a channel moves on a whole core. */
static float core_rate(const struct cpu_model *m, const struct cpu_constants *constants,
                       int a, int p) {
  const struct cpu_cell_constants *c = &constants->cells[a][p];
  return is_shared(m) ? c->shared_bandwidth_gbps : c->bandwidth_gbps;
}

static float larger(float a, float b) {
  return a > b ? a : b;
}

static void fill(double limits[4][3], float value) {
  for (int i = 0; i < 12; i++) limits[i / 3][i % 3] = (double)value;
}

/* The limits are such that they limit nothing until a plugin lowers them. */
void cpu_model_export(const struct cpu_model *m, const struct cpu_constants *constants,
                      struct cpu_tuner_constants *out) {
  float tree[CPU_PROTOCOLS], ring[CPU_PROTOCOLS];
  for (int p = 0; p < CPU_PROTOCOLS; p++) {
    tree[p] = core_rate(m, constants, CPU_TREE, p);
    ring[p] = core_rate(m, constants, CPU_RING, p);
  }
  *out = (struct cpu_tuner_constants){0};
  for (int a = 0; a < CPU_ALGORITHMS; a++) {
    for (int p = 0; p < CPU_PROTOCOLS; p++) {
      const struct cpu_cell_constants *c = &constants->cells[a][p];
      out->base[a][p] = (double)c->base_us;
      out->hardware[CPU_HARDWARE_PCI][a][p] =
        (double)(is_shared(m) ? c->shared_hop_us : c->hop_us);
    }
  }
  fill(out->ll_most, larger(tree[CPU_LL], ring[CPU_LL]) * (float)m->channels);
  fill(out->ring_ll128_most, ring[CPU_LL128]);
  fill(out->tree_ll128_most, tree[CPU_LL128]);
  fill(out->tree_most, larger(larger(tree[CPU_LL], tree[CPU_LL128]), tree[CPU_SIMPLE]));
}

/* What all channels of a rank move. */
static float move_rate(const struct cpu_model *m, const struct cpu_constants *constants,
                       const struct cpu_tuner_constants *edited, int a, int p) {
  const float channels = (float)m->channels;
  float rate = channels * core_rate(m, constants, a, p) * m->core_share;
  if (a == CPU_RING && p == CPU_LL128) {
    rate = at_most(rate, (double)channels * edited->ring_ll128_most[0][0]);
  }
  if (a == CPU_TREE) rate = at_most(rate, (double)channels * edited->tree_most[0][0]);
  if (a == CPU_TREE && p == CPU_LL128) {
    rate = at_most(rate, (double)channels * edited->tree_ll128_most[0][0]);
  }
  if (a != CPU_PAT && p == CPU_LL) rate = at_most(rate, edited->ll_most[0][0]);
  return rate;
}

static int log2_up(int n) {
  int log = 0;
  while (1 << log < n) log++;
  return log;
}

/* Steps that follow each other. Where ranks outnumber cores, a step in which all ranks take
   part takes as many turns as a core has ranks. */
static float count_steps(const struct cpu_model *m, enum cpu_function f, int a) {
  const float others = (float)(m->ranks - 1), depth = (float)log2_up(m->ranks);
  const float crowd = is_shared(m) ? (float)m->ranks / (float)m->cores : 1;
  const float visits = others / (float)m->cores; /* a core's, of a tree's edges */
  if (a == CPU_TREE) return 2 * (visits > depth ? visits : depth);
  if (a == CPU_PAT) return depth * crowd;
  if (f == CPU_BROADCAST || f == CPU_REDUCE) return others;
  return (f == CPU_ALL_REDUCE ? 2 : 1) * others * crowd;
}

/* From what a rank moves to what the operation moves: bytes of AllGather and ReduceScatter
   are those of all ranks. An AllReduce passes over n - 1 edges twice, in a ring or a tree;
   NCCL counts a tree's n. */
static float convert(const struct cpu_model *m, enum cpu_function f, float rate) {
  const float ranks = (float)m->ranks;
  if (f == CPU_BROADCAST || f == CPU_REDUCE) return rate;
  return rate * ranks / ((f == CPU_ALL_REDUCE ? 2 : 1) * (ranks - 1));
}

/* Has this backend such a cell? NCCL's PAT is for Simple alone. */
static bool is_here(const struct cpu_model *m, int f, int a, int p) {
  const struct cpu_algorithm *algorithm = cpu_algorithms[a];
  if (!algorithm || !algorithm->run[f] || !cpu_protocols[p]) return false;
  return a != CPU_PAT || (p == CPU_SIMPLE && m->has_pat);
}

static bool is_enabled(const struct cpu_model *m, int f, int a, int p) {
  return m->enabled.algorithms[f][a] && m->enabled.protocols[f][p];
}

void cpu_model_make(struct cpu_model *m, const struct cpu_constants *constants,
                    const struct cpu_tuner_constants *edited) {
  for (int a = CPU_TREE; a <= CPU_RING; a++) {
    m->graph_bw[a] = core_rate(m, constants, a, CPU_SIMPLE) * m->core_share;
  }
  for (int i = 0; i < CPU_MODELLED * CPU_ALGORITHMS * CPU_PROTOCOLS; i++) {
    const int f = i / (CPU_ALGORITHMS * CPU_PROTOCOLS);
    const int a = i / CPU_PROTOCOLS % CPU_ALGORITHMS, p = i % CPU_PROTOCOLS;
    if (m->ranks == 1 || !is_here(m, f, a, p)) continue;
    const float steps = count_steps(m, (enum cpu_function)f, a);
    m->latency[f][a][p] = (float)(edited->base[a][p] +
                                  (double)steps * edited->hardware[CPU_HARDWARE_PCI][a][p]);
    if (!is_enabled(m, f, a, p)) continue; /* the latency stands in NCCL's table */
    m->bandwidth[f][a][p] =
      convert(m, (enum cpu_function)f, move_rate(m, constants, edited, a, p));
  }
}

/* NCCL's formula: a ring pays its latency for each operation of a group, the others once
   for ten. */
float cpu_model_time(const struct cpu_model *m, enum cpu_function f, int a, int p,
                     size_t bytes, int ops) {
  const float bandwidth = m->bandwidth[f][a][p];
  if (bandwidth == 0) return -1;
  const float repeats = (float)(a == CPU_RING ? ops : (ops + 9) / 10);
  return m->latency[f][a][p] * repeats + (float)bytes / (1000 * bandwidth);
}
