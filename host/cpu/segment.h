#ifndef HOST_CPU_SEGMENT_H
#define HOST_CPU_SEGMENT_H

/* What the ranks of a communicator share: one memfd that all of them map. It has no name,
   so nothing is left behind however a rank ends. Its pages exist once they are touched. */

#include "host/abi_nccl.h"
#include "host/cpu/buffers.h"
#include "host/cpu/terms.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
  CPU_LINE = 64,    /* bytes that one core owns at a time */
  CPU_CHANNELS = 8, /* rings and trees that a communicator can run at the same time */
};

/* A sleeping rank is woken through its bell. */
struct cpu_bell {
  _Alignas(CPU_LINE) _Atomic uint32_t rings; /* the futex */
  _Atomic uint32_t sleepers;
};

/* From CPU_RANK_LEFT on, nothing more will come from this rank. */
enum cpu_rank_state {
  CPU_RANK_ABSENT,
  CPU_RANK_JOINED,
  CPU_RANK_LEFT,
  CPU_RANK_ABORTED,
  CPU_RANK_FAILED,
  CPU_RANK_DEAD,
};

/* What ranks tell each other outside of a collective; two, so that a fast rank cannot
   overwrite what a slow one still reads. */
struct cpu_mail {
  _Atomic uint32_t sequence;
  int color, key;
};

struct cpu_rank {
  struct cpu_bell bells[CPU_CHANNELS];
  _Alignas(CPU_LINE) _Atomic int state;
  int pid, device;
  uint64_t cores[16]; /* a bit for each that the rank may run on */
  struct cpu_mail mail[2];
};

/* The control words of one sender -> receiver pair, followed by its slots. The counters
   count slots of whatever protocol. */
struct cpu_link {
  _Alignas(CPU_LINE) _Atomic uint64_t tail; /* slots filled; the sender's */
  uint32_t bytes[CPU_STEPS];                /* in each slot, with CPU_LINK_LAST */
  uint16_t marks[CPU_STEPS];                /* of the operation that filled it */
  _Alignas(CPU_LINE) _Atomic uint64_t head; /* slots emptied; the receiver's */
};

/* In cpu_link.bytes of a send's slots: the message ends here. */
#define CPU_LINK_LAST 0x80000000u

struct cpu_segment {
  uint64_t magic;
  struct cpu_terms terms; /* rank 0 writes them before the others come */
  struct cpu_buffers buffers[CPU_LINK_KINDS]; /* as its environment has them */
  int nranks;
  _Atomic bool watch_pids;      /* do all ranks see each other's process ids? */
  _Atomic int failing, failure; /* an ncclResult_t that ended the initialisation for all */
  char failure_text[256];       /* written by who set `failing`, before `failure` */
  struct cpu_rank ranks[];
};

/* How many links of the kind two ranks have in each direction. */
int cpu_segment_channels(enum cpu_link_kind kind);

/* A new segment for nranks with its memfd in *fd, NULL if the system has no room. */
struct cpu_segment *cpu_segment_create(int nranks, int *fd);

/* Maps another rank's segment; ranks of one process share one mapping. NULL on failure. */
struct cpu_segment *cpu_segment_open(int fd);

/* Once for each create and open. */
void cpu_segment_close(struct cpu_segment *segment);

struct cpu_link *cpu_segment_link(struct cpu_segment *segment, enum cpu_link_kind kind,
                                  int channel, int sender, int receiver);

/* What lies behind a link: its protocols' slots, page-aligned. */
char *cpu_segment_slots(struct cpu_link *link);

/* Sets the state of a rank and wakes all others. */
void cpu_segment_set_state(struct cpu_segment *segment, int rank,
                           enum cpu_rank_state state);

/* Notes the cores that this thread may run on as its rank's. */
void cpu_segment_note_cores(struct cpu_rank *rank);

/* That the ranks may run on, together. */
int cpu_segment_count_cores(const struct cpu_segment *segment);

#endif
