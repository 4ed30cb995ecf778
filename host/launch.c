#include "host/launch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNK = 256 * 1024, NO_PIDFD_MS = 5, BURY_MS = 5000 };

/* Set by the handler. While a world runs SIGTERM must not end this process on the spot: the
   script is to be unwound. */
static volatile sig_atomic_t is_terminated;

static void on_terminate(int number) {
  (void)number;
  is_terminated = 1;
}

void launch_catch(struct launch *l) {
  struct sigaction was;
  const struct sigaction ours = {.sa_handler = on_terminate};
  if (sigaction(SIGTERM, NULL, &was) || was.sa_handler != SIG_DFL) return;
  l->is_catching = sigaction(SIGTERM, &ours, NULL) == 0;
  is_terminated = 0;
}

int launch_is_terminated(const struct launch *l, struct err *e) {
  if (!l->is_catching || !is_terminated) return 0;
  return err_set(e, "terminated", "ended by SIGTERM");
}

static void shut(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

/* Makes room behind what is not taken yet. */
static int reserve(struct launch_stream *s, size_t more, struct err *e) {
  if (s->taken) {
    memmove(s->data, s->data + s->taken, s->used - s->taken);
    s->used -= s->taken;
    s->taken = 0;
  }
  if (s->room - s->used >= more) return 0;
  char *data = realloc(s->data, s->used + more);
  if (!data) return err_set(e, "ENOMEM", "no memory for a rank's output");
  s->data = data;
  s->room = s->used + more;
  return 0;
}

static int read_some(struct launch_stream *s, size_t most, struct err *e) {
  if (reserve(s, most, e)) return -1;
  ssize_t got = read(s->fd, s->data + s->used, most);
  if (got > 0) s->used += (size_t)got;
  if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) shut(&s->fd);
  return 0;
}

/* What a dead rank has sent is in its pipes; a program that it started may hold them open
   for ever, so take what is there and no more. */
static int drain(struct launch_rank *r, struct err *e) {
  for (int i = 0; i < LAUNCH_STREAMS; i++) {
    struct launch_stream *s = &r->stream[i];
    int left = 0;
    if (s->fd < 0 || ioctl(s->fd, FIONREAD, &left)) continue;
    if (left > 0 && read_some(s, (size_t)left, e)) return -1;
    shut(&s->fd);
  }
  return 0;
}

static int64_t timeval_us(struct timeval t) {
  return (int64_t)t.tv_sec * 1000000 + t.tv_usec;
}

int launch_reap(struct launch_rank *r, struct err *e) {
  struct rusage used = {0};
  pid_t pid = wait4(r->pid, &r->end.status, WNOHANG, &used);
  if (pid < 0) return err_errno(e, "wait for a rank");
  if (pid == 0) return 0;
  r->end.user_us = timeval_us(used.ru_utime);
  r->end.sys_us = timeval_us(used.ru_stime);
  r->end.max_rss_bytes = (int64_t)used.ru_maxrss * 1024;
  r->is_reaped = true;
  return 1;
}

static int hear(struct launch_rank *r) {
  ssize_t got = recv(r->link, &r->end, sizeof r->end, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (got != (ssize_t)sizeof r->end) r->end = (struct launch_end){.is_lost = true};
  r->is_reaped = true;
  return 1;
}

static int reap(struct launch_rank *r, struct err *e) {
  int rc = r->link >= 0 ? hear(r) : launch_reap(r, e);
  return rc == 1 ? drain(r, e) : rc;
}

/* Is there a whole frame? Then the event is filled and the frame taken. */
static bool take_frame(struct launch_stream *s, struct launch_event *event) {
  uint32_t length;
  size_t have = s->used - s->taken;
  if (have < sizeof length) return false;
  memcpy(&length, s->data + s->taken, sizeof length);
  if (have - sizeof length < length) return false;
  event->kind = LAUNCH_FRAME;
  event->data = s->data + s->taken + sizeof length;
  event->bytes = length;
  s->taken += sizeof length + length;
  return true;
}

static bool take_output(struct launch_stream *s, int stream, struct launch_event *event) {
  if (s->used == s->taken) return false;
  event->kind = LAUNCH_OUTPUT;
  event->stream = stream;
  event->data = s->data + s->taken;
  event->bytes = s->used - s->taken;
  s->taken = s->used;
  return true;
}

static bool take_from(struct launch_rank *r, struct launch_event *event) {
  if (take_frame(&r->stream[LAUNCH_FRAMES], event)) return true;
  for (int i = LAUNCH_STDOUT; i <= LAUNCH_STDERR; i++) {
    if (take_output(&r->stream[i], i, event)) return true;
  }
  if (!r->is_reaped || r->is_reported) return false;
  event->kind = LAUNCH_EXIT;
  r->is_reported = true;
  return true;
}

/* Stays with a rank while it has something, then goes to the next one. */
static bool take(struct launch *l, struct launch_event *event) {
  for (int i = 0; i < l->count; i++) {
    event->rank = (l->next + i) % l->count;
    if (take_from(&l->ranks[event->rank], event)) {
      l->next = event->rank;
      return true;
    }
  }
  return false;
}

static bool is_all_reported(const struct launch *l) {
  for (int i = 0; i < l->count; i++) {
    if (!l->ranks[i].is_reported) return false;
  }
  return true;
}

/* Entries of -1 are ignored by poll. */
static int wait_for_any(struct launch *l, int timeout_ms) {
  struct pollfd *p = l->polled;
  for (int i = 0; i < l->count; i++) {
    const struct launch_rank *r = &l->ranks[i];
    for (int s = 0; s < LAUNCH_STREAMS; s++) {
      *p++ = (struct pollfd){.fd = r->stream[s].fd, .events = POLLIN};
    }
    int end = r->link >= 0 ? r->link : r->pidfd;
    *p++ = (struct pollfd){.fd = r->is_reaped ? -1 : end, .events = POLLIN};
    bool is_blind = end < 0 && !r->is_reaped;
    if (is_blind && timeout_ms > NO_PIDFD_MS) timeout_ms = NO_PIDFD_MS;
  }
  return poll(l->polled, (nfds_t)(p - l->polled), timeout_ms);
}

static int collect(struct launch *l, struct err *e) {
  const struct pollfd *p = l->polled;
  for (int i = 0; i < l->count; i++) {
    struct launch_rank *r = &l->ranks[i];
    for (int s = 0; s < LAUNCH_STREAMS; s++, p++) {
      if (p->revents && read_some(&r->stream[s], CHUNK, e)) return -1;
    }
    bool maybe_dead = !r->is_reaped && (p->revents || (r->pidfd < 0 && r->link < 0));
    if (maybe_dead && reap(r, e)) return -1;
    p++;
  }
  return 0;
}

int launch_step(struct launch *l, int timeout_ms, struct launch_event *event,
                struct err *e) {
  *event = (struct launch_event){.kind = LAUNCH_NOTHING};
  if (launch_is_terminated(l, e)) return -1;
  if (take(l, event)) return 0;
  if (is_all_reported(l)) {
    event->kind = LAUNCH_DONE;
    return 0;
  }
  int ready = wait_for_any(l, timeout_ms);
  if (ready < 0 && errno != EINTR) return err_errno(e, "poll");
  if (ready < 0) return 0;
  if (collect(l, e)) return -1;
  take(l, event);
  return 0;
}

/* Looks without taking, so that the exit is reported in its turn. */
static bool is_casualty(const struct launch_rank *r) {
  struct launch_end end;
  siginfo_t info = {0};
  if (r->is_reaped) return r->end.is_lost || WIFSIGNALED(r->end.status);
  if (r->link >= 0) {
    ssize_t got = recv(r->link, &end, sizeof end, MSG_DONTWAIT | MSG_PEEK);
    return got == 0 || (got == (ssize_t)sizeof end && WIFSIGNALED(end.status));
  }
  if (waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT)) return false;
  return info.si_pid && info.si_code != CLD_EXITED;
}

int launch_casualty(const struct launch *l) {
  for (int i = 0; i < l->count; i++) {
    if (is_casualty(&l->ranks[i])) return i;
  }
  return -1;
}

void launch_kill(const struct launch *l) {
  for (int i = 0; i < l->count; i++) {
    if (l->ranks[i].pid && !l->ranks[i].is_reaped) kill(l->ranks[i].pid, SIGKILL);
  }
}

/* Bounded, as a finaliser may be the caller: a rank stuck in a driver is left to init. */
static void bury(struct launch_rank *r) {
  for (int ms = 0; ms < BURY_MS && waitpid(r->pid, NULL, WNOHANG) == 0; ms += 5) {
    poll(NULL, 0, 5);
  }
}

static void release(struct launch_rank *r, bool is_owner, bool is_good) {
  if (is_owner && r->pid && !r->is_reaped && r->link < 0) bury(r);
  if (is_owner && r->link >= 0) send(r->link, &is_good, sizeof is_good, MSG_NOSIGNAL);
  shut(&r->link);
  shut(&r->pidfd);
  for (int s = 0; s < LAUNCH_STREAMS; s++) {
    shut(&r->stream[s].fd);
    free(r->stream[s].data);
  }
}

void launch_close(struct launch *l) {
  bool is_owner = l->owner == getpid();
  if (is_owner) launch_kill(l);
  if (is_owner && l->is_catching) signal(SIGTERM, SIG_DFL);
  for (int i = 0; i < l->count; i++) release(&l->ranks[i], is_owner, l->is_good);
  free(l->ranks);
  free(l->polled);
  world_destroy(l->world);
  *l = (struct launch){0};
}
