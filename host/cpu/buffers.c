#include "host/cpu/buffers.h"
#include "host/cpu/env.h"

#define PAGE ((size_t)4096)
#define SMALLEST PAGE
#define LARGEST ((size_t)64 << 20)

/* Where NCCL has 512 KiB, 4.7 MiB and 4 MiB for a GPU's memory, these fit a core's caches:
   docs/measurements/cpu-allreduce.md. A slot is whole lines of any protocol. */
enum { UNIT = 128 };
static const struct {
  const char *variable;
  size_t bytes;
} defaults[CPU_PROTOCOLS] = {
  [CPU_LL] = {"NCCL_LL_BUFFSIZE", (size_t)512 << 10},
  [CPU_LL128] = {"NCCL_LL128_BUFFSIZE", (size_t)512 << 10},
  [CPU_SIMPLE] = {"NCCL_BUFFSIZE", (size_t)1 << 20},
};

static size_t find_bytes(int protocol) {
  const int64_t wanted = cpu_env_number(defaults[protocol].variable, 0);
  if (wanted < (int64_t)SMALLEST) return defaults[protocol].bytes;
  return (size_t)wanted < LARGEST ? (size_t)wanted : LARGEST;
}

struct cpu_buffers cpu_buffers_plan(enum cpu_link_kind kind) {
  struct cpu_buffers b = {.bytes = 0};
  for (int p = 0; p < CPU_PROTOCOLS; p++) {
    if (kind == CPU_LINK_P2P && p != CPU_SIMPLE) continue;
    b.slot_bytes[p] = find_bytes(p) / CPU_STEPS / UNIT * UNIT;
    b.offset[p] = b.bytes;
    b.bytes += (b.slot_bytes[p] * CPU_STEPS + PAGE - 1) / PAGE * PAGE;
  }
  return b;
}
