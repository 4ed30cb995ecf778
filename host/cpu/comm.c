#include "host/cpu/comm.h"
#include "host/cpu/bootstrap.h"
#include "host/cpu/fail.h"
#include "host/cpu/job.h"
#include "host/cpu/log.h"
#include "host/cpu/order.h"
#include "host/cpu/report.h"
#include "host/cpu/select.h"
#include "host/cpu/steps.h"
#include "host/cpu/unique_id.h"
#include "host/cpu/wait.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RANKS                                                                          \
  1024 /* links of all pairs: about a terabyte of addresses, hardly touched */

static ncclResult_t check_arguments(const ncclUniqueId *id, int nranks, int rank) {
  if (nranks < 1 || nranks > MAX_RANKS) {
    return cpu_fail(ncclInvalidArgument, "%d ranks: expected 1 to %d", nranks, MAX_RANKS);
  }
  if (rank < 0 || rank >= nranks) {
    return cpu_fail(ncclInvalidArgument,
                    "rank %d: expected 0 to %d of %d ranks",
                    rank,
                    nranks - 1,
                    nranks);
  }
  if (cpu_unique_id_is_ours(id)) return ncclSuccess;
  return cpu_fail(ncclInvalidArgument, "not a unique id of the cpu backend");
}

static void free_comm(ncclComm_t comm) {
  comm->magic = 0;
  if (comm->segment) cpu_segment_close(comm->segment);
  pthread_mutex_destroy(&comm->lock);
  pthread_cond_destroy(&comm->moved);
  cpu_team_free(comm->team);
  for (int i = 0; i < CPU_CHANNELS; i++) free(comm->scratch[i]);
  free(comm->connections);
  cpu_tuner_stop(&comm->tuner);
  cpu_registered_free(&comm->registered);
  free(comm->redops.list);
  free(comm->recent);
  free(comm);
}

/* What one rank cannot do after all have met, the others see when they wait for it. */
static ncclResult_t tell_others(ncclComm_t c, ncclResult_t rc) {
  if (rc) cpu_segment_set_state(c->segment, c->rank, CPU_RANK_FAILED);
  return rc;
}

static ncclResult_t make_model(ncclComm_t c) {
  const struct cpu_terms *terms = &c->segment->terms;
  const int cores = cpu_segment_count_cores(c->segment);
  struct cpu_tuner_constants constants;
  cpu_model_place(&c->model, c->nranks, cores, terms->bounds);
  cpu_model_export(&c->model, &terms->constants, &constants);
  const struct cpu_tuner_birth birth = {cpu_unique_id_hash(&c->id), c->nranks, &constants};
  ncclResult_t rc = cpu_tuner_start(&c->tuner, &birth);
  if (!rc) cpu_model_make(&c->model, &terms->constants, &constants);
  return rc;
}

static ncclResult_t set_up(ncclComm_t c, const struct cpu_job *job) {
  ncclResult_t rc = cpu_enabled_read(&c->model.enabled);
  if (rc) return rc;
  struct err e;
  if (cpu_steps_configure(&e)) return cpu_fail(ncclInvalidUsage, "%s", e.text);
  const struct cpu_bootstrap b = {&c->id, c->rank, c->nranks, c->device, job->bounds};
  rc = cpu_bootstrap(&b, &c->segment);
  if (rc) return rc;
  c->connections = cpu_connection_all(c->segment, c->rank);
  c->team = cpu_team_new(cpu_team_threads(c->nranks, cpu_segment_count_cores(c->segment)));
  if (!c->connections || !c->team) {
    return tell_others(c, cpu_fail(ncclSystemError, "out of memory"));
  }
  rc = tell_others(c, make_model(c));
  if (rc) return rc;
  c->recent = cpu_select_recent();
  cpu_report_graphs(c);
  cpu_report_model(c);
  return ncclSuccess;
}

ncclResult_t cpu_comm_create(ncclComm_t *comm, const struct cpu_job *job) {
  *comm = NULL;
  ncclResult_t rc = check_arguments(&job->id, job->nranks, job->rank);
  if (rc) return rc;
  ncclComm_t c = calloc(1, sizeof *c);
  if (!c) return cpu_fail(ncclSystemError, "out of memory");
  *c = (struct ncclComm){CPU_COMM_MAGIC, 1, job->rank, job->nranks, job->device, job->id};
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->moved, NULL);
  const int device = cpu_log_set_device(c->device);
  cpu_report_start(c, job);
  rc = set_up(c, job);
  if (!rc) {
    cpu_report_complete(c, job);
    *comm = c;
  }
  cpu_log_set_device(device);
  if (rc) free_comm(c);
  return rc;
}

void cpu_comm_retain(ncclComm_t comm) {
  atomic_fetch_add(&comm->references, 1);
}

void cpu_comm_release(ncclComm_t comm) {
  if (atomic_fetch_sub(&comm->references, 1) == 1) free_comm(comm);
}

bool cpu_comm_is_aborted(ncclComm_t comm) {
  return atomic_load(&comm->aborted);
}

ncclResult_t cpu_comm_check_handle(const struct ncclComm *comm) {
  if (comm && comm->magic == CPU_COMM_MAGIC) return ncclSuccess;
  return cpu_fail(ncclInvalidArgument, "not a communicator");
}

ncclResult_t cpu_comm_check(ncclComm_t comm) {
  ncclResult_t rc = cpu_comm_check_handle(comm);
  if (rc) return rc;
  if (comm->finalized) {
    return cpu_fail(ncclInvalidArgument, "the communicator is finalized");
  }
  int error = atomic_load(&comm->async_error);
  return error ? cpu_fail_again((ncclResult_t)error, comm->async_text) : ncclSuccess;
}

/* The first failure is the cause; what fails after it only follows from it. */
void cpu_comm_set_error(ncclComm_t comm, ncclResult_t rc) {
  if (cpu_comm_is_aborted(comm)) return; /* the operation was told to end */
  pthread_mutex_lock(&comm->lock);
  if (!comm->async_error) {
    strncpy(comm->async_text, cpu_fail_text(), sizeof comm->async_text - 1);
    atomic_store(&comm->async_error, (int)rc);
  }
  pthread_mutex_unlock(&comm->lock);
  cpu_segment_set_state(comm->segment, comm->rank, CPU_RANK_FAILED);
}

ncclResult_t cpu_comm_finalize(ncclComm_t comm) {
  ncclResult_t rc = cpu_comm_check_handle(comm);
  if (rc) return rc;
  if (comm->finalized) {
    return cpu_fail(ncclInvalidArgument, "the communicator is finalized already");
  }
  cpu_order_drain(comm); /* what was enqueued before still runs */
  comm->finalized = true;
  return ncclSuccess;
}

char *cpu_comm_scratch(ncclComm_t comm, int channel) {
  char **at = &comm->scratch[channel];
  if (!*at) *at = aligned_alloc(CPU_LINE, CPU_SCRATCH);
  return *at;
}

void cpu_comm_disturb(ncclComm_t comm) {
  for (int c = 0; c < CPU_CHANNELS; c++) {
    cpu_bell_ring(&comm->segment->ranks[comm->rank].bells[c]);
  }
}

void cpu_comm_stop(ncclComm_t comm, enum cpu_rank_state state) {
  atomic_store(&comm->aborted, 1);
  cpu_comm_disturb(comm);
  cpu_order_stop(comm);
  /* A rank that has failed stays so for the others: that is why they are stuck. */
  if (atomic_load(&comm->segment->ranks[comm->rank].state) == CPU_RANK_JOINED) {
    cpu_segment_set_state(comm->segment, comm->rank, state);
  }
}

/* Graphs that hold its operations may keep the communicator's memory, not more. */
static ncclResult_t close_comm(ncclComm_t comm, enum cpu_rank_state state) {
  if (!comm) return ncclSuccess;
  ncclResult_t rc = cpu_comm_check_handle(comm);
  if (rc) return rc;
  bool orderly = state == CPU_RANK_LEFT;
  if (orderly)
    cpu_order_drain(comm);
  else
    cpu_report_abort(comm);
  cpu_comm_stop(comm, state);
  cpu_tuner_stop(&comm->tuner);
  cpu_report_end(comm, !orderly);
  comm->magic = 0;
  cpu_comm_release(comm);
  return ncclSuccess;
}

ncclResult_t cpu_comm_destroy(ncclComm_t comm) {
  return close_comm(comm, CPU_RANK_LEFT);
}

ncclResult_t cpu_comm_abort(ncclComm_t comm) {
  return close_comm(comm, CPU_RANK_ABORTED);
}

ncclResult_t cpu_comm_get_async_error(ncclComm_t comm, ncclResult_t *async_error) {
  ncclResult_t rc = cpu_comm_check_handle(comm);
  if (rc) return rc;
  if (!async_error) return cpu_fail(ncclInvalidArgument, "async_error is NULL");
  *async_error = (ncclResult_t)atomic_load(&comm->async_error);
  return ncclSuccess;
}

const char *cpu_comm_get_last_error(ncclComm_t comm) {
  bool failed = comm && !cpu_comm_check_handle(comm) && atomic_load(&comm->async_error);
  return failed ? comm->async_text : cpu_fail_text();
}

ncclResult_t cpu_comm_last_choice(ncclComm_t comm, struct coll_choice *out) {
  ncclResult_t rc = cpu_comm_check_handle(comm);
  if (!rc) *out = comm->last;
  return rc;
}
