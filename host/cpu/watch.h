#ifndef HOST_CPU_WATCH_H
#define HOST_CPU_WATCH_H

/* What a verb is to those who look at its steps. */

#include "host/cpu/primitives.h"
#include "host/cpu/steps.h"

/* The verb on this chunk begins: cpu_steps_leave ends it. */
struct coll_step cpu_watch_enter(struct cpu_primitives *p, const struct cpu_chunk *chunk);

#endif
