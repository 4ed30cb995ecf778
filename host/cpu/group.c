#include "host/cpu/group.h"
#include "host/cpu/batch.h"
#include "host/cpu/comm.h"
#include "host/cpu/fail.h"
#include "host/cpu/select.h"

#include <stdlib.h>
#include <string.h>

/* The calling thread's open group. */
static _Thread_local struct group {
  int depth;
  ncclResult_t rc; /* of the first call in it that failed */
  char text[512];
  struct cpu_call *calls;
  size_t call_count;
  struct cpu_job *jobs;
  size_t job_count;
} group;

ncclResult_t cpu_group_note(ncclResult_t rc) {
  if (!rc || group.depth == 0 || group.rc) return rc;
  group.rc = rc;
  strncpy(group.text, cpu_fail_text(), sizeof group.text - 1);
  return rc;
}

/* Grows by doubling; true with a copy of the item at the end. */
static bool append(void **list, size_t *count, const void *item, size_t bytes) {
  size_t n = *count;
  if ((n & (n - 1)) == 0) {
    void *grown = realloc(*list, (n ? 2 * n : 1) * bytes);
    if (!grown) return false;
    *list = grown;
  }
  memcpy((char *)*list + n * bytes, item, bytes);
  *count = n + 1;
  return true;
}

static ncclResult_t launch(const struct cpu_call *call) {
  if (call->op.function < CPU_MODELLED) {
    struct cpu_call chosen = *call;
    ncclResult_t rc = cpu_select(&chosen, 1);
    return rc ? rc : cpu_enqueue_collective(&chosen);
  }
  struct cpu_batch *batch;
  ncclResult_t rc = cpu_batch_create(call->comm, call, 1, &batch);
  return rc ? rc : cpu_batch_launch(batch);
}

ncclResult_t cpu_group_call(const struct cpu_call *call) {
  if (group.depth == 0) return launch(call);
  void *list = group.calls;
  bool kept = append(&list, &group.call_count, call, sizeof *call);
  group.calls = list;
  if (!kept) return cpu_group_note(cpu_fail(ncclSystemError, "out of memory"));
  cpu_comm_retain(call->comm); /* it may be destroyed before the group ends */
  return ncclSuccess;
}

ncclResult_t cpu_group_job(const struct cpu_job *job) {
  struct cpu_job alone = *job;
  if (group.depth == 0) return cpu_job_run_all(&alone, 1);
  void *list = group.jobs;
  bool kept = append(&list, &group.job_count, job, sizeof *job);
  group.jobs = list;
  if (!kept) return cpu_group_note(cpu_fail(ncclSystemError, "out of memory"));
  if (job->parent) cpu_comm_retain(job->parent);
  return ncclSuccess;
}

ncclResult_t cpu_group_start(void) {
  group.depth++;
  return ncclSuccess;
}

/* The communicator's first send or receive holds the batch of all of them. */
static ncclResult_t prepare(struct group *g) {
  ncclResult_t rc = cpu_select(g->calls, g->call_count);
  for (size_t i = 0; i < g->call_count && !rc; i++) {
    struct cpu_call *call = &g->calls[i];
    bool first = call->op.function >= CPU_MODELLED;
    for (size_t k = 0; k < i && first; k++) {
      first = !(g->calls[k].comm == call->comm && g->calls[k].batch);
    }
    if (!first) continue;
    rc = cpu_batch_create(call->comm, g->calls + i, g->call_count - i, &call->batch);
  }
  return rc;
}

/* As in NCCL, the collectives come first, in their order, then the sends and receives. */
static ncclResult_t launch_all(struct group *g) {
  ncclResult_t rc = ncclSuccess;
  for (size_t i = 0; i < g->call_count && !rc; i++) {
    if (g->calls[i].op.function < CPU_MODELLED) rc = cpu_enqueue_collective(&g->calls[i]);
  }
  for (size_t i = 0; i < g->call_count && !rc; i++) {
    if (!g->calls[i].batch) continue;
    rc = cpu_batch_launch(g->calls[i].batch);
    g->calls[i].batch = NULL;
  }
  return rc;
}

/* All that can fail by the caller's mistake comes before the first operation is enqueued:
   half a group would leave the other ranks waiting. */
static ncclResult_t run_group(struct group *g) {
  if (g->rc) return cpu_fail_again(g->rc, g->text);
  ncclResult_t rc = g->job_count ? cpu_job_run_all(g->jobs, g->job_count) : ncclSuccess;
  if (!rc) rc = prepare(g);
  return rc ? rc : launch_all(g);
}

static void discard(struct group *g) {
  for (size_t i = 0; i < g->call_count; i++) {
    if (g->calls[i].batch) cpu_batch_discard(g->calls[i].batch);
    cpu_comm_release(g->calls[i].comm);
  }
  for (size_t i = 0; i < g->job_count; i++) {
    if (g->jobs[i].parent) cpu_comm_release(g->jobs[i].parent);
  }
  free(g->calls);
  free(g->jobs);
}

ncclResult_t cpu_group_end(void) {
  if (group.depth == 0) {
    return cpu_fail(ncclInvalidUsage, "group end without a group start");
  }
  if (--group.depth > 0) return ncclSuccess;
  struct group ended = group;
  group = (struct group){0};
  ncclResult_t rc = run_group(&ended);
  discard(&ended);
  return rc;
}
