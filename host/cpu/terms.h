#ifndef HOST_CPU_TERMS_H
#define HOST_CPU_TERMS_H

/* What rank 0 decides for all ranks of a communicator, since they must choose alike: their
   own environments and files may differ. */

#include "host/cpu/constants.h"

/* On the number of channels; 0: none. */
struct cpu_bounds {
  int least, most;
};

struct cpu_terms {
  struct cpu_bounds bounds;
  struct cpu_constants constants;
};

/* By the environment; `config` holds what ncclConfig_t asks for. */
void cpu_terms_read(struct cpu_terms *terms, struct cpu_bounds config);

#endif
