#include "host/cpu/select.h"
#include "host/cpu/comm.h"
#include "host/cpu/deal.h"
#include "host/cpu/env.h"
#include "host/cpu/fail.h"
#include "host/cpu/report.h"
#include "host/dtype.h"

#include <stdlib.h>

#define FOREVER_US 3600000000.0f /* NCCL takes no cell that would take an hour */
#define ALIKE                                                                              \
  4 /* operations less than so many times the smallest are chosen for as one               \
     */

/* Operations that are chosen for as one: NCCL's aggregation. */
struct bundle {
  struct cpu_call **calls;
  size_t count;
  int ops; /* of the group, by channel */
};

static bool is_by_rank(enum cpu_function f) {
  return f == CPU_ALL_GATHER || f == CPU_REDUCE_SCATTER;
}

static size_t bytes_of(const struct cpu_call *call) {
  const size_t ranks = is_by_rank(call->op.function) ? (size_t)call->comm->nranks : 1;
  return call->op.count * dtype_size(call->op.type) * ranks;
}

/* NCCL's device operator: what decides which kernel runs. */
static int kind_of(const struct cpu_op *op) {
  static const int kinds[] = {[ncclSum] = 0, [ncclProd] = 1, [ncclMax] = 2, [ncclMin] = 2};
  if (op->redop.post_divide) return 4;
  return op->redop.pre_multiply ? 3 : kinds[op->redop.base];
}

/* PAT sums in another order than these operators want, as NCCL has it. */
static bool is_barred(const struct cpu_op *op, int a) {
  return a == CPU_PAT && op->function == CPU_REDUCE_SCATTER && kind_of(op) >= 3;
}

static void fill_costs(const struct cpu_call *first, struct cpu_question *q) {
  const struct cpu_model *m = &first->comm->model;
  const bool is_f8 = first->op.type == ncclFloat8e4m3 || first->op.type == ncclFloat8e5m2;
  for (int a = 0; a < CPU_ALGORITHMS; a++) {
    for (int p = 0; p < CPU_PROTOCOLS; p++) {
      float *cost = &q->costs[a][p];
      *cost = -1;
      if (is_barred(&first->op, a)) continue;
      *cost = cpu_model_time(m, q->function, a, p, q->bytes, q->ops);
      if (is_f8 && a == CPU_RING && m->ranks > 8) *cost *= 1024; /* loses precision */
    }
  }
}

static bool covers(const struct cpu_call *call, const void *buffer, bool by_rank) {
  const size_t ranks = by_rank ? (size_t)call->comm->nranks : 1;
  return cpu_registered_covers(
    &call->comm->registered, buffer, call->op.count * dtype_size(call->op.type) * ranks);
}

static bool is_registered(const struct cpu_call *call) {
  const enum cpu_function f = call->op.function;
  if (covers(call, call->op.send, f == CPU_REDUCE_SCATTER) &&
      covers(call, call->op.recv, f == CPU_ALL_GATHER)) {
    return true;
  }
  return cpu_stream_is_capturing(call->stream) &&
         cpu_env_number("NCCL_GRAPH_REGISTER", 1) != 0;
}

/* A cell that was not available cannot become so: NCCL would run what it did not connect.
 */
static ncclResult_t ask_tuner(const struct cpu_call *first, struct cpu_question *q) {
  const struct cpu_question before = *q;
  q->is_registered = is_registered(first);
  ncclResult_t rc = cpu_tuner_ask(&first->comm->tuner, q);
  for (int a = 0; a < CPU_ALGORITHMS && !rc; a++) {
    for (int p = 0; p < CPU_PROTOCOLS && !rc; p++) {
      if (before.costs[a][p] >= 0 || !(q->costs[a][p] >= 0)) continue;
      rc = cpu_fail(ncclInvalidUsage,
                    "the tuner plugin made %s/%s available for %s, which it is not",
                    cpu_algorithm_names[a],
                    cpu_protocol_names[p],
                    cpu_function_names[q->function]);
    }
  }
  return rc;
}

static ncclResult_t fail_empty(const struct cpu_call *first) {
  const char *algorithms = getenv("NCCL_ALGO"), *protocols = getenv("NCCL_PROTO");
  return cpu_fail(
    algorithms || protocols ? ncclInvalidUsage : ncclInternalError,
    "Error : no algorithm/protocol available for function %s with datatype %s.%s%s%s%s%s%s",
    cpu_function_names[first->op.function],
    cpu_report_type(first->op.type),
    algorithms ? " NCCL_ALGO was set to " : "",
    algorithms ? algorithms : "",
    algorithms ? "." : "",
    protocols ? " NCCL_PROTO was set to " : "",
    protocols ? protocols : "",
    protocols ? "." : "");
}

/* The first of the cheapest. */
static ncclResult_t choose(const struct cpu_call *first, const struct cpu_question *q,
                           struct cpu_choice *choice) {
  float best = FOREVER_US;
  choice->algorithm = -1;
  for (int a = 0; a < CPU_ALGORITHMS; a++) {
    for (int p = 0; p < CPU_PROTOCOLS; p++) {
      if (!(q->costs[a][p] >= 0 && q->costs[a][p] < best)) continue;
      best = q->costs[a][p];
      choice->algorithm = a;
      choice->protocol = p;
    }
  }
  return choice->algorithm < 0 ? fail_empty(first) : ncclSuccess;
}

/* As many channels as have work for all their threads. */
static int count_channels(const struct cpu_model *m, const struct cpu_choice *c,
                          size_t bytes) {
  const size_t each = (size_t)m->max_threads[c->algorithm][c->protocol] *
                      (size_t)m->thresholds[c->algorithm][c->protocol];
  int channels = m->channels;
  while (channels > 1 && bytes < (size_t)channels * each) channels--;
  return channels;
}

static ncclResult_t choose_bundle(const struct bundle *b) {
  struct cpu_call *first = b->calls[0];
  struct cpu_question q = {.function = first->op.function, .ops = b->ops};
  struct cpu_choice choice = {0};
  for (size_t i = 0; i < b->count; i++) q.bytes += bytes_of(b->calls[i]);
  fill_costs(first, &q);
  ncclResult_t rc = first->comm->tuner.is_on ? ask_tuner(first, &q) : ncclSuccess;
  if (!rc) rc = choose(first, &q, &choice);
  if (rc) return rc;
  const struct cpu_model *m = &first->comm->model;
  const int most = q.channels > 0 ? q.channels : count_channels(m, &choice, q.bytes);
  for (size_t i = 0; i < b->count; i++) {
    struct cpu_call *call = b->calls[i];
    call->choice = choice;
    cpu_deal(&call->choice, &call->op, m->ranks, most, m->channels);
    cpu_report_choice(call);
  }
  return ncclSuccess;
}

static bool is_chosen_for(const struct cpu_call *call) {
  return call->op.function < CPU_MODELLED && call->op.count > 0 && call->comm->nranks > 1;
}

/* AllGather and Broadcast move bytes, whatever these are. */
static int type_of(const struct cpu_op *op) {
  const bool reduces = op->function != CPU_ALL_GATHER && op->function != CPU_BROADCAST;
  return reduces ? (int)op->type : -1;
}

/* By communicator, then by what runs the same kernel. */
static int compare_kinds(const struct cpu_call *a, const struct cpu_call *b) {
  if (a->comm != b->comm) return a->comm < b->comm ? -1 : 1;
  if (a->op.function != b->op.function) return a->op.function < b->op.function ? -1 : 1;
  if (type_of(&a->op) != type_of(&b->op)) return type_of(&a->op) - type_of(&b->op);
  return kind_of(&a->op) - kind_of(&b->op);
}

static int compare(const void *left, const void *right) {
  const struct cpu_call *a = *(struct cpu_call *const *)left;
  const struct cpu_call *b = *(struct cpu_call *const *)right;
  const int kinds = compare_kinds(a, b);
  if (kinds) return kinds;
  const size_t a_bytes = bytes_of(a), b_bytes = bytes_of(b);
  if (a_bytes != b_bytes) return a_bytes < b_bytes ? -1 : 1;
  return a < b ? -1 : a > b; /* the order of the calls */
}

/* How many from `calls` on are one bundle: of one kind, and not much larger. */
static size_t bundle_size(struct cpu_call **calls, size_t count) {
  const size_t limit = ALIKE * bytes_of(calls[0]);
  size_t n = 1;
  while (n < count && !compare_kinds(calls[0], calls[n]) && bytes_of(calls[n]) < limit) n++;
  return n;
}

static size_t count_of_comm(struct cpu_call **calls, size_t count) {
  size_t n = 1;
  while (n < count && calls[n]->comm == calls[0]->comm) n++;
  return n;
}

static ncclResult_t choose_comm(struct cpu_call **calls, size_t count) {
  const int channels = calls[0]->comm->model.channels;
  const int ops = (int)(count + (size_t)channels - 1) / channels;
  ncclResult_t rc = ncclSuccess;
  for (size_t at = 0; at < count && !rc;) {
    const size_t n = bundle_size(calls + at, count - at);
    rc = choose_bundle(&(struct bundle){calls + at, n, ops});
    at += n;
  }
  return rc;
}

static ncclResult_t choose_all(struct cpu_call **calls, size_t count) {
  ncclResult_t rc = ncclSuccess;
  qsort(calls, count, sizeof(struct cpu_call *), compare);
  for (size_t at = 0; at < count && !rc;) {
    const size_t n = count_of_comm(calls + at, count - at);
    rc = choose_comm(calls + at, n);
    at += n;
  }
  return rc;
}

/* Programs make the same few calls again and again, and a choice costs as much as a small
   call. Without a plugin it depends on nothing but this. */
struct cpu_recent {
  size_t count;
  int function, type, kind;
  struct cpu_choice choice; /* no channels: not filled */
};

enum { RECENT = 16 };

struct cpu_recent *cpu_select_recent(void) {
  return calloc(RECENT, sizeof(struct cpu_recent));
}

static bool is_of(const struct cpu_recent *r, const struct cpu_op *op) {
  return r->choice.channels && r->count == op->count && r->function == (int)op->function &&
         r->type == (int)op->type && r->kind == kind_of(op);
}

static ncclResult_t choose_one(struct cpu_call *call) {
  const struct cpu_op *op = &call->op;
  ncclComm_t comm = call->comm;
  if (!is_chosen_for(call)) return ncclSuccess;
  const bool remembers = comm->recent && !comm->tuner.is_on;
  const size_t place = (op->count * 31 + (size_t)op->function) * 0x9e3779b1u >> 16;
  struct cpu_recent *r = remembers ? &comm->recent[place % RECENT] : NULL;
  if (r && is_of(r, op)) {
    call->choice = r->choice;
    cpu_report_choice(call);
    return ncclSuccess;
  }
  ncclResult_t rc = choose_bundle(&(struct bundle){&call, 1, 1});
  if (r && !rc) {
    *r = (struct cpu_recent){
      op->count, (int)op->function, (int)op->type, kind_of(op), call->choice};
  }
  return rc;
}

ncclResult_t cpu_select(struct cpu_call *calls, size_t count) {
  if (count == 1) return choose_one(calls);
  struct cpu_call **chosen = malloc((count ? count : 1) * sizeof *chosen);
  if (!chosen) return cpu_fail(ncclSystemError, "out of memory");
  size_t n = 0;
  for (size_t i = 0; i < count; i++) {
    if (is_chosen_for(&calls[i])) chosen[n++] = &calls[i];
  }
  ncclResult_t rc = choose_all(chosen, n);
  free(chosen);
  return rc;
}
