#ifndef HOST_CPU_TEAM_H
#define HOST_CPU_TEAM_H

/* The threads that run a communicator's channels: the caller's, and helpers that are made
   when they are first needed and sleep in between. */

struct cpu_team;

/* How many threads a rank has of its own where `ranks` share `cores`: at least one;
   NCLUA_CPU_THREADS if it is set. */
int cpu_team_threads(int ranks, int cores);

/* Helpers included, at most `threads` work at a time. NULL if memory is short. */
struct cpu_team *cpu_team_new(int threads);
void cpu_team_free(struct cpu_team *team);

int cpu_team_size(const struct cpu_team *team);

/* Calls run(argument, i) for each i below `count`, begun in that order, and returns when
   all have returned. One caller at a time. Where others do the same with another number of
   threads, the first unfinished i is under way everywhere: so the calls may wait for those
   of other teams with the same i. */
void cpu_team_run(struct cpu_team *team, int count, void (*run)(void *argument, int i),
                  void *argument);

#endif
