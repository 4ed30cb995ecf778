#include "host/cpu/split.h"
#include "host/cpu/comm.h"
#include "host/cpu/fail.h"
#include "host/cpu/group.h"
#include "host/cpu/log.h"
#include "host/cpu/unique_id.h"
#include "host/cpu/wait.h"

#include <stdlib.h>

static void post_mail(ncclComm_t comm, uint32_t sequence, int color, int key) {
  struct cpu_mail *mail = &comm->segment->ranks[comm->rank].mail[sequence & 1];
  mail->color = color;
  mail->key = key;
  atomic_store(&mail->sequence, sequence);
  for (int r = 0; r < comm->nranks; r++) cpu_bell_ring(&comm->segment->ranks[r].bells[0]);
}

/* A rank's mail of this round. Its next may be in the other slot already; the one after
   cannot be, since for that it needs ours. */
static const struct cpu_mail *await_mail(ncclComm_t comm, uint32_t sequence, int rank,
                                         ncclResult_t *rc) {
  struct cpu_mail *mail = &comm->segment->ranks[rank].mail[sequence & 1];
  struct cpu_wait w = cpu_wait_begin(comm, 0, &rank, 1);
  while (atomic_load(&mail->sequence) != sequence && !(*rc = cpu_wait_more(&w))) {
  }
  cpu_wait_end(&w);
  return mail;
}

/* Finds this rank's place among those of its color: by key, then by old rank. */
static ncclResult_t find_place(struct cpu_job *job, uint32_t sequence) {
  ncclComm_t comm = job->parent;
  ncclResult_t rc = ncclSuccess;
  job->rank = job->nranks = 0;
  for (int r = 0; r < comm->nranks && !rc; r++) {
    const struct cpu_mail *mail = await_mail(comm, sequence, r, &rc);
    if (rc || mail->color != job->color) continue;
    bool before = mail->key < job->key || (mail->key == job->key && r < comm->rank);
    job->rank += before;
    job->nranks++;
  }
  return rc;
}

static ncclResult_t run_split(struct cpu_job *job) {
  ncclComm_t parent = job->parent;
  uint32_t sequence = ++parent->splits;
  post_mail(parent, sequence, job->color, job->key);
  ncclResult_t rc = find_place(job, sequence);
  if (!rc && job->color == NCCL_SPLIT_NOCOLOR) {
    cpu_log(CPU_LOG_INIT,
            "Rank %d has color with NCCL_SPLIT_NOCOLOR, not creating a new communicator",
            parent->rank);
  }
  if (rc || job->color == NCCL_SPLIT_NOCOLOR) return rc;
  uint64_t salt = (uint64_t)sequence << 32 | (uint32_t)job->color;
  job->id = cpu_unique_id_derive(&parent->id, "split", salt);
  return cpu_job_init(job);
}

ncclResult_t cpu_split(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                       ncclConfig_t *config) {
  ncclResult_t rc = cpu_comm_check(comm);
  if (!rc && !newcomm) rc = cpu_fail(ncclInvalidArgument, "newcomm is NULL");
  if (!rc && color < 0 && color != NCCL_SPLIT_NOCOLOR) {
    rc = cpu_fail(ncclInvalidArgument, "color %d: expected 0 or more, or no color", color);
  }
  if (rc) return cpu_group_note(rc);
  *newcomm = NULL;
  return cpu_group_job(&(struct cpu_job){.api = "ncclCommSplit",
                                         .run = run_split,
                                         .out = newcomm,
                                         .parent = comm,
                                         .device = comm->device,
                                         .color = color,
                                         .key = key,
                                         .bounds = cpu_job_bounds(config)});
}

/* No word is exchanged with those left out: they may be dead. Who shrinks by the same list
   agrees on the id. */
static ncclResult_t plan_shrink(struct cpu_job *job, const int *exclude, int count) {
  ncclComm_t comm = job->parent;
  char *out = calloc((size_t)comm->nranks, 1);
  if (!out) return cpu_fail(ncclSystemError, "out of memory");
  ncclResult_t rc = ncclSuccess;
  for (int i = 0; i < count && !rc; i++) {
    if (exclude[i] >= 0 && exclude[i] < comm->nranks)
      out[exclude[i]] = 1;
    else
      rc = cpu_fail(ncclInvalidArgument, "rank %d to exclude does not exist", exclude[i]);
  }
  if (!rc && out[comm->rank]) {
    rc = cpu_fail(ncclInvalidArgument, "rank %d excludes itself", comm->rank);
  }
  uint64_t salt = 0xcbf29ce484222325u; /* FNV-1a over who is out */
  for (int r = 0; r < comm->nranks; r++) {
    salt = (salt ^ (uint64_t)out[r]) * 0x100000001b3u;
    job->nranks += !out[r];
    job->rank += !out[r] && r < comm->rank;
  }
  free(out);
  job->id = cpu_unique_id_derive(&comm->id, "shrink", salt);
  return rc;
}

ncclResult_t cpu_split_shrink(ncclComm_t comm, int *exclude, int exclude_count,
                              ncclComm_t *newcomm, ncclConfig_t *config, int flags) {
  bool abort = flags & NCCL_SHRINK_ABORT;
  ncclResult_t rc = abort ? cpu_comm_check_handle(comm) : cpu_comm_check(comm);
  if (!rc && (!newcomm || !exclude || exclude_count < 1)) {
    rc =
      cpu_fail(ncclInvalidArgument, "newcomm, or the list of ranks to exclude, is empty");
  }
  if (rc) return cpu_group_note(rc);
  *newcomm = NULL;
  struct cpu_job job = {.api = "ncclCommShrink",
                        .run = cpu_job_init,
                        .out = newcomm,
                        .parent = comm,
                        .device = comm->device,
                        .bounds = cpu_job_bounds(config)};
  rc = plan_shrink(&job, exclude, exclude_count);
  if (rc) return cpu_group_note(rc);
  if (abort) cpu_comm_stop(comm, CPU_RANK_ABORTED);
  return cpu_group_job(&job);
}
