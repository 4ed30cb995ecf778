#include "host/cpu/connection.h"
#include "host/cpu/comm.h"

#include <stdlib.h>

/* The place of the first of nranks connections in the table. */
static size_t index_of(int nranks, enum cpu_link_kind kind, enum cpu_direction direction,
                       int channel) {
  int before = kind == CPU_LINK_COLLECTIVE
                 ? 0
                 : CPU_DIRECTIONS * cpu_segment_channels(CPU_LINK_COLLECTIVE);
  int table = before + (int)direction * cpu_segment_channels(kind) + channel;
  return (size_t)table * (size_t)nranks;
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
    .buffers = &segment->buffers[kind],
    .bell = &segment->ranks[peer].bells[channel],
    .peer = peer,
  };
}

/* A table for each kind, direction and channel, with a row for each peer. */
static void connect_all(struct cpu_connection *all, struct cpu_segment *segment,
                        enum cpu_link_kind kind, int rank) {
  int n = segment->nranks, channels = cpu_segment_channels(kind);
  for (int i = 0; i < CPU_DIRECTIONS * channels; i++) {
    enum cpu_direction direction = (enum cpu_direction)(i / channels);
    struct cpu_connection *c = all + index_of(n, kind, direction, i % channels);
    for (int peer = 0; peer < n; peer++) {
      c[peer] = connect(segment, kind, direction, i % channels, rank, peer);
    }
  }
}

struct cpu_connection *cpu_connection_all(struct cpu_segment *segment, int rank) {
  size_t count = index_of(segment->nranks, CPU_LINK_P2P, CPU_DIRECTIONS, 0);
  struct cpu_connection *all = calloc(count, sizeof *all);
  if (!all) return NULL;
  connect_all(all, segment, CPU_LINK_COLLECTIVE, rank);
  connect_all(all, segment, CPU_LINK_P2P, rank);
  return all;
}

struct cpu_connection *cpu_connection_to(ncclComm_t comm, enum cpu_link_kind kind,
                                         enum cpu_direction direction, int channel,
                                         int peer) {
  return comm->connections + index_of(comm->nranks, kind, direction, channel) + peer;
}
