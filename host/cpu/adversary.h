#ifndef HOST_CPU_ADVERSARY_H
#define HOST_CPU_ADVERSARY_H

/* A machine that is always at its worst, for programs that are right by luck only
   (NCLUA_CPU_ADVERSARY=1, or the milliseconds to hold work back):
   work that nobody waits for begins late; what is to be received holds rubbish until it
   comes; ranks begin one after the other; a send ends when it has been received. */

#include "host/cpu/op.h"
#include "host/cpu/p2p.h"

#include <stdbool.h>

/* How long a stream's worker holds back an item that nobody waits for; 0: not so today. */
int64_t cpu_adversary_hold_ns(void);

/* Is an operation going to run, and nothing under way in this process, so that memory may
   be spoilt from the host? */
bool cpu_adversary_is_idle(ncclComm_t comm, CUstream stream);

/* Spoils what the operation will write, unless that is also what it reads. */
void cpu_adversary_spoil(ncclComm_t comm, const struct cpu_op *op);
void cpu_adversary_spoil_messages(const struct cpu_message *messages, size_t count);

/* Before a rank's first step. */
void cpu_adversary_stagger(ncclComm_t comm);

#endif
