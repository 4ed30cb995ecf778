#ifndef HOST_CPU_LOG_SETTINGS_H
#define HOST_CPU_LOG_SETTINGS_H

/* What the environment asks of the log. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

struct cpu_log_settings {
  int level; /* what is more talkative than this is not printed */
  uint64_t subsystems;
  unsigned stamped; /* levels that carry a timestamp, as bits */
  char stamp[256];  /* for strftime, but for "%3f" and its like */
  char host[256];   /* up to the first dot */
  FILE *file;
};

void cpu_log_settings_read(struct cpu_log_settings *s);

/* The time as text; returns its length, 0 if it does not fit. */
size_t cpu_log_settings_stamp(const struct cpu_log_settings *s, const struct timespec *now,
                              char *out, size_t room);

#endif
