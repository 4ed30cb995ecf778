#ifndef HOST_CPU_CHOICE_H
#define HOST_CPU_CHOICE_H

/* How an operation is carried. */

#include "host/cpu/algorithm.h"

struct cpu_choice {
  int algorithm, protocol; /* places in cpu_algorithms and cpu_protocols */
  int first_channel, channels;
  /* Elements of the first channel, each middle one and the last: as NCCL deals them. */
  size_t low, middle, high;
};

/* The i-th channel's share, i from 0 to channels - 1. */
struct cpu_part cpu_choice_part(const struct cpu_choice *choice, int i);

#endif
