#ifndef HOST_CPU_WAIT_H
#define HOST_CPU_WAIT_H

/* Waiting for another rank: spin briefly, give the core away, then sleep until its bell
   rings. Every wait ends when the communicator is aborted or the peer is gone. Use:

     struct cpu_wait w = cpu_wait_begin(comm, channel, &peer, 1);
     while (!condition() && !(rc = cpu_wait_more(&w))) {}
     cpu_wait_end(&w);

   Who rings has written what the condition reads, and then passed cpu_fence(); who waits
   passes one between announcing itself and its last look. So one of the two sees the other,
   and nobody falls asleep past the ring. */

#include "host/cpu/segment.h"

struct cpu_wait {
  struct ncclComm *comm;
  struct cpu_bell *bell;
  const int *peers; /* those whose end ends the wait */
  int npeers;
  unsigned turns;
  bool armed;     /* the bell knows that we are about to sleep */
  bool peer_gone; /* but the condition was not looked at since */
  uint32_t rings;
};

struct cpu_wait cpu_wait_begin(struct ncclComm *comm, int channel, const int *peers,
                               int npeers);
/* ncclSuccess: look at the condition again. */
ncclResult_t cpu_wait_more(struct cpu_wait *w);
void cpu_wait_end(struct cpu_wait *w);

/* What comes after it is not loaded before all that was stored before it can be seen. */
void cpu_fence(void);

/* Wakes those who sleep at the bell. */
void cpu_bell_ring(struct cpu_bell *bell);

/* Sleeps while the bell has rung `rings` times; false if it did not within that time. */
bool cpu_bell_sleep(struct cpu_bell *bell, uint32_t rings, unsigned milliseconds);

/* Notes in the segment that a rank's process is dead, if so. */
void cpu_wait_check_process(struct cpu_segment *segment, int rank);

#endif
