#ifndef HOST_CPU_BUFFERS_H
#define HOST_CPU_BUFFERS_H

/* The memory behind a link: CPU_STEPS slots for each protocol that its kind uses. */

#include "host/cpu/numbers.h"

#include <stddef.h>

enum { CPU_STEPS = 8 }; /* NCCL_STEPS */

/* Collectives and send/recv have connections of their own, as in NCCL: a message that
   waits for its receiver does not stand in a collective's way. */
enum cpu_link_kind { CPU_LINK_COLLECTIVE, CPU_LINK_P2P, CPU_LINK_KINDS };

struct cpu_buffers {
  size_t slot_bytes[CPU_PROTOCOLS];
  size_t offset[CPU_PROTOCOLS]; /* of the first slot */
  size_t bytes;                 /* in all: whole pages */
};

/* NCCL_LL_BUFFSIZE, NCCL_LL128_BUFFSIZE and NCCL_BUFFSIZE give the bytes of a protocol's
   CPU_STEPS slots together; what is no number of at least 4096 gives the default. */
struct cpu_buffers cpu_buffers_plan(enum cpu_link_kind kind);

#endif
