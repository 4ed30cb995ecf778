#include "host/cpu/traced.h"

#include "host/cpu/gate.h"
#include "host/cpu/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct cpu_traced {
  struct cpu_task *task;
  struct traced what; /* the task fills in the rest */
  char name[96], call[32];
};

static __thread struct cpu_traced *running; /* by this thread */
static __thread uint32_t launch;            /* the graph launch under way, 0: none */
static __thread int64_t launch_start_ns;
static uint32_t correlations; /* atomic: the last one given */

typedef void traced_reader(const struct traced *what);

static traced_reader *reader(void) {
  return __atomic_load_n(&cpu_device.traced, __ATOMIC_ACQUIRE);
}

bool cpu_traced_is_on(void) {
  return reader() != NULL;
}

static uint32_t next_correlation(void) {
  return __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED);
}

static void describe(enum traced_kind kind, const char *call) {
  running->what.kind = kind;
  snprintf(running->call, sizeof running->call, "%s", call);
  if (!running->what.is_in_graph) running->what.call = running->call;
}

void cpu_traced_kernel(const char *call, const char *name, unsigned channels,
                       unsigned threads) {
  if (!running) return;
  describe(TRACED_KERNEL, call);
  snprintf(running->name, sizeof running->name, "%s", name);
  running->what.name = running->name;
  running->what.grid_x = channels;
  running->what.block_x = threads;
}

void cpu_traced_copy(const char *call, int kind, size_t bytes) {
  if (!running) return;
  describe(TRACED_COPY, call);
  running->what.copy_kind = kind;
  running->what.bytes = bytes;
}

void cpu_traced_set(const char *call, uint64_t value, size_t bytes) {
  if (!running) return;
  describe(TRACED_SET, call);
  running->what.value = value;
  running->what.bytes = bytes;
}

struct cpu_traced *cpu_traced_new(struct cpu_task *task, CUdevice device, uint32_t stream) {
  struct cpu_traced *t = malloc(sizeof *t);
  if (!t) return NULL;
  *t = (struct cpu_traced){.task = task};
  t->what = (struct traced){
    .device = device,
    .stream = stream,
    .correlation = launch ? launch : next_correlation(),
    .is_in_graph = launch != 0,
    .thread = (uint32_t)gettid(),
    .call_start_ns = cpu_now_ns(),
  };
  return t;
}

void cpu_traced_enqueued(struct cpu_traced *t) {
  t->what.call_end_ns = cpu_now_ns();
}

/* A task that did not say what it is (one that holds its stream for another) is not told.
 */
void cpu_traced_run(void *traced, uint64_t ticket) {
  struct cpu_traced *t = traced, *outer = running;
  running = t;
  t->what.start_ns = cpu_now_ns();
  t->task->run(t->task, ticket);
  t->what.end_ns = cpu_now_ns();
  running = outer;
  traced_reader *tell = reader();
  if (tell && t->what.kind != TRACED_NOTHING) tell(&t->what);
  cpu_task_release(t->task);
  free(t);
}

void cpu_traced_launch_begin(void) {
  if (!reader()) return;
  launch = next_correlation();
  launch_start_ns = cpu_now_ns();
}

void cpu_traced_launch_end(CUdevice device) {
  traced_reader *tell = reader();
  const struct traced what = {
    .kind = TRACED_CALL,
    .call = "cuGraphLaunch",
    .call_start_ns = launch_start_ns,
    .call_end_ns = cpu_now_ns(),
    .thread = (uint32_t)gettid(),
    .correlation = launch,
    .device = device,
  };
  if (tell && launch) tell(&what);
  launch = 0;
}

void cpu_traced_copied(const char *call, int kind, size_t bytes, CUdevice device,
                       int64_t start_ns) {
  traced_reader *tell = reader();
  if (!tell) return;
  const int64_t now_ns = cpu_now_ns();
  tell(&(struct traced){
    .kind = TRACED_COPY,
    .device = device,
    .copy_kind = kind,
    .bytes = bytes,
    .correlation = next_correlation(),
    .start_ns = start_ns,
    .end_ns = now_ns,
    .call = call,
    .call_start_ns = start_ns,
    .call_end_ns = now_ns,
    .thread = (uint32_t)gettid(),
  });
}
