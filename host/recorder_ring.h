#ifndef HOST_RECORDER_RING_H
#define HOST_RECORDER_RING_H

/* Where the flight recorder writes: one ring a rank, laid out for a reader in another
   process. A reader may see one record half written; it is for people, not for sums. */

#include <stdint.h>

enum { RECORDER_OPS = 256, RECORDER_COMMS = 16, RECORDER_NAME = 16, RECORDER_WHAT = 32 };

struct recorder_record {
  char function[RECORDER_NAME];
  uint64_t op_count, count, enqueued_ns, stream;
  int32_t type, peer;
  uint32_t comm; /* its number in this process, from 0, in order of first use */
  uint32_t unused;
};

/* Read and written with __atomic, as worker threads complete what another enqueues. */
struct recorder_comm {
  uintptr_t handle; /* 0: a free slot */
  uint64_t number;
  uint64_t enqueued, completed; /* operations so far */
  uint64_t enqueued_ns, completed_ns;
};

struct recorder_ring {
  uint64_t progress; /* changes whenever anything is enqueued, completed or waited for */
  uint64_t head;     /* records written so far; the last is at (head - 1) % RECORDER_OPS */
  uint64_t settled;  /* all before this one are known to be complete */
  uint64_t comm_count;
  uint64_t waiting_since_ns; /* 0: the host thread waits for nothing */
  char waiting[RECORDER_WHAT];
  struct recorder_comm comms[RECORDER_COMMS];
  struct recorder_record ops[RECORDER_OPS];
};

/* From now on this process records into `ring` (zeroed memory), and no longer into memory
   of its own. */
void recorder_attach(struct recorder_ring *ring);

/* What this process records into. */
const struct recorder_ring *recorder_own(void);

#endif
