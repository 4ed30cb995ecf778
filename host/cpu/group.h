#ifndef HOST_CPU_GROUP_H
#define HOST_CPU_GROUP_H

/* ncclGroupStart and ncclGroupEnd: what a thread calls between them starts at the end,
   together. */

#include "host/cpu/enqueue.h"
#include "host/cpu/job.h"

/* At once outside of a group, else at its end. */
ncclResult_t cpu_group_call(const struct cpu_call *call);
ncclResult_t cpu_group_job(const struct cpu_job *job);

/* Passes rc on; if it is a failure within a group, the whole group fails with it. */
ncclResult_t cpu_group_note(ncclResult_t rc);

/* The members of coll_api. */
ncclResult_t cpu_group_start(void);
ncclResult_t cpu_group_end(void);

#endif
