#ifndef HOST_CPU_MODEL_H
#define HOST_CPU_MODEL_H

/* NCCL's cost model with a processor's constants: from what the ranks share to the latency
   and bandwidth of every function, algorithm and protocol, and from there to times. All
   ranks of a communicator compute the same. */

#include "host/cpu/enabled.h"
#include "host/cpu/terms.h"
#include "host/cpu/tuner_abi.h"

#include <stdbool.h>
#include <stdint.h>

struct cpu_model {
  int ranks;
  int cores;         /* that the ranks may run on, together */
  int channels;      /* NCCL's nChannels */
  float core_share;  /* of a core that a rank's channel has, at most 1 */
  float graph_bw[2]; /* GB/s a channel, of the tree's and the ring's graph */
  struct cpu_enabled enabled;
  bool has_pat;
  float latency[CPU_MODELLED][CPU_ALGORITHMS][CPU_PROTOCOLS];   /* µs */
  float bandwidth[CPU_MODELLED][CPU_ALGORITHMS][CPU_PROTOCOLS]; /* GB/s; 0: not offered */
  int max_threads[CPU_ALGORITHMS][CPU_PROTOCOLS]; /* NCCL's measure of a channel's work */
  int64_t thresholds[CPU_ALGORITHMS][CPU_PROTOCOLS]; /* bytes that make a thread worth it */
};

/* What the ranks share: model->enabled is kept, all else is set. */
void cpu_model_place(struct cpu_model *model, int ranks, int cores,
                     struct cpu_bounds bounds);

/* The constants as a tuner plugin may edit them, for this communicator. */
void cpu_model_export(const struct cpu_model *model, const struct cpu_constants *constants,
                      struct cpu_tuner_constants *out);

void cpu_model_make(struct cpu_model *model, const struct cpu_constants *constants,
                    const struct cpu_tuner_constants *edited);

/* A cell's time in µs; -1 if it is not offered. `bytes` are the model's: of all ranks
   together for AllGather and ReduceScatter. */
float cpu_model_time(const struct cpu_model *model, enum cpu_function function,
                     int algorithm, int protocol, size_t bytes, int ops);

#endif
