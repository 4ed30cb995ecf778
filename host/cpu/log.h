#ifndef HOST_CPU_LOG_H
#define HOST_CPU_LOG_H

/* NCCL's debug log, in the grammar of 2.28, so that what reads NCCL's reads ours. The
   variables (NCCL_DEBUG, NCCL_DEBUG_SUBSYS, ...) are read at the first line. */

#include <stdbool.h>
#include <stdint.h>

enum cpu_log_level {
  CPU_LOG_VERSION = 1,
  CPU_LOG_WARN = 2,
  CPU_LOG_INFO = 3,
  CPU_LOG_ABORT = 4,
  CPU_LOG_TRACE = 5,
};

/* NCCL's bits, which plugins use too. */
enum cpu_log_subsystem {
  CPU_LOG_INIT = 0x1,
  CPU_LOG_COLL = 0x2,
  CPU_LOG_SHM = 0x8,
  CPU_LOG_GRAPH = 0x20,
  CPU_LOG_TUNING = 0x40,
  CPU_LOG_ENV = 0x80,
};
#define CPU_LOG_ALL (~0ul)

/* Would cpu_log print it? Ask before making an expensive argument. */
bool cpu_log_is_on(unsigned long subsystems);

/* One line at level INFO; at most 1023 bytes with its prefix, as in NCCL. */
void cpu_log(unsigned long subsystems, const char *format, ...)
  __attribute__((format(printf, 2, 3)));

void cpu_log_warn(const char *file, int line, const char *text);

/* The version and what this is, once a process: by every rank at level INFO, at the levels
   below by rank 0 alone. */
void cpu_log_version(int rank);

/* What a plugin is handed to log with. */
void cpu_log_plugin(int level, unsigned long subsystems, const char *file, int line,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The device that this thread's lines name; -1: its current one. Returns the one before. */
int cpu_log_set_device(int device);

#endif
