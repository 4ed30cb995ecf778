#ifndef HOST_CPU_SELECT_H
#define HOST_CPU_SELECT_H

/* Which algorithm and protocol carries an operation, on which channels: NCCL 2.28's rules.
   Decided when it is enqueued, so that a plugin can be steered from call to call. All ranks
   must choose alike. */

#include "host/cpu/enqueue.h"

/* For a new communicator: room for the choices that are likely to come again. NULL if there
   is no memory, which costs time only. Freed with free(). */
struct cpu_recent *cpu_select_recent(void);

/* Chooses for all collectives among a group's calls, of whatever communicators. */
ncclResult_t cpu_select(struct cpu_call *calls, size_t count);

#endif
