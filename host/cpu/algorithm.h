#ifndef HOST_CPU_ALGORITHM_H
#define HOST_CPU_ALGORITHM_H

/* The paths that data takes between the ranks, written over the primitives. */

#include "host/cpu/op.h"
#include "host/cpu/primitives.h"

/* A channel's share: elements of the message, or of each rank's block of it. */
struct cpu_part {
  size_t first, count;
};

struct cpu_algorithm {
  const char *name; /* as NCCL_ALGO has it */
  /* By function; NULL where the algorithm has no way of its own. */
  void (*run[CPU_MODELLED])(struct cpu_primitives *p, const struct cpu_op *op,
                            struct cpu_part part);
};
extern const struct cpu_algorithm cpu_ring, cpu_tree, cpu_pat;

/* By number; NULL: not here. The selection offers what these two tables have. */
extern const struct cpu_algorithm *const cpu_algorithms[CPU_ALGORITHMS];
extern const struct cpu_protocol *const cpu_protocols[CPU_PROTOCOLS];

/* The rank in place `index` of a channel's ring, which sends to the one after it. Index 0
   is rank 0 in all of them. */
int cpu_ring_rank(int nranks, int channel, int index);

/* A rank's neighbours in a channel's tree; -1: none, down[0] before down[1]. */
struct cpu_tree_place {
  int up, down[2];
};
struct cpu_tree_place cpu_tree_find(int nranks, int rank, int channel);

#endif
