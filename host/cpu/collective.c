#include "host/cpu/collective.h"
#include "host/cpu/select.h"
#include "host/dtype.h"

static void run_alone(const struct cpu_op *op, size_t element) {
  struct cpu_operands what = {
    .src = {op->send}, .dst = {op->recv}, .nsrc = 1, .ndst = 1, .pre = true, .post = true};
  cpu_redop_apply(&op->redop, &what, op->count, element);
}

ncclResult_t cpu_collective_run(ncclComm_t comm, const struct cpu_op *op) {
  struct cpu_op loaded = *op;
  struct cpu_choice choice;
  size_t element = dtype_size(op->type);
  cpu_redop_load(&loaded.redop); /* now: earlier work in the stream may have written it */
  if (op->count == 0) return ncclSuccess;
  if (comm->nranks == 1) {
    run_alone(&loaded, element);
    return ncclSuccess;
  }
  ncclResult_t rc = cpu_select(comm, op, &choice);
  if (rc) return rc;
  struct cpu_primitives p = {
    .comm = comm,
    .protocol = choice.protocol,
    .redop = &loaded.redop,
    .element = element,
    .slice_count = choice.slice_bytes / element,
    .chunk_count = choice.chunk_bytes / element,
  };
  choice.algorithm->run[op->function](&p, &loaded, (struct cpu_part){0, op->count});
  return p.rc;
}
