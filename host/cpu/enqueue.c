#include "host/cpu/enqueue.h"
#include "host/cpu/adversary.h"
#include "host/cpu/collective.h"
#include "host/cpu/comm.h"
#include "host/cpu/fail.h"
#include "host/cpu/order.h"
#include "host/dtype.h"

#include <stdlib.h>

struct collective {
  struct cpu_comm_task launch;
  struct cpu_op op;
  struct cpu_choice choice;
};

uint64_t cpu_enqueue_ticket(struct cpu_task *task) {
  return cpu_order_enter(((struct cpu_comm_task *)task)->comm);
}

/* NULL stands for the current device's default stream, but a communicator means its own
   device's, as in NCCL, which changes the device for the launch. */
static CUresult submit_to_default(CUdevice device, struct cpu_task *task) {
  CUcontext before, ctx;
  CUresult rc = cpu_device.ctx_get_current(&before);
  if (!rc) rc = cpu_device.primary_ctx_retain(&ctx, device);
  if (rc) {
    task->release(task);
    return rc;
  }
  cpu_device.ctx_set_current(ctx);
  rc = cpu_stream_submit(NULL, task);
  cpu_device.ctx_set_current(before);
  cpu_device.primary_ctx_release(device);
  return rc;
}

ncclResult_t cpu_enqueue_submit(CUdevice device, CUstream stream, struct cpu_task *task) {
  bool elsewhere = !stream && cpu_device_current() != device;
  CUresult rc =
    elsewhere ? submit_to_default(device, task) : cpu_stream_submit(stream, task);

  if (!rc) return ncclSuccess;
  return cpu_fail(ncclUnhandledCudaError, "the stream refuses the operation (%d)", rc);
}

void cpu_enqueue_complete(ncclComm_t comm, uint64_t number) {
  if (cpu_coll.completed) cpu_coll.completed(comm, number);
}

static void be_adverse(const struct collective *c) {
  cpu_adversary_spoil(c->launch.comm, &c->op);
  cpu_adversary_stagger(c->launch.comm);
}

static void run(struct cpu_task *task, uint64_t ticket) {
  struct collective *c = (struct collective *)task;
  ncclComm_t comm = c->launch.comm;
  /* After a failure the peers' slots are in no known state: nothing more is done. */
  if (cpu_order_begin(comm, ticket) && !atomic_load(&comm->async_error)) {
    if (cpu_adversary_hold_ns()) be_adverse(c);
    ncclResult_t rc = cpu_collective_run(comm, &c->op, &c->choice);
    if (rc)
      cpu_comm_set_error(comm, rc);
    else
      cpu_enqueue_complete(comm, c->op.number);
  }
  cpu_order_end(comm);
}

static void release(struct cpu_task *task) {
  cpu_comm_release(((struct cpu_comm_task *)task)->comm);
  free(task);
}

static void note_choice(const struct cpu_call *call) {
  const struct cpu_choice *c = &call->choice;
  call->comm->last = (struct coll_choice){(int)call->op.function,
                                          c->algorithm,
                                          c->protocol,
                                          c->channels,
                                          call->op.count * dtype_size(call->op.type)};
}

ncclResult_t cpu_enqueue_collective(const struct cpu_call *call) {
  if (cpu_adversary_hold_ns() && cpu_adversary_is_idle(call->comm, call->stream)) {
    cpu_adversary_spoil(call->comm, &call->op);
  }
  struct collective *c = malloc(sizeof *c);
  if (!c) return cpu_fail(ncclSystemError, "out of memory");
  note_choice(call);
  cpu_comm_retain(call->comm);
  *c = (struct collective){
    {{cpu_enqueue_ticket, run, release, 1}, call->comm}, call->op, call->choice};
  return cpu_enqueue_submit(call->comm->device, call->stream, &c->launch.task);
}
