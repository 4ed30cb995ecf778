#include "host/cpu/report.h"
#include "host/cpu/comm.h"
#include "host/cpu/device.h"
#include "host/cpu/log.h"
#include "host/cpu/report_model.h"
#include "host/cpu/unique_id.h"
#include "host/dtype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *cpu_report_type(ncclDataType_t type) {
  static const char *const names[ncclNumTypes] = {"ncclInt8",
                                                  "ncclUint8",
                                                  "ncclInt32",
                                                  "ncclUint32",
                                                  "ncclInt64",
                                                  "ncclUint64",
                                                  "ncclFloat16",
                                                  "ncclFloat32",
                                                  "ncclFloat64",
                                                  "ncclBfloat16",
                                                  "ncclFloat8e4m3",
                                                  "ncclFloat8e5m2"};
  return (unsigned)type < ncclNumTypes ? names[type] : "Unknown";
}

/* "0000:0A:00.0" is 0xa00 in NCCL's way of writing it. */
static unsigned long bus_id(CUdevice device) {
  char text[32] = "", digits[32];
  size_t length = 0;
  cpu_device_get_pci_bus_id(text, sizeof text, device);
  for (const char *c = text; *c; c++) {
    if (*c != ':' && *c != '.') digits[length++] = *c;
  }
  digits[length] = 0;
  return strtoul(digits, NULL, 16);
}

/* "ncclCommInitRank comm 0x... rank 0 nranks 2 ... - Init START" */
static void report_birth(ncclComm_t c, const struct cpu_job *job, bool is_complete) {
  char who[200];
  if (!cpu_log_is_on(CPU_LOG_INIT)) return;
  snprintf(who,
           sizeof who,
           "%s comm %p rank %d nranks %d cudaDev %d nvmlDev %d busId %lx",
           job->api,
           (void *)c,
           c->rank,
           c->nranks,
           c->device,
           c->device,
           bus_id(c->device));
  const char *state = is_complete ? "COMPLETE" : "START";
  if (!job->parent) {
    const unsigned long long id = cpu_unique_id_hash(&c->id);
    cpu_log(CPU_LOG_INIT, "%s commId 0x%llx - Init %s", who, id, state);
    return;
  }
  cpu_log(
    CPU_LOG_INIT,
    "%s parent %p splitCount %u color %d key %d%s- Init %s", /* NCCL's lack of a space */
    who,
    (void *)job->parent,
    job->parent->splits,
    job->color,
    job->key,
    is_complete ? " " : "",
    state);
}

void cpu_report_start(ncclComm_t comm, const struct cpu_job *job) {
  report_birth(comm, job, false);
}

void cpu_report_complete(ncclComm_t comm, const struct cpu_job *job) {
  report_birth(comm, job, true);
}

void cpu_report_abort(ncclComm_t c) {
  if (!cpu_log_is_on(CPU_LOG_INIT)) return;
  cpu_log(CPU_LOG_INIT,
          "comm %p rank %d nRanks %d cudaDev %d busId %lx - Abort START",
          (void *)c,
          c->rank,
          c->nranks,
          c->device,
          bus_id(c->device));
}

void cpu_report_end(ncclComm_t c, bool is_aborted) {
  if (!cpu_log_is_on(CPU_LOG_INIT)) return;
  cpu_log(CPU_LOG_INIT,
          "comm %p rank %d nranks %d cudaDev %d busId %lx - %s COMPLETE",
          (void *)c,
          c->rank,
          c->nranks,
          c->device,
          bus_id(c->device),
          is_aborted ? "Abort" : "Destroy");
}

/* One graph and its channels, each a line: the ranks' devices in their order. Ranks meet in
   memory, as NCCL's do across a host bridge. */
static void report_pattern(ncclComm_t c, int pattern, int algorithm) {
  const float bandwidth = c->model.graph_bw[algorithm];
  cpu_log(CPU_LOG_GRAPH,
          "Pattern %d, crossNic 0, nChannels %d, bw %f/%f, type PHB/PHB, sameChannels 1",
          pattern,
          c->model.channels,
          (double)bandwidth,
          (double)bandwidth);
  for (int channel = 0; channel < c->model.channels; channel++) {
    char line[1024];
    size_t length = (size_t)snprintf(line, sizeof line, "%2d :", channel);
    for (int r = 0; r < c->nranks && length < sizeof line; r++) {
      const int rank = cpu_ring_rank(c->nranks, channel, r);
      length += (size_t)snprintf(line + length,
                                 sizeof line - length,
                                 " GPU/0-%lx",
                                 bus_id(c->segment->ranks[rank].device));
    }
    cpu_log(CPU_LOG_GRAPH, "%s", line);
  }
}

/* "Trees [0] 1/-1/-1->0->-1", children, rank, parent, for each channel */
static void report_trees(ncclComm_t c) {
  char line[1024] = "";
  size_t length = 0;
  for (int channel = 0; channel < c->model.channels; channel++) {
    const struct cpu_tree_place t = cpu_tree_find(c->nranks, c->rank, channel);
    cpu_log(CPU_LOG_GRAPH,
            "Tree %d : %d -> %d -> %d/%d/-1",
            channel,
            t.up,
            c->rank,
            t.down[0],
            t.down[1]);
    if (length >= sizeof line) continue;
    length += (size_t)snprintf(line + length,
                               sizeof line - length,
                               " [%d] %d/%d/-1->%d->%d",
                               channel,
                               t.down[0],
                               t.down[1],
                               c->rank,
                               t.up);
  }
  cpu_log(CPU_LOG_INIT, "Trees%s", line);
}

/* "Channel 00/02 : 0 1 2 3": rank 0 only, and not longer than NCCL's. */
static void report_orders(ncclComm_t c) {
  enum { MOST = 127 };
  const int width = snprintf(NULL, 0, "%d", c->nranks - 1);
  for (int channel = 0; channel < c->model.channels && c->rank == 0; channel++) {
    char line[MOST + 64];
    int length =
      snprintf(line, sizeof line, "Channel %02d/%02d :", channel, c->model.channels);
    for (int r = 0; r < c->nranks && length < MOST; r++) {
      const int rank = cpu_ring_rank(c->nranks, channel, r);
      length += snprintf(line + length, sizeof line - (size_t)length, " %*d", width, rank);
    }
    if (length >= MOST) strcpy(line + MOST - 3, "...");
    cpu_log(CPU_LOG_INIT, "%s", line);
  }
}

/* The neighbour `distance` places on in a channel's ring. */
static int find_neighbour(ncclComm_t c, int channel, int distance) {
  int place = 0;
  while (cpu_ring_rank(c->nranks, channel, place) != c->rank) place++;
  return cpu_ring_rank(c->nranks, channel, place + distance);
}

static void report_rings(ncclComm_t c) {
  const struct cpu_rank *ranks = c->segment->ranks;
  for (int channel = 0; channel < c->model.channels; channel++) {
    cpu_log(CPU_LOG_GRAPH,
            "Ring %02d : %d -> %d -> %d",
            channel,
            find_neighbour(c, channel, -1),
            c->rank,
            find_neighbour(c, channel, 1));
  }
  for (int channel = 0; channel < c->model.channels && c->nranks > 1; channel++) {
    const int next = find_neighbour(c, channel, 1);
    cpu_log(CPU_LOG_INIT | CPU_LOG_SHM,
            "Channel %02d : %d[%d] -> %d[%d] via SHM/direct/direct",
            channel,
            c->rank,
            c->device,
            next,
            ranks[next].device);
  }
}

void cpu_report_graphs(ncclComm_t c) {
  if (!cpu_log_is_on(CPU_LOG_INIT | CPU_LOG_GRAPH)) return;
  report_pattern(c, 4, CPU_RING);
  report_pattern(c, 3, CPU_TREE);
  cpu_log(CPU_LOG_INIT,
          "comm %p rank %d nRanks %d nNodes 1 localRanks %d localRank %d MNNVL 0",
          (void *)c,
          c->rank,
          c->nranks,
          c->nranks,
          c->rank);
  report_orders(c);
  report_rings(c);
  report_trees(c);
  cpu_log(CPU_LOG_INIT,
          "P2P Chunksize set to %d",
          (int)c->segment->buffers[CPU_LINK_P2P].slot_bytes[CPU_SIMPLE]);
}

void cpu_report_model(ncclComm_t c) {
  const struct cpu_model *m = &c->model;
  if (c->nranks > 1) {
    if (c->rank == 0 && m->enabled.is_set) cpu_report_matrix(&m->enabled);
    if (c->rank == 0) cpu_report_table(m);
    cpu_report_thresholds(m);
  }
  cpu_log(CPU_LOG_INIT,
          "%d coll channels, %d collnet channels, 0 nvls channels, 1 p2p channels, 1 p2p "
          "channels per peer",
          m->channels,
          m->channels);
  if (c->nranks == 1) return;
  cpu_log(CPU_LOG_INIT, "Connected all rings, use ring PXN 0 GDR 0");
  cpu_log(CPU_LOG_INIT, "Connected all trees");
}

/* As NCCL prints them, a send's buffer is in the second place. */
void cpu_report_call(const struct cpu_call *call, ncclRedOp_t op) {
  const struct cpu_op *o = &call->op;
  if (!cpu_log_is_on(CPU_LOG_COLL)) return;
  const bool is_send = o->function == CPU_SEND_TO;
  cpu_log(
    CPU_LOG_COLL,
    "%s: opCount %lx sendbuff %p recvbuff %p count %zu datatype %d op %d root %d comm "
    "%p [nranks=%d] stream %p",
    cpu_function_names[o->function],
    (unsigned long)o->number,
    is_send ? NULL : o->send,
    is_send ? o->send : o->recv,
    o->count,
    (int)o->type,
    op,
    o->root,
    (void *)call->comm,
    call->comm->nranks,
    (void *)call->stream);
}

void cpu_report_choice(const struct cpu_call *call) {
  static const char *const algorithms[CPU_ALGORITHMS] = {
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
  static const char *const protocols[CPU_PROTOCOLS] = {"LL", "LL128", "SIMPLE"};
  const struct cpu_choice *c = &call->choice;
  if (call->comm->rank != 0 || !cpu_log_is_on(CPU_LOG_TUNING)) return;
  cpu_log(CPU_LOG_TUNING,
          "%s: %ld Bytes -> Algo %s proto %s channel{Lo..Hi}={%d..%d}",
          cpu_function_names[call->op.function],
          (long)(call->op.count * dtype_size(call->op.type)),
          algorithms[c->algorithm],
          protocols[c->protocol],
          c->first_channel,
          c->first_channel + c->channels - 1);
}
