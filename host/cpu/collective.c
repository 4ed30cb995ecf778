#include "host/cpu/collective.h"
#include "host/cpu/traced_coll.h"
#include "host/dtype.h"

#define SLICE_MIN ((size_t)4 << 10)
#define SLICES_A_CHUNK 4

const struct cpu_algorithm *const cpu_algorithms[CPU_ALGORITHMS] = {
  [CPU_TREE] = &cpu_tree,
  [CPU_RING] = &cpu_ring,
};
const struct cpu_protocol *const cpu_protocols[CPU_PROTOCOLS] = {
  [CPU_SIMPLE] = &cpu_simple,
};

static void run_alone(const struct cpu_op *op, size_t element) {
  struct cpu_operands what = {
    .src = {op->send}, .dst = {op->recv}, .nsrc = 1, .ndst = 1, .pre = true, .post = true};
  cpu_redop_apply(&op->redop, &what, op->count, element);
}

static bool is_by_block(const struct cpu_op *op) {
  return op->function == CPU_ALL_GATHER || op->function == CPU_REDUCE_SCATTER;
}

/* A slice is what the next rank can start on. Several to a rank's share let the ranks work
   at the same time; too small ones cost more in counters than they gain. */
static size_t choose_slice(const struct ncclComm *comm, const struct cpu_op *op,
                           size_t bytes) {
  size_t most = comm->segment->slot_bytes;
  size_t share = is_by_block(op) ? bytes : bytes / (size_t)comm->nranks;
  size_t slice = share / SLICES_A_CHUNK / SLICE_MIN * SLICE_MIN;
  if (slice < SLICE_MIN) return SLICE_MIN;
  return slice < most ? slice : most;
}

static ncclResult_t run_channel(ncclComm_t comm, const struct cpu_op *op,
                                const struct cpu_choice *choice, int i) {
  const struct cpu_part part = cpu_choice_part(choice, i);
  const size_t element = dtype_size(op->type);
  const size_t slice = choose_slice(comm, op, part.count * element);
  struct cpu_course course = {choice->algorithm, choice->protocol, 0};
  struct cpu_primitives p = {
    .comm = comm,
    .channel = choice->first_channel + i,
    .op = op,
    .course = &course,
    .protocol = cpu_protocols[choice->protocol],
    .redop = &op->redop,
    .element = element,
    .slice_count = slice / element,
    .chunk_count = slice * SLICES_A_CHUNK / element,
  };
  cpu_algorithms[choice->algorithm]->run[op->function](&p, op, part);
  return p.rc;
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
  ncclResult_t rc = ncclSuccess;
  for (int i = 0; i < choice->channels && !rc; i++) {
    rc = run_channel(comm, &loaded, choice, i);
  }
  return rc;
}
