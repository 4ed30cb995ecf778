#ifndef HOST_CPU_P2P_H
#define HOST_CPU_P2P_H

/* Sends and receives that progress together, as those of one group do: none waits for
   another, except that messages between the same two ranks keep their order. */

#include "host/cpu/op.h"

struct cpu_message {
  char *buffer;
  size_t bytes;
  int peer;
  bool is_send;
  int function;             /* of the call it is part of */
  uint64_t call;            /* its number */
  int step;                 /* slots, while it runs */
  size_t done;              /* bytes */
  struct cpu_message *next; /* of the same peer and direction */
};

/* How many messages the call stands for, and those messages. */
size_t cpu_p2p_count(ncclComm_t comm, const struct cpu_op *op);
void cpu_p2p_expand(ncclComm_t comm, const struct cpu_op *op, struct cpu_message *out);

/* Each send to the own rank needs a receive of the same size: ncclInvalidUsage if not. */
ncclResult_t cpu_p2p_check(ncclComm_t comm, const struct cpu_message *messages,
                           size_t count);

ncclResult_t cpu_p2p_run(ncclComm_t comm, struct cpu_message *messages, size_t count);

#endif
