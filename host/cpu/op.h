#ifndef HOST_CPU_OP_H
#define HOST_CPU_OP_H

/* One call of a collective or of send/recv, checked and resolved. */

#include "host/abi_cuda.h"
#include "host/cpu/numbers.h"
#include "host/cpu/redop.h"

struct cpu_op {
  enum cpu_function function;
  const void *send;
  void *recv;
  size_t count; /* elements, as the caller gave them */
  ncclDataType_t type;
  int root; /* or peer */
  struct cpu_redop redop;
  uint64_t number; /* of the call, per communicator, from 0 */
};

#endif
