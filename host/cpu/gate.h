#ifndef HOST_CPU_GATE_H
#define HOST_CPU_GATE_H

/* Waiting: spin briefly, then sleep on a futex. Two waits, both free of system calls while
   nobody sleeps: a number that only grows, and a bell. */

#include <stdbool.h>
#include <stdint.h>

struct cpu_gate {
  uint64_t value;  /* atomic */
  uint64_t wanted; /* atomic: the smallest value that a sleeper waits for */
  uint32_t epoch;  /* atomic: moves to wake the sleepers */
};

#define CPU_GATE_INIT ((struct cpu_gate){.wanted = UINT64_MAX})

uint64_t cpu_gate_value(const struct cpu_gate *gate);

/* Raises the value and wakes those who waited for it. One thread at a time. */
void cpu_gate_raise(struct cpu_gate *gate, uint64_t value);

/* Wakes all sleepers, who see the value unchanged and look around. */
void cpu_gate_disturb(struct cpu_gate *gate);

/* To look for a value: take the epoch, find that the value is not there (nor anything else
   that cpu_gate_disturb tells of), then sleep. Returns on any change, or early. */
uint32_t cpu_gate_epoch(const struct cpu_gate *gate);
void cpu_gate_sleep(struct cpu_gate *gate, uint64_t target, uint32_t epoch);

/* A futex: sleeps while *word == expected; timeout_ns 0 is none. May return early. */
void cpu_futex_wait(uint32_t *word, uint32_t expected, int64_t timeout_ns);
void cpu_futex_wake_all(uint32_t *word);

/* Spinning: one step, for which the processor is told that we wait. */
void cpu_relax(void);

/* How long to spin before sleeping: next to nothing where there is a single core. */
int64_t cpu_spin_ns(void);

/* CLOCK_MONOTONIC. */
int64_t cpu_now_ns(void);

#endif
