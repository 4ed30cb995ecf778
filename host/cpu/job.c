#include "host/cpu/job.h"
#include "host/cpu/comm.h"
#include "host/cpu/fail.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *run(void *argument) {
  struct cpu_job *job = argument;
  job->comm = NULL;
  job->rc = job->run(job);
  if (job->rc) snprintf(job->text, sizeof job->text, "%s", cpu_fail_text());
  return NULL;
}

/* The first job runs on the calling thread. */
static void run_threads(struct cpu_job *jobs, size_t count, pthread_t *threads) {
  for (size_t i = 1; i < count; i++) {
    jobs[i].rc = ncclSuccess;
    if (pthread_create(&threads[i], NULL, run, &jobs[i]) == 0) continue;
    jobs[i].rc = ncclSystemError;
    snprintf(jobs[i].text, sizeof jobs[i].text, "no thread for another rank");
    threads[i] = pthread_self();
  }
  run(&jobs[0]);
  for (size_t i = 1; i < count; i++) {
    if (!pthread_equal(threads[i], pthread_self())) pthread_join(threads[i], NULL);
  }
}

static const struct cpu_job *find_failed(const struct cpu_job *jobs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (jobs[i].rc) return &jobs[i];
  }
  return NULL;
}

ncclResult_t cpu_job_run_all(struct cpu_job *jobs, size_t count) {
  pthread_t *threads = malloc(count * sizeof *threads);
  if (!threads) return cpu_fail(ncclSystemError, "out of memory");
  run_threads(jobs, count, threads);
  free(threads);
  const struct cpu_job *failed = find_failed(jobs, count);
  for (size_t i = 0; i < count; i++) {
    if (failed && jobs[i].comm) {
      cpu_comm_abort(jobs[i].comm);
      jobs[i].comm = NULL;
    }
    *jobs[i].out = jobs[i].comm;
  }
  return failed ? cpu_fail_again(failed->rc, failed->text) : ncclSuccess;
}

ncclResult_t cpu_job_init(struct cpu_job *job) {
  return cpu_comm_create(&job->comm, job);
}

static int asked(int count) {
  return count == NCCL_CONFIG_UNDEF_INT ? 0 : count;
}

struct cpu_bounds cpu_job_bounds(const ncclConfig_t *config) {
  if (!config) return (struct cpu_bounds){0};
  return (struct cpu_bounds){asked(config->minCTAs), asked(config->maxCTAs)};
}
