#ifndef HOST_CPU_HANDSHAKE_H
#define HOST_CPU_HANDSHAKE_H

/* The few words on a socket between rank 0 and each other rank: "I am rank 2 of 4", and
   the segment's descriptor or the reason why not. Other users' processes are ignored. */

#include "host/abi_nccl.h"

#include <stdbool.h>
#include <stdint.h>

struct cpu_hello {
  uint64_t magic;
  int rank, nranks, pid;
};

struct cpu_guest {
  int socket;
  struct cpu_hello hello;
  bool same_pids; /* does its process id mean the same here? */
};

/* Rank 0's door; ncclInvalidUsage if another rank 0 already waits under this id. */
ncclResult_t cpu_handshake_listen(const ncclUniqueId *id, int nranks, int *door);

/* The next guest; ncclInProgress when the deadline (cpu_now_ns) is over. */
ncclResult_t cpu_handshake_accept(int door, int64_t deadline, struct cpu_guest *guest);

/* Hands `fd` over if rc is ncclSuccess, else this thread's failure text. Ends the guest. */
void cpu_handshake_answer(struct cpu_guest *guest, ncclResult_t rc, int fd);

/* Another rank: asks rank 0 for the segment; tries again until the deadline. */
ncclResult_t cpu_handshake_knock(const ncclUniqueId *id, int rank, int nranks,
                                 int64_t deadline, int *fd);

#endif
