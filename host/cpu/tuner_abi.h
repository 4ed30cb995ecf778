#ifndef HOST_CPU_TUNER_ABI_H
#define HOST_CPU_TUNER_ABI_H

/* What version 5 of the tuner ABI hands to a plugin's init, besides plugins/tuner/abi.h. */

#include "host/cpu/numbers.h"

/* The plugin may edit them: they become the model. By hardware: NVLink, PCI, network; by
   architecture and by nodes: 1, 2, more. Here ranks meet in memory, which has NCCL's PCI
   row, and the first architecture and scale are read. */
struct cpu_tuner_constants {
  double base[CPU_ALGORITHMS][CPU_PROTOCOLS];        /* µs */
  double hardware[3][CPU_ALGORITHMS][CPU_PROTOCOLS]; /* µs a step */
  double ll_most[4][3];                              /* GB/s of all channels */
  double ring_ll128_most[4][3];                      /* GB/s a channel, as what follows */
  double tree_ll128_most[4][3];
  double tree_most[4][3];
  double nvls_tree_most[4][3];
};
_Static_assert(sizeof(struct cpu_tuner_constants) == 1152, "as NCCL 2.28 has it");

enum { CPU_HARDWARE_PCI = 1 };

struct cpu_nvl_domain {
  int domains, least_ranks, most_ranks;
};

#endif
