#ifndef PLUGINS_TRACE_SESSION_H
#define PLUGINS_TRACE_SESSION_H

/* Who and when: what every row of a process has in common. Ids are composed as Nsight
   Systems does: hardware 8 bits, virtual machine 8, process 24, thread 24. */

#include <stddef.h>
#include <stdint.h>

struct session {
  int64_t start_ns; /* CLOCK_REALTIME: a row's times count from here */
  int64_t global_pid;
};

/* Of this process, beginning now. */
struct session session_new(void);

/* CLOCK_REALTIME. */
int64_t session_now_ns(void);

/* The id of the calling thread, whose number is kept for its next call. */
int64_t session_global_tid(const struct session *session);

/* The id of a thread of this process that has the number `tid`. */
int64_t session_tid(const struct session *session, uint32_t tid);

/* expand_pattern for a name that many processes inherit: without %p it gets one, before its
   ending. */
int session_name(const char *pattern, char *path, size_t size);

#endif
