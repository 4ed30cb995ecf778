#include "host/cpu/adversary.h"
#include "host/cpu/capture.h"
#include "host/cpu/comm.h"
#include "host/dtype.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOLD_MS 50
#define STAGGER_NS 200000

/* What nobody takes for a result: NaN in every float type, and an odd number. */
#define RUBBISH_FLOAT 0xff
#define RUBBISH 0xa5

int64_t cpu_adversary_hold_ns(void) {
  static _Atomic int64_t known = -1;
  int64_t ns = atomic_load_explicit(&known, memory_order_relaxed);
  if (ns >= 0) return ns;
  const char *text = getenv("NCLUA_CPU_ADVERSARY");
  long ms = text ? strtol(text, NULL, 10) : 0;
  if (ms < 0 || ms > 60000) ms = 0;
  ns = (ms == 1 ? HOLD_MS : ms) * 1000000;
  atomic_store(&known, ns);
  return ns;
}

bool cpu_adversary_is_idle(ncclComm_t comm, CUstream stream) {
  struct cpu_stream *s;
  struct cpu_point *points;
  if (cpu_comm_is_aborted(comm) || cpu_stream_find(stream, &s) || cpu_is_capturing(s))
    return false;
  int count = cpu_queue_pending(-1, false, &points);
  if (count >= 0) cpu_points_free(points, count);
  return count == 0;
}

static bool overlaps(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
  return a && b && a < b + b_bytes && b < a + a_bytes;
}

void cpu_adversary_spoil(ncclComm_t comm, const struct cpu_op *op) {
  size_t n = (size_t)comm->nranks, bytes = op->count * dtype_size(op->type);
  size_t in = op->function == CPU_REDUCE_SCATTER ? n * bytes : bytes;
  size_t out = op->function == CPU_ALL_GATHER ? n * bytes : bytes;
  bool receives = op->function != CPU_REDUCE || op->root == comm->rank;
  if (!receives || !op->recv || overlaps(op->send, in, op->recv, out)) return;
  memset(op->recv, dtype_is_float(op->type) ? RUBBISH_FLOAT : RUBBISH, out);
}

static bool is_sent(const struct cpu_message *received, const struct cpu_message *messages,
                    size_t count) {
  for (size_t i = 0; i < count; i++) {
    const struct cpu_message *m = &messages[i];
    if (m->is_send && overlaps(m->buffer, m->bytes, received->buffer, received->bytes)) {
      return true;
    }
  }
  return false;
}

void cpu_adversary_spoil_messages(const struct cpu_message *messages, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const struct cpu_message *m = &messages[i];
    if (m->is_send || !m->bytes || is_sent(m, messages, count)) continue;
    memset(m->buffer, RUBBISH_FLOAT, m->bytes);
  }
}

void cpu_adversary_stagger(ncclComm_t comm) {
  int64_t ns = (int64_t)comm->rank * STAGGER_NS;
  nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}
