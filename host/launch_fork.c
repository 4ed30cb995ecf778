#include "host/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PIPE_BYTES = 256 * 1024 };

/* The ends of one rank that only it keeps. */
struct ends {
  int index;
  int fd[LAUNCH_STREAMS]; /* -1: leave what is there */
  pid_t parent;
};

static void shut(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

int launch_prepare(struct launch *l, int count, struct world *world, struct err *e) {
  *l = (struct launch){.owner = getpid(), .world = world};
  l->ranks = calloc((size_t)count, sizeof *l->ranks);
  l->polled = calloc((size_t)count * (LAUNCH_STREAMS + 1), sizeof *l->polled);
  if (!l->ranks || !l->polled) return err_set(e, "ENOMEM", "no memory for %d ranks", count);
  for (int i = 0; i < count; i++) {
    l->ranks[i].pidfd = l->ranks[i].link = -1;
    for (int s = 0; s < LAUNCH_STREAMS; s++) l->ranks[i].stream[s].fd = -1;
  }
  l->count = count;
  process_keep_zombies();
  fflush(NULL); /* or each rank would write again what is buffered now */
  return 0;
}

static int open_pipe(int *ours, int *theirs, struct err *e) {
  int fd[2];
  if (pipe2(fd, O_CLOEXEC)) return err_errno(e, "pipe");
  *ours = fd[0];
  *theirs = fd[1];
  fcntl(*ours, F_SETFL, O_NONBLOCK);
  fcntl(*ours, F_SETPIPE_SZ, PIPE_BYTES); /* a wish: the user's quota may refuse it */
  return 0;
}

static int open_log(struct ends *ends, const char *folder, int stream, struct err *e) {
  const char *name = stream == LAUNCH_STDOUT ? "stdout" : "stderr";
  char path[PATH_MAX];
  int used = snprintf(path, sizeof path, "%s/rank-%d.%s", folder, ends->index, name);
  errno = ENAMETOOLONG;
  ends->fd[stream] = used < (int)sizeof path
                       ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)
                       : -1;
  return ends->fd[stream] < 0 ? err_errno(e, "cannot open '%s'", path) : 0;
}

static int open_output(struct launch_rank *r, struct ends *ends,
                       const struct launch_spec *spec, int stream, struct err *e) {
  switch (spec->output) {
    case LAUNCH_INHERIT: return 0;
    case LAUNCH_CAPTURE: return open_pipe(&r->stream[stream].fd, &ends->fd[stream], e);
    case LAUNCH_FILES: return open_log(ends, spec->log_dir, stream, e);
    case LAUNCH_NULL: break;
  }
  ends->fd[stream] = open("/dev/null", O_WRONLY | O_CLOEXEC);
  return ends->fd[stream] < 0 ? err_errno(e, "cannot open '/dev/null'") : 0;
}

static int open_ends(struct launch_rank *r, struct ends *ends,
                     const struct launch_spec *spec, struct err *e) {
  if (open_pipe(&r->stream[LAUNCH_FRAMES].fd, &ends->fd[LAUNCH_FRAMES], e)) return -1;
  if (open_output(r, ends, spec, LAUNCH_STDOUT, e)) return -1;
  return open_output(r, ends, spec, LAUNCH_STDERR, e);
}

static void close_ends(struct ends *ends) {
  for (int s = 0; s < LAUNCH_STREAMS; s++) shut(&ends->fd[s]);
}

/* In the rank: what belongs to the parent goes, except the shared memory. */
static struct world *forget_others(struct launch *l) {
  struct world *world = l->world;
  for (int i = 0; i < l->count; i++) {
    for (int s = 0; s < LAUNCH_STREAMS; s++) shut(&l->ranks[i].stream[s].fd);
    shut(&l->ranks[i].pidfd);
    shut(&l->ranks[i].link);
  }
  free(l->ranks);
  free(l->polled);
  *l = (struct launch){0};
  return world;
}

static void redirect(int *fd, int target) {
  if (*fd >= 0) dup2(*fd, target);
  shut(fd);
}

static void take_seat(struct launch *l, const struct launch_spec *spec, struct ends *ends,
                      struct launch_seat *seat) {
  struct err e;
  const cpu_set_t *cpus = spec->cpus ? &spec->cpus[ends->index] : NULL;
  *seat = (struct launch_seat){ends->index, ends->fd[LAUNCH_FRAMES], forget_others(l)};
  redirect(&ends->fd[LAUNCH_STDOUT], STDOUT_FILENO);
  redirect(&ends->fd[LAUNCH_STDERR], STDERR_FILENO);
  setvbuf(stdout, NULL, _IOLBF, 0); /* ranks that share a terminal mix by lines */
  if (cpus && CPU_COUNT(cpus) && sched_setaffinity(0, sizeof *cpus, cpus)) {
    err_errno(&e, "cannot be pinned to its CPUs");
  } else if (!world_join(seat->world, seat->index, ends->parent, &e)) {
    return;
  }
  fprintf(stderr, "nclua: rank %d: %s\n", seat->index, e.text);
  _exit(EXIT_FAILURE);
}

int launch_fork_rank(struct launch *l, const struct launch_spec *spec, int i,
                     struct launch_seat *seat, struct err *e) {
  struct launch_rank *r = &l->ranks[i];
  struct ends ends = {.index = i, .fd = {-1, -1, -1}, .parent = getpid()};
  if (open_ends(r, &ends, spec, e)) {
    close_ends(&ends);
    return -1;
  }
  pid_t pid = fork();
  if (pid == 0) {
    take_seat(l, spec, &ends, seat);
    return 1;
  }
  if (pid < 0) err_errno(e, "cannot fork rank %d", i);
  close_ends(&ends);
  if (pid < 0) return -1;
  r->pid = pid;
#ifdef SYS_pidfd_open
  r->pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
#endif
  return 0;
}

int launch_fork(struct launch *l, const struct launch_spec *spec, struct launch_seat *seat,
                struct err *e) {
  *l = (struct launch){.owner = getpid()};
  *seat = (struct launch_seat){.index = -1, .fd = -1};
  struct world *world = world_create(spec->count, e);
  if (!world) return -1;
  if (launch_prepare(l, spec->count, world, e)) goto fail;
  for (int i = 0; i < spec->count; i++) {
    int rc = launch_fork_rank(l, spec, i, seat, e);
    if (rc < 0) goto fail;
    if (rc > 0) return 0;
  }
  launch_catch(l);
  return 0;
fail:
  launch_close(l);
  return -1;
}
