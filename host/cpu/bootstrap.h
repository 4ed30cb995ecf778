#ifndef HOST_CPU_BOOTSTRAP_H
#define HOST_CPU_BOOTSTRAP_H

/* How ranks meet: rank 0 makes the segment and listens on the abstract socket that the
   unique id names; the others connect and are handed the segment's descriptor. */

#include "host/abi_cuda.h"
#include "host/cpu/segment.h"

struct cpu_bootstrap {
  const ncclUniqueId *id;
  int rank, nranks;
  CUdevice device;
  struct cpu_bounds bounds; /* rank 0's are the communicator's */
};

/* Blocks until all ranks have joined, at most NCLUA_CPU_INIT_TIMEOUT seconds (60). */
ncclResult_t cpu_bootstrap(const struct cpu_bootstrap *b, struct cpu_segment **segment);

#endif
