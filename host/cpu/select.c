#include "host/cpu/select.h"
#include "host/cpu/fail.h"
#include "host/dtype.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TREE_BELOW                                                                         \
  ((size_t)32 << 10) /* where its fewer steps beat the ring's less data                    \
                      */
#define SLICE_MIN ((size_t)4 << 10)
#define SLICES_A_CHUNK 4
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* By NCCL's numbers; NULL: only a GPU or a switch can do it. */
static const struct {
  const char *name;
  const struct cpu_algorithm *algorithm;
} algorithms[] = {
  {"Tree", &cpu_tree},
  {"Ring", &cpu_ring},
  {"CollNetDirect", NULL},
  {"CollNetChain", NULL},
  {"NVLS", NULL},
  {"NVLSTree", NULL},
  {"PAT", NULL},
};

static int find_algorithm(const char *name, size_t length) {
  for (int i = 0; i < (int)COUNT(algorithms); i++) {
    const char *known = algorithms[i].name;
    if (strlen(known) == length && strncasecmp(name, known, length) == 0) return i;
  }
  return -1;
}

ncclResult_t cpu_select_configure(ncclComm_t comm) {
  const unsigned all = (1u << COUNT(algorithms)) - 1;
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

/* A slice is what the next rank can start on. Several to a rank's share let the ranks work
   at the same time; too small ones cost more in counters than they gain. */
static size_t choose_slice(const struct ncclComm *comm, size_t bytes) {
  size_t most = comm->segment->slot_bytes;
  size_t slice = bytes / (size_t)comm->nranks / SLICES_A_CHUNK;
  slice = slice / SLICE_MIN * SLICE_MIN;
  if (slice < SLICE_MIN) return SLICE_MIN;
  return slice < most ? slice : most;
}

static const struct cpu_algorithm *choose_algorithm(const struct ncclComm *comm,
                                                    const struct cpu_op *op) {
  const struct cpu_algorithm *able[COUNT(algorithms)];
  int count = 0;
  for (size_t i = 0; i < COUNT(algorithms); i++) {
    const struct cpu_algorithm *a = algorithms[i].algorithm;
    if (comm->algorithms >> i & 1 && a && a->run[op->function]) able[count++] = a;
  }
  if (count == 0) return NULL;
  bool small = message_bytes(op, comm) < TREE_BELOW && comm->nranks > 2;
  return able[small ? 0 : count - 1]; /* Tree stands before Ring */
}

ncclResult_t cpu_select(ncclComm_t comm, const struct cpu_op *op,
                        struct cpu_choice *choice) {
  size_t slice = choose_slice(comm, message_bytes(op, comm));
  *choice = (struct cpu_choice){
    .algorithm = choose_algorithm(comm, op),
    .protocol = &cpu_simple,
    .channels = 1,
    .slice_bytes = slice,
    .chunk_bytes = slice * SLICES_A_CHUNK,
  };
  if (choice->algorithm) return ncclSuccess;
  return cpu_fail(ncclInvalidUsage, "NCCL_ALGO leaves no algorithm for this function");
}
