#ifndef HOST_CPU_OP_H
#define HOST_CPU_OP_H

/* One call of a collective or of send/recv, checked and resolved. */

#include "host/abi_cuda.h"
#include "host/cpu/redop.h"

/* NCCL's numbers, which its tuner and profiler plugins and its cost table use. */
enum cpu_function {
  CPU_BROADCAST = 0,
  CPU_REDUCE = 1,
  CPU_ALL_GATHER = 2,
  CPU_REDUCE_SCATTER = 3,
  CPU_ALL_REDUCE = 4,
  CPU_MODELLED = 5, /* those above run over rings and trees; the rest is sends and recvs */
  CPU_SEND_TO = 6,
  CPU_RECV_FROM = 7,
  CPU_ALL_TO_ALL = 8,
  CPU_SCATTER = 9,
  CPU_GATHER = 10,
  CPU_FUNCTIONS = 11,
};

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
