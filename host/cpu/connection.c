#include "host/cpu/connection.h"
#include "host/cpu/comm.h"

#include <stdlib.h>

static size_t index_of(int nranks, enum cpu_link_kind kind, enum cpu_direction direction,
                       int channel, int peer) {
  int table = ((int)kind * CPU_DIRECTIONS + (int)direction) * CPU_CHANNELS + channel;
  return (size_t)table * (size_t)nranks + (size_t)peer;
}

static struct cpu_connection connect(struct cpu_segment *segment, enum cpu_link_kind kind,
                                     enum cpu_direction direction, int channel, int rank,
                                     int peer) {
  bool sends = direction == CPU_SEND;
  struct cpu_link *link =
    cpu_segment_link(segment, kind, channel, sends ? rank : peer, sends ? peer : rank);
  return (struct cpu_connection){
    .link = link,
    .slots = cpu_segment_slots(link),
    .slot_bytes = segment->slot_bytes,
    .bell = &segment->ranks[peer].bells[channel],
    .peer = peer,
  };
}

/* A table for each kind, direction and channel, with a row for each peer. */
struct cpu_connection *cpu_connection_all(struct cpu_segment *segment, int rank) {
  int n = segment->nranks;
  size_t count = index_of(n, CPU_LINK_KINDS, CPU_SEND, 0, 0);
  struct cpu_connection *all = calloc(count, sizeof *all);
  if (!all) return NULL;
  for (int kind = 0; kind < CPU_LINK_KINDS; kind++) {
    for (int direction = 0; direction < CPU_DIRECTIONS; direction++) {
      for (int i = 0; i < CPU_CHANNELS * n; i++) {
        struct cpu_connection *c = all + index_of(n, kind, direction, i / n, i % n);
        *c = connect(segment, kind, direction, i / n, rank, i % n);
      }
    }
  }
  return all;
}

struct cpu_connection *cpu_connection_to(ncclComm_t comm, enum cpu_link_kind kind,
                                         enum cpu_direction direction, int channel,
                                         int peer) {
  return comm->connections + index_of(comm->nranks, kind, direction, channel, peer);
}
