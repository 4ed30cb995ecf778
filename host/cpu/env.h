#ifndef HOST_CPU_ENV_H
#define HOST_CPU_ENV_H

/* NCCL's variables, which are told in the log as they are read. */

#include <stdint.h>

/* `fallback` if it is unset, empty or no number. Told once a process and value. */
int64_t cpu_env_number(const char *name, int64_t fallback);

/* NULL if unset. Told each time, as NCCL does. */
const char *cpu_env_text(const char *name);

#endif
