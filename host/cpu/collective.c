#include "host/cpu/collective.h"
#include "host/cpu/fail.h"
#include "host/cpu/plan.h"
#include "host/cpu/traced_coll.h"
#include "host/dtype.h"

#include <stdio.h>

const struct cpu_algorithm *const cpu_algorithms[CPU_ALGORITHMS] = {
  [CPU_TREE] = &cpu_tree,
  [CPU_RING] = &cpu_ring,
  [CPU_PAT] = &cpu_pat,
};
const struct cpu_protocol *const cpu_protocols[CPU_PROTOCOLS] = {
  [CPU_LL] = &cpu_ll,
  [CPU_LL128] = &cpu_ll128,
  [CPU_SIMPLE] = &cpu_simple,
};

static void run_alone(const struct cpu_op *op, size_t element) {
  struct cpu_operands what = {
    .src = {op->send}, .dst = {op->recv}, .nsrc = 1, .ndst = 1, .pre = true, .post = true};
  cpu_redop_apply(&op->redop, &what, op->count, element);
}

/* What all ranks must agree on; gathers may differ in the type that they call the bytes. */
static uint32_t sign(const struct cpu_op *op, const struct cpu_choice *choice) {
  bool reduces = op->function == CPU_ALL_REDUCE || op->function == CPU_REDUCE ||
                 op->function == CPU_REDUCE_SCATTER;
  uint32_t h = (uint32_t)(choice->algorithm * CPU_PROTOCOLS + choice->protocol);
  h = (h * 31 + (uint32_t)choice->channels) * 31 + (uint32_t)op->function;
  h = h * 31 + (uint32_t)op->root;
  h = h * 31 + (uint32_t)(op->count * dtype_size(op->type));
  return reduces ? (h * 31 + (uint32_t)op->redop.base) * 31 + (uint32_t)op->type : h;
}

/* An operation whose channels are run by several threads. */
struct job {
  ncclComm_t comm;
  const struct cpu_op *op;
  const struct cpu_choice *choice;
  struct cpu_stats stats[CPU_CHANNELS];
  ncclResult_t rc; /* the first failure, and why: */
  char text[512];
};

/* The first failure of a channel ends the others: nothing would wake them. */
static void note_failure(struct job *job, ncclResult_t rc) {
  if (atomic_exchange(&job->comm->broken, 1)) return;
  job->rc = rc;
  snprintf(job->text, sizeof job->text, "%s", cpu_fail_text());
  cpu_comm_disturb(job->comm);
}

static void run_channel(void *argument, int i) {
  struct job *job = argument;
  const struct cpu_op *op = job->op;
  const struct cpu_choice *choice = job->choice;
  const struct cpu_part part = cpu_choice_part(choice, i);
  const struct cpu_plan plan = cpu_plan_make(job->comm, op, choice, part);
  struct cpu_course course = {choice->algorithm, choice->protocol, 0, {0}};
  struct cpu_primitives p = {
    .comm = job->comm,
    .channel = choice->first_channel + i,
    .op = op,
    .course = &course,
    .protocol = cpu_protocols[choice->protocol],
    .redop = &op->redop,
    .signature = sign(op, choice),
    .element = dtype_size(op->type),
    .slice_count = plan.slice_count,
    .chunk_count = plan.chunk_count,
  };
  cpu_algorithms[choice->algorithm]->run[op->function](&p, op, part);
  job->stats[i] = p.stats;
  if (p.rc) note_failure(job, p.rc);
}

static ncclResult_t run_channels(struct job *job) {
  const struct cpu_choice *choice = job->choice;
  if (choice->channels < 1 || choice->first_channel + choice->channels > CPU_CHANNELS) {
    return cpu_fail(ncclInternalError, "%d channels", choice->channels);
  }
  cpu_team_run(job->comm->team, choice->channels, run_channel, job);
  for (int i = 0; i < choice->channels; i++) {
    cpu_stats_add(&job->comm->stats, &job->stats[i]);
  }
  return job->rc ? cpu_fail_again(job->rc, job->text) : ncclSuccess;
}

ncclResult_t cpu_collective_run(ncclComm_t comm, const struct cpu_op *op,
                                const struct cpu_choice *choice) {
  struct cpu_op loaded = *op;
  cpu_redop_load(&loaded.redop); /* now: earlier work in the stream may have written it */
  if (op->count == 0) return ncclSuccess;
  cpu_traced_collective(&loaded, comm->nranks == 1 ? NULL : choice);
  if (comm->nranks == 1) {
    run_alone(&loaded, dtype_size(op->type));
    return ncclSuccess;
  }
  struct job job = {.comm = comm, .op = &loaded, .choice = choice};
  return run_channels(&job);
}
