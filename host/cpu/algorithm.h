#ifndef HOST_CPU_ALGORITHM_H
#define HOST_CPU_ALGORITHM_H

/* The paths that data takes between the ranks, written over the primitives. */

#include "host/cpu/op.h"
#include "host/cpu/primitives.h"

/* NCCL's numbers, of its cost table, its tuner plugins and its logs. */
enum cpu_algorithm_number {
  CPU_TREE = 0,
  CPU_RING = 1,
  CPU_PAT = 6,
  CPU_ALGORITHMS = 7, /* 2 to 5 need a switch that reduces: CollNet and NVLS */
};
enum cpu_protocol_number { CPU_LL = 0, CPU_LL128 = 1, CPU_SIMPLE = 2, CPU_PROTOCOLS = 3 };

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
extern const struct cpu_algorithm cpu_ring, cpu_tree;

/* By number; NULL: not here. The selection offers what these two tables have. */
extern const struct cpu_algorithm *const cpu_algorithms[CPU_ALGORITHMS];
extern const struct cpu_protocol *const cpu_protocols[CPU_PROTOCOLS];

/* A rank's neighbours in a channel's tree; -1: none. */
struct cpu_tree_place {
  int up, down[2];
};
struct cpu_tree_place cpu_tree_find(int nranks, int rank, int channel);

#endif
