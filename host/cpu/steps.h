#ifndef HOST_CPU_STEPS_H
#define HOST_CPU_STEPS_H

/* The steps inside an operation: recorded for who wants to see them, delayed where a
   straggler is wanted. Every verb of the primitives and every slot of a send or receive
   asks `cpu_steps_watched` first: while it is false, nothing else happens here. */

#include "host/backend.h"

#include <stdatomic.h>

extern _Atomic bool cpu_steps_watched;

/* The step begins: waits as long as it is told to, and notes the time. */
void cpu_steps_enter(struct coll_step *step);

/* The step is done. */
void cpu_steps_leave(struct coll_step *step);

/* This thread is about to wait for a peer; it has waited. */
void cpu_steps_wait(void);
void cpu_steps_waited(void);

/* Takes over NCLUA_CPU_DELAY, if it has changed. */
int cpu_steps_configure(struct err *e);

/* The member of coll_api. */
extern const struct coll_steps cpu_steps;

#endif
