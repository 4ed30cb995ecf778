#ifndef PLUGINS_TUNER_STEER_H
#define PLUGINS_TUNER_STEER_H

/* The plugin's own exported functions, for a host that opens the same file with dlopen:
   one process forces another choice for every call, on one communicator. Thread-safe. */

#include <stdint.h>

#define STEER_EXPORT __attribute__((visibility("default")))

/* What the last calls were answered with. */
struct steer_report {
  uint64_t calls;       /* since the library was loaded */
  uint64_t forced;      /* of them: with a choice of ours */
  uint64_t unavailable; /* of them: the choice was not available, NCCL's was kept */
};

/* From now on every call of `func` (NCCL's enum; -1: every function) gets this cell.
   STEER_RELEASE as the algorithm: back to the configured rules; STEER_KEEP: NCCL's own
   choice in spite of them. channels 0 keeps NCCL's. -1 for values out of range. */
enum { STEER_RELEASE = -1, STEER_KEEP = -2 };
STEER_EXPORT int nclua_tuner_force(int func, int algorithm, int protocol, int channels);

STEER_EXPORT void nclua_tuner_report(struct steer_report *out);

/* Waits until the observation file holds all calls so far. */
STEER_EXPORT void nclua_tuner_flush(void);

#endif
