#ifndef HOST_CPU_TUNER_H
#define HOST_CPU_TUNER_H

/* Tuner plugins, loaded and asked as NCCL 2.28 does it. */

#include "host/abi_nccl.h"
#include "host/cpu/tuner_abi.h"

#include <stdbool.h>
#include <stdint.h>

/* A communicator's side of the process's plugin; zero: none. */
struct cpu_tuner {
  bool is_on;
  void *context;
};

/* What the plugin is told of the communicator. */
struct cpu_tuner_birth {
  uint64_t comm_id;
  int ranks;
  struct cpu_tuner_constants *constants; /* version 5 may edit them */
};

/* Loads the plugin that NCCL_TUNER_PLUGIN names, if the process has not yet; none is
   ncclSuccess. A plugin whose init fails is that failure. */
ncclResult_t cpu_tuner_start(struct cpu_tuner *t, const struct cpu_tuner_birth *birth);
void cpu_tuner_stop(struct cpu_tuner *t);

struct cpu_question {
  enum cpu_function function;
  size_t bytes;                               /* the model's */
  int ops;                                    /* of the group, by channel */
  int is_registered;                          /* both buffers */
  float costs[CPU_ALGORITHMS][CPU_PROTOCOLS]; /* µs; -1: not available. In and out */
  int channels;                               /* out; 0: as the model has it */
};

/* The plugin's failure is the operation's failure, as in NCCL. */
ncclResult_t cpu_tuner_ask(const struct cpu_tuner *t, struct cpu_question *q);

#endif
