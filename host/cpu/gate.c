#include "host/cpu/gate.h"

#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int64_t cpu_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

int64_t cpu_spin_ns(void) {
  static int64_t spin; /* atomic; two threads compute the same */
  int64_t known = __atomic_load_n(&spin, __ATOMIC_RELAXED);
  if (known) return known;
  cpu_set_t cpus;
  const int cores = sched_getaffinity(0, sizeof cpus, &cpus) ? 1 : CPU_COUNT(&cpus);
  known = cores == 1 ? 1 : cores < 4 ? 5000 : 20000;
  __atomic_store_n(&spin, known, __ATOMIC_RELAXED);
  return known;
}

void cpu_futex_wait(uint32_t *word, uint32_t expected, int64_t timeout_ns) {
  const struct timespec limit = {timeout_ns / 1000000000, timeout_ns % 1000000000};
  syscall(
    SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ns ? &limit : NULL, NULL, 0);
}

void cpu_futex_wake_all(uint32_t *word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0);
}

uint64_t cpu_gate_value(const struct cpu_gate *gate) {
  return __atomic_load_n(&gate->value, __ATOMIC_SEQ_CST);
}

uint32_t cpu_gate_epoch(const struct cpu_gate *gate) {
  return __atomic_load_n(&gate->epoch, __ATOMIC_SEQ_CST);
}

/* `wanted` is forgotten before the epoch moves: a sleeper who registers in between sees the
   new epoch, does not sleep and registers again. */
void cpu_gate_disturb(struct cpu_gate *gate) {
  if (__atomic_load_n(&gate->wanted, __ATOMIC_SEQ_CST) == UINT64_MAX) return;
  __atomic_store_n(&gate->wanted, UINT64_MAX, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&gate->epoch, 1, __ATOMIC_SEQ_CST);
  cpu_futex_wake_all(&gate->epoch);
}

void cpu_gate_raise(struct cpu_gate *gate, uint64_t value) {
  __atomic_store_n(&gate->value, value, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&gate->wanted, __ATOMIC_SEQ_CST) <= value) cpu_gate_disturb(gate);
}

void cpu_gate_sleep(struct cpu_gate *gate, uint64_t target, uint32_t epoch) {
  uint64_t wanted = __atomic_load_n(&gate->wanted, __ATOMIC_SEQ_CST);
  while (target < wanted) {
    if (__atomic_compare_exchange_n(
          &gate->wanted, &wanted, target, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
      break;
    }
  }
  /* Registered first, looked second: a writer does it the other way round. */
  if (cpu_gate_value(gate) >= target) return;
  cpu_futex_wait(&gate->epoch, epoch, 0);
}
