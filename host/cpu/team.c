#include "host/cpu/team.h"
#include "host/cpu/gate.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

enum { THREADS_MAX = 64 };

struct cpu_team {
  int threads, helpers;
  pthread_t helper[THREADS_MAX];
  /* The work: under way from a raise of `begin` until all helpers have left. */
  void (*run)(void *argument, int i);
  void *argument;
  int count;
  int next; /* atomic: the first i that is not begun */
  int busy; /* atomic: helpers that have not left */
  struct cpu_gate begin, end;
};

static int limit(int value, int most) {
  return value < most ? value : most;
}

int cpu_team_threads(int ranks, int cores) {
  const char *wanted = getenv("NCLUA_CPU_THREADS");
  int threads = wanted ? atoi(wanted) : 0;
  if (threads <= 0) threads = cores / ranks;
  return threads > 1 ? limit(threads, THREADS_MAX) : 1;
}

struct cpu_team *cpu_team_new(int threads) {
  struct cpu_team *team = calloc(1, sizeof *team);
  if (!team) return NULL;
  team->threads = threads;
  team->begin = team->end = CPU_GATE_INIT;
  return team;
}

int cpu_team_size(const struct cpu_team *team) {
  return team->threads;
}

static void work(struct cpu_team *team) {
  int i;
  while ((i = __atomic_fetch_add(&team->next, 1, __ATOMIC_RELAXED)) < team->count) {
    team->run(team->argument, i);
  }
}

static void await(struct cpu_gate *gate, uint64_t value) {
  int64_t until = cpu_now_ns() + cpu_spin_ns();
  while (cpu_gate_value(gate) < value) {
    cpu_relax();
    if (cpu_now_ns() < until) continue;
    uint32_t epoch = cpu_gate_epoch(gate);
    if (cpu_gate_value(gate) < value) cpu_gate_sleep(gate, value, epoch);
  }
}

static void *help(void *argument) {
  struct cpu_team *team = argument;
  for (uint64_t turn = cpu_gate_value(&team->end) + 1;; turn++) {
    await(&team->begin, turn);
    if (!team->run) return NULL;
    work(team);
    if (__atomic_sub_fetch(&team->busy, 1, __ATOMIC_SEQ_CST) == 0) {
      cpu_gate_raise(&team->end, turn);
    }
  }
}

/* Signals are the host's business. Fewer helpers are only slower. */
static void start_helpers(struct cpu_team *team, int wanted) {
  sigset_t every, old;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &old);
  while (team->helpers < wanted) {
    if (pthread_create(&team->helper[team->helpers], NULL, help, team)) break;
    team->helpers++;
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void begin(struct cpu_team *team) {
  __atomic_store_n(&team->busy, team->helpers, __ATOMIC_RELAXED);
  cpu_gate_raise(&team->begin, cpu_gate_value(&team->begin) + 1);
}

void cpu_team_run(struct cpu_team *team, int count, void (*run)(void *argument, int i),
                  void *argument) {
  int wanted = limit(count, team->threads) - 1;
  if (wanted > team->helpers) start_helpers(team, wanted);
  team->run = run;
  team->argument = argument;
  team->count = count;
  __atomic_store_n(&team->next, 0, __ATOMIC_RELAXED);
  if (wanted <= 0 || team->helpers == 0) {
    work(team);
    return;
  }
  begin(team);
  work(team);
  await(&team->end, cpu_gate_value(&team->begin));
}

void cpu_team_free(struct cpu_team *team) {
  if (!team) return;
  team->run = NULL;
  if (team->helpers) begin(team);
  for (int i = 0; i < team->helpers; i++) pthread_join(team->helper[i], NULL);
  free(team);
}
