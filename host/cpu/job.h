#ifndef HOST_CPU_JOB_H
#define HOST_CPU_JOB_H

/* The making of communicators: it blocks until all ranks have come, so where one thread
   has several ranks, each gets a helper thread for the time. */

#include "host/abi_cuda.h"
#include "host/abi_nccl.h"
#include "host/cpu/terms.h"

struct cpu_job {
  const char *api; /* what was called: "ncclCommInitRank" */
  ncclResult_t (*run)(struct cpu_job *job);
  ncclComm_t *out;
  ncclComm_t parent; /* of a split or shrink */
  ncclUniqueId id;   /* of a new one */
  int rank, nranks;
  CUdevice device;
  int color, key;
  struct cpu_bounds bounds; /* on channels, by the configuration */
  /* The outcome. */
  ncclComm_t comm;
  ncclResult_t rc;
  char text[512];
};

/* Runs them all at the same time. If one fails, all communicators made are destroyed and
   the first failure is returned; *out is set in either case. */
ncclResult_t cpu_job_run_all(struct cpu_job *jobs, size_t count);

/* What job.run may be. */
ncclResult_t cpu_job_init(struct cpu_job *job);
ncclResult_t cpu_job_split(struct cpu_job *job);

/* What a communicator's configuration, which may be NULL, says of channels. */
struct cpu_bounds cpu_job_bounds(const ncclConfig_t *config);

#endif
