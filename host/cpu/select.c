#include "host/cpu/select.h"
#include "host/cpu/fail.h"
#include "host/dtype.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TREE_BELOW ((size_t)32 << 10) /* its fewer steps beat the ring's less data */

static const char *const names[CPU_ALGORITHMS] = {
  "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};

static int find_algorithm(const char *name, size_t length) {
  for (int i = 0; i < CPU_ALGORITHMS; i++) {
    const char *known = names[i];
    if (strlen(known) == length && strncasecmp(name, known, length) == 0) return i;
  }
  return -1;
}

ncclResult_t cpu_select_configure(ncclComm_t comm) {
  const unsigned all = (1u << CPU_ALGORITHMS) - 1;
  const char *list = getenv("NCCL_ALGO");
  comm->algorithms = all;
  if (!list || !*list) return ncclSuccess;
  bool inverted = *list == '^';
  unsigned named = 0;
  for (const char *at = list + inverted; *at; at += *at == ',') {
    size_t length = strcspn(at, ",");
    int i = find_algorithm(at, length);
    if (i < 0) return cpu_fail(ncclInvalidUsage, "NCCL_ALGO=%s names no algorithm", list);
    named |= 1u << i;
    at += length;
  }
  comm->algorithms = inverted ? all & ~named : named;
  return ncclSuccess;
}

static size_t message_bytes(const struct cpu_op *op, const struct ncclComm *comm) {
  bool by_block = op->function == CPU_ALL_GATHER || op->function == CPU_REDUCE_SCATTER;
  return op->count * dtype_size(op->type) * (by_block ? (size_t)comm->nranks : 1);
}

static int choose_algorithm(const struct ncclComm *comm, const struct cpu_op *op) {
  int able[CPU_ALGORITHMS], count = 0;
  for (int i = 0; i < CPU_ALGORITHMS; i++) {
    const struct cpu_algorithm *a = cpu_algorithms[i];
    if (comm->algorithms >> i & 1 && a && a->run[op->function]) able[count++] = i;
  }
  if (count == 0) return -1;
  bool small = message_bytes(op, comm) < TREE_BELOW && comm->nranks > 2;
  return able[small ? 0 : count - 1]; /* Tree stands before Ring */
}

ncclResult_t cpu_select(ncclComm_t comm, const struct cpu_op *op,
                        struct cpu_choice *choice) {
  *choice = (struct cpu_choice){
    .algorithm = choose_algorithm(comm, op),
    .protocol = CPU_SIMPLE,
    .channels = 1,
    .low = op->count,
  };
  if (choice->algorithm >= 0) return ncclSuccess;
  return cpu_fail(ncclInvalidUsage, "NCCL_ALGO leaves no algorithm for this function");
}
