#ifndef HOST_WORLD_H
#define HOST_WORLD_H

/* The memory that forked ranks share with their parent: barrier, hand-over of unique ids,
   the order to end, the flight recorders. Anonymous, so that nothing of it can remain. */

#include "host/err.h"
#include "host/recorder_ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORLD_MOST_RANKS = 256, WORLD_ID_BYTES = 128, WORLD_EXIT_ABORTED = 75 };

struct world_rank {
  uint64_t barriers;    /* how many it has entered */
  uint64_t is_finished; /* its function has returned */
  uint32_t exchanges;
  struct recorder_ring recorder;
} __attribute__((aligned(64)));

struct world {
  int count;
  int spins;                    /* before a wait sleeps */
  uint32_t must_end;            /* futex: 1 ends every rank */
  uint32_t arrived, generation; /* the barrier; generation is its futex */
  uint32_t turn;                /* futex: exchanges published so far */
  uint32_t readers;             /* futex: how many have read the last one */
  char id[WORLD_ID_BYTES];
  struct world_rank ranks[];
};

/* NULL with *e filled if there is no memory. */
struct world *world_create(int count, struct err *e);

/* The same as a file without a name, which other processes map. *fd is the caller's. */
struct world *world_create_file(int count, int *fd, struct err *e);
struct world *world_map(int fd, int count, struct err *e);
void world_destroy(struct world *w);

/* In the rank, after the fork: records into the world's memory, ignores Ctrl-C (the parent
   ends the world), dies with the parent, and starts the thread that obeys world_end. */
int world_join(struct world *w, int index, int parent, struct err *e);

/* Orders every rank to abort its communicators and to exit, from the parent. */
void world_end(struct world *w);

/* All ranks of the world wait for each other. */
void world_barrier(struct world *w, int index);

/* Rank 0's bytes to all; every rank calls it equally often. */
void world_exchange(struct world *w, int index, char id[WORLD_ID_BYTES]);

/* A number that changes while any rank gets on with its work. */
uint64_t world_progress(const struct world *w);

/* Does a rank wait for something (its last sign of life)? */
bool world_is_waiting(const struct world *w);

#endif
