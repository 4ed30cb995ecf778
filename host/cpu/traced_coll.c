#include "host/cpu/traced_coll.h"

#include "host/cpu/traced.h"
#include "host/dtype.h"

#include <stdio.h>

/* By NCCL's numbers, as its kernels have them. */
static const char *const functions[] = {
  "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};
static const char *const algorithms[CPU_ALGORITHMS] = {
  [CPU_TREE] = "TREE", [CPU_RING] = "RING"};
static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};
static const char *const redops[] = {"Sum", "Prod", "Max", "Min"};

/* NCCL's names for a premultiplied and for a divided sum. */
static const char *redop_name(const struct cpu_redop *redop) {
  if (redop->pre_multiply) return "PreMulSum";
  return redop->post_divide ? "SumPostDiv" : redops[redop->base];
}

void cpu_traced_collective(const struct cpu_op *op, const struct cpu_choice *choice) {
  char call[32], name[96], reduction[32] = "";
  const char *algorithm = choice ? algorithms[choice->algorithm] : "RING";
  const char *protocol = choice ? protocols[choice->protocol] : "LL";
  if (!cpu_traced_is_on()) return;
  const bool reduces = op->function == CPU_REDUCE || op->function == CPU_REDUCE_SCATTER ||
                       op->function == CPU_ALL_REDUCE;
  if (reduces) {
    snprintf(
      reduction, sizeof reduction, "_%s_%s", redop_name(&op->redop), dtype_names[op->type]);
  }
  snprintf(call, sizeof call, "nccl%s", functions[op->function]);
  snprintf(name,
           sizeof name,
           "ncclDevKernel_%s%s_%s_%s",
           functions[op->function],
           reduction,
           algorithm,
           protocol);
  cpu_traced_kernel(call, name, choice ? (unsigned)choice->channels : 1, 1);
}

void cpu_traced_messages(size_t count) {
  cpu_traced_kernel("ncclGroupEnd", "ncclDevKernel_SendRecv", (unsigned)count, 1);
}
