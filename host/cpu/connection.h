#ifndef HOST_CPU_CONNECTION_H
#define HOST_CPU_CONNECTION_H

/* One end of a link between two ranks: the shared control words and slots, and how far
   this end has come. */

#include "host/cpu/segment.h"

struct cpu_connection {
  struct cpu_link *link;
  char *slots;
  const struct cpu_buffers *buffers; /* where in them each protocol's are */
  struct cpu_bell *bell;             /* of the peer */
  int peer;
  uint64_t step;            /* slots that this end has filled or emptied */
  uint32_t uses[CPU_STEPS]; /* of each slot by LL: what its flags are made of */
  uint64_t seen; /* the other end's counter when last read: reading it costs a cache miss */
};

enum cpu_direction { CPU_SEND, CPU_RECV, CPU_DIRECTIONS };

/* All connections of a rank; NULL if there is no memory. Freed with free(). */
struct cpu_connection *cpu_connection_all(struct cpu_segment *segment, int rank);

struct cpu_connection *cpu_connection_to(ncclComm_t comm, enum cpu_link_kind kind,
                                         enum cpu_direction direction, int channel,
                                         int peer);

#endif
