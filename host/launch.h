#ifndef HOST_LAUNCH_H
#define HOST_LAUNCH_H

/* Forks the ranks of a world, reads what they send, notices how they end. A rank sends
   frames (32-bit length, then that many bytes) through a pipe. */

#include "host/err.h"
#include "host/process.h"
#include "host/world.h"

struct pollfd;

enum launch_output { LAUNCH_INHERIT, LAUNCH_CAPTURE, LAUNCH_NULL, LAUNCH_FILES };

struct launch_spec {
  int count;
  enum launch_output output;
  const char *log_dir;   /* for LAUNCH_FILES: rank-I.stdout and rank-I.stderr go there */
  const cpu_set_t *cpus; /* one set a rank, or NULL */
};

enum { LAUNCH_FRAMES, LAUNCH_STDOUT, LAUNCH_STDERR, LAUNCH_STREAMS };

/* What comes from one descriptor of a rank; the bytes before `taken` are used up. */
struct launch_stream {
  int fd;
  char *data;
  size_t used, room, taken;
};

/* How a rank ended, as wait4 gives it. */
struct launch_end {
  int status;
  bool is_lost; /* the process that could tell is gone */
  int64_t user_us, sys_us, max_rss_bytes;
};

struct launch_rank {
  pid_t pid; /* 0: not forked */
  int pidfd; /* -1 where the kernel has none */
  int link;  /* another process has forked it and will send a launch_end; else -1 */
  struct launch_stream stream[LAUNCH_STREAMS];
  bool is_reaped, is_reported;
  struct launch_end end;
};

struct launch {
  struct world *world;
  struct launch_rank *ranks;
  struct pollfd *polled; /* scratch: all streams, then all pidfds */
  pid_t owner;           /* a rank has a copy of this struct, but not the ranks */
  int count, next;       /* next: where the search for an event goes on */
  bool is_catching;      /* SIGTERM, which was at its default before */
  bool is_good;          /* what the processes of the other ranks are told at the end */
};

/* What a rank has: the parent's `index` is -1. */
struct launch_seat {
  int index;
  int fd; /* where to write frames */
  struct world *world;
};

/* Forks, and returns in the parent and in every rank; a rank's *l is empty. -1: no rank is
   left. */
int launch_fork(struct launch *l, const struct launch_spec *spec, struct launch_seat *seat,
                struct err *e);

/* The parts of it. `l` is for `count` ranks in `world` (not yet, if NULL); forks rank i: 0
   in the parent, 1 in the rank, -1. */
int launch_prepare(struct launch *l, int count, struct world *world, struct err *e);
int launch_fork_rank(struct launch *l, const struct launch_spec *spec, int i,
                     struct launch_seat *seat, struct err *e);

/* Reaps a rank that this process has forked: 1 if it has ended. */
int launch_reap(struct launch_rank *r, struct err *e);

enum launch_kind { LAUNCH_NOTHING, LAUNCH_FRAME, LAUNCH_OUTPUT, LAUNCH_EXIT, LAUNCH_DONE };

struct launch_event {
  enum launch_kind kind;
  int rank;
  int stream;       /* LAUNCH_OUTPUT: LAUNCH_STDOUT or LAUNCH_STDERR */
  const char *data; /* the frame's or the output's bytes, until the next step */
  size_t bytes;
};

/* The next event; waits at most `timeout_ms` for one. A rank's exit comes after all that it
   sent. A signal ends the wait early; SIGTERM is the failure "terminated". */
int launch_step(struct launch *l, int timeout_ms, struct launch_event *event,
                struct err *e);

/* Notes SIGTERM instead of dying of it, until launch_close; called by launch_fork. */
void launch_catch(struct launch *l);

/* -1 (code "terminated") if SIGTERM came since launch_catch. */
int launch_is_terminated(const struct launch *l, struct err *e);

/* A rank that a signal has ended, whether its exit was reported or not; -1: none. */
int launch_casualty(const struct launch *l);

/* SIGKILL to all ranks that are left. */
void launch_kill(const struct launch *l);

/* Kills and reaps what is left, frees everything. Twice is once. */
void launch_close(struct launch *l);

#endif
