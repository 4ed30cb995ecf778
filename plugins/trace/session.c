#include "plugins/trace/session.h"

#include "plugins/expand.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PID_SHIFT = 24, VM_SHIFT = 48 };

int64_t session_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct session session_new(void) {
  const int64_t pid = getpid();
  return (struct session){
    .start_ns = session_now_ns(),
    .global_pid = (int64_t)1 << VM_SHIFT | pid << PID_SHIFT,
  };
}

int64_t session_tid(const struct session *s, uint32_t tid) {
  return s->global_pid | (int64_t)(tid & 0xffffff);
}

/* A forked child's only thread has its parent's variable, but not its parent's number:
   `owner` tells. */
int64_t session_global_tid(const struct session *s) {
  static __thread uint32_t tid;
  static __thread int64_t owner;
  if (owner != s->global_pid) {
    tid = (uint32_t)gettid();
    owner = s->global_pid;
  }
  return session_tid(s, tid);
}

int session_name(const char *pattern, char *path, size_t size) {
  char with_pid[4096];
  if (strstr(pattern, "%p")) return expand_pattern(pattern, path, size);
  const char *name = strrchr(pattern, '/'), *dot = strrchr(name ? name : pattern, '.');
  const size_t stem = dot ? (size_t)(dot - pattern) : strlen(pattern);
  const int n =
    snprintf(with_pid, sizeof with_pid, "%.*s.%%p%s", (int)stem, pattern, dot ? dot : "");
  return n < (int)sizeof with_pid ? expand_pattern(with_pid, path, size) : -1;
}
