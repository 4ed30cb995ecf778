#include "host/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 64 * 1024, NO_PIDFD_MS = 5, SLICE_MS = 100, CLOSE_MS = 2000 };

uint64_t process_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void shut(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

/* write without SIGPIPE: the signal that a lost reader raises is for this thread, so it
   can be held back and taken out again. */
static ssize_t write_quietly(int fd, const char *data, size_t bytes) {
  sigset_t pipe_set, before, pending;
  sigemptyset(&pipe_set);
  sigaddset(&pipe_set, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe_set, &before);
  ssize_t put = write(fd, data, bytes);
  int number = errno;
  if (put < 0 && number == EPIPE && !sigismember(&pending, SIGPIPE)) {
    const struct timespec now = {0};
    while (sigtimedwait(&pipe_set, NULL, &now) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = number;
  return put;
}

static void feed(struct process *p) {
  while (p->input_left) {
    ssize_t put = write_quietly(p->in, p->input, p->input_left);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return;
    if (put < 0) break; /* the child reads no more: not a failure */
    p->input += put;
    p->input_left -= (size_t)put;
  }
  shut(&p->in);
}

static int reserve(struct process_text *t, size_t more, struct err *e) {
  if (t->room - t->used >= more) return 0;
  size_t room = t->room * 2 > t->used + more ? t->room * 2 : t->used + more;
  char *data = realloc(t->data, room);
  if (!data) return err_set(e, "ENOMEM", "no memory for %zu bytes of output", room);
  t->data = data;
  t->room = room;
  return 0;
}

/* One chunk at a time, so that line callbacks keep up with a fast child. */
static int read_some(struct process *p, int i, size_t most, struct err *e) {
  struct process_text *t = &p->text[i];
  if (reserve(t, most, e)) return -1;
  ssize_t got = read(p->out[i], t->data + t->used, most);
  if (got > 0) t->used += (size_t)got;
  if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) shut(&p->out[i]);
  return 0;
}

/* What the child wrote is in the pipe when it ends. Its own children may hold the pipe
   open, and write, for ever: so take what is there now, and no more. */
static int drain(struct process *p, struct err *e) {
  for (int i = 0; i < 2; i++) {
    int left = 0;
    if (p->out[i] < 0 || ioctl(p->out[i], FIONREAD, &left)) continue;
    if (left > 0 && read_some(p, i, (size_t)left, e)) return -1;
    shut(&p->out[i]);
  }
  return 0;
}

static int64_t timeval_us(struct timeval t) {
  return (int64_t)t.tv_sec * 1000000 + t.tv_usec;
}

static bool has_ended(const struct process *p) {
  siginfo_t info = {0};
  int rc = waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT);
  return rc < 0 || info.si_pid == p->pid;
}

/* The child is a zombie, which keeps its group's number from being used again: the last
   moment to kill what it leaves behind, if it was told to end. */
static int reap(struct process *p, struct err *e) {
  if (p->timed_out) process_kill(p, SIGKILL);
  struct rusage used = {0};
  if (wait4(p->pid, &p->status, 0, &used) < 0) return err_errno(e, "wait");
  p->wall_us = (int64_t)(process_now_ns() - p->start_ns) / 1000;
  p->user_us = timeval_us(used.ru_utime);
  p->sys_us = timeval_us(used.ru_stime);
  p->max_rss_bytes = (int64_t)used.ru_maxrss * 1024;
  p->is_done = true;
  shut(&p->in);
  return drain(p, e);
}

static void check_deadline(struct process *p, uint64_t now) {
  if (now < p->deadline_ns) return;
  process_kill(p, p->timed_out ? SIGKILL : SIGTERM);
  process_kill(p, SIGCONT); /* a stopped process would not see SIGTERM */
  p->deadline_ns = p->timed_out ? UINT64_MAX : now + p->grace_ns;
  p->timed_out = true;
}

static int poll_ms(const struct process *p, uint64_t until_ns) {
  uint64_t now = process_now_ns();
  uint64_t until = until_ns < p->deadline_ns ? until_ns : p->deadline_ns;
  if (until <= now) return 0;
  uint64_t ms = (until - now + 999999) / 1000000;
  uint64_t most = p->pidfd < 0 ? NO_PIDFD_MS : SLICE_MS;
  return (int)(ms < most ? ms : most);
}

int process_step(struct process *p, uint64_t until_ns, struct err *e) {
  if (p->is_done) return 0;
  struct pollfd fds[] = {/* poll ignores an entry of -1 */
                         {.fd = p->out[0], .events = POLLIN},
                         {.fd = p->out[1], .events = POLLIN},
                         {.fd = p->in, .events = POLLOUT},
                         {.fd = p->pidfd, .events = POLLIN}};
  if (poll(fds, 4, poll_ms(p, until_ns)) < 0) {
    return errno == EINTR ? 0 : err_errno(e, "poll");
  }
  check_deadline(p, process_now_ns());
  for (int i = 0; i < 2; i++) {
    if (fds[i].revents && read_some(p, i, CHUNK, e)) return -1;
  }
  if (fds[2].revents) feed(p);
  bool maybe_ended = p->pidfd < 0 || fds[3].revents;
  return maybe_ended && has_ended(p) ? reap(p, e) : 0;
}

void process_kill(const struct process *p, int number) {
  if (p->pid > 0 && !p->is_done) kill(-p->pid, number);
}

/* Bounded, as a finaliser may be the caller: a process stuck in the kernel is left to
   init. */
static void end(struct process *p) {
  uint64_t limit = process_now_ns() + CLOSE_MS * UINT64_C(1000000);
  process_kill(p, SIGKILL);
  while (!has_ended(p) && process_now_ns() < limit) {
    struct pollfd fd = {.fd = p->pidfd, .events = POLLIN};
    poll(&fd, 1, NO_PIDFD_MS);
  }
  process_kill(p, SIGKILL); /* what it forked meanwhile */
  waitpid(p->pid, NULL, WNOHANG);
}

void process_close(struct process *p) {
  if (p->pid > 0 && !p->is_done && p->owner == getpid()) end(p);
  p->pid = 0;
  shut(&p->in);
  shut(&p->pidfd);
  for (int i = 0; i < 2; i++) {
    shut(&p->out[i]);
    free(p->text[i].data);
    p->text[i] = (struct process_text){0};
  }
}
