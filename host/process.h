#ifndef HOST_PROCESS_H
#define HOST_PROCESS_H

/* Child processes: started without a shell, fed and read without dead-lock, timed, ended,
   reaped. Each child leads a process group of its own and gets SIGTERM if this process
   dies. */

#include "host/err.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum process_sink {
  PROCESS_CAPTURE,
  PROCESS_INHERIT,
  PROCESS_NULL,
  PROCESS_FILE,
  PROCESS_MERGE /* stderr goes where stdout goes */
};

struct process_spec {
  char *const *argv; /* argv[0] is looked up in PATH unless it has a '/' */
  char *const *envp;
  const char *cwd;   /* NULL: this process's */
  const char *input; /* for stdin; must live as long as the process. NULL: /dev/null */
  size_t input_bytes;
  enum process_sink sink[2]; /* stdout, stderr */
  const char *file[2];       /* where the sink is PROCESS_FILE */
  const cpu_set_t *cpus;     /* NULL: this process's */
  double timeout_s;          /* 0: none. Then SIGTERM, and SIGKILL after grace_s */
  double grace_s;
};

struct process_text {
  char *data;
  size_t used, room;
};

struct process {
  pid_t pid;   /* 0: there is none, or it is closed */
  pid_t owner; /* a forked rank has a copy of this struct, but not the child */
  int pidfd;   /* -1 where the kernel has none (before 5.3) */
  int in, out[2];
  const char *input;
  size_t input_left;
  struct process_text text[2]; /* what was captured so far */
  uint64_t start_ns, deadline_ns, grace_ns;
  bool timed_out;
  bool is_done; /* reaped, and all that it wrote is in `text` */
  int status;   /* from here on: as wait4 gave it */
  int64_t wall_us, user_us, sys_us, max_rss_bytes;
};

/* The file that is started under this name, in out[PATH_MAX] if it is not `name` itself;
   NULL with errno set: there is none. */
const char *process_find(char *out, const char *name);

/* Starts a child. -1 with *e filled if it cannot be executed; nothing is left then. */
int process_spawn(struct process *p, const struct process_spec *spec, struct err *e);

/* Moves bytes both ways, watches the deadline, reaps; waits for something to do until
   `until_ns` (UINT64_MAX: without limit), but 0.1 s at most: a signal whose handler ran
   just before the wait would otherwise be noticed at the child's end. */
int process_step(struct process *p, uint64_t until_ns, struct err *e);

/* Sends a signal to the child's process group, unless it is reaped. */
void process_kill(const struct process *p, int number);

/* Kills and reaps what still runs, frees and closes everything. Twice is once. */
void process_close(struct process *p);

/* A set of CPUs from a list; -1 (EINVAL) if this machine lacks one. */
int process_cpus(cpu_set_t *set, const int *cpus, size_t count, struct err *e);

/* A parent that ignores SIGCHLD (nohup, some containers) hands that down, and the kernel
   would reap our children before we learn how they ended. This undoes it. */
void process_keep_zombies(void);

/* CLOCK_MONOTONIC. */
uint64_t process_now_ns(void);

#endif
