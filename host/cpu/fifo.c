#include "host/cpu/fifo.h"

#include <stdlib.h>

enum { BLOCK_ITEMS = 170 }; /* a block is a page */

struct cpu_block {
  struct cpu_block *next;
  struct cpu_item items[BLOCK_ITEMS];
};

bool cpu_fifo_init(struct cpu_fifo *f) {
  struct cpu_block *block = malloc(sizeof *block);
  *f = (struct cpu_fifo){.first = block, .last = block};
  return block;
}

void cpu_fifo_free(struct cpu_fifo *f) {
  while (f->first != f->last) {
    struct cpu_block *block = f->first;
    f->first = block->next;
    free(block);
  }
  free(f->last);
  free(f->spare);
}

bool cpu_fifo_reserve(struct cpu_fifo *f) {
  if (f->filled < BLOCK_ITEMS) return true;
  struct cpu_block *block = __atomic_exchange_n(&f->spare, NULL, __ATOMIC_ACQ_REL);
  if (!block) block = malloc(sizeof *block);
  if (!block) return false;
  f->last->next = block;
  f->last = block;
  f->filled = 0;
  return true;
}

void cpu_fifo_append(struct cpu_fifo *f, struct cpu_item item) {
  f->last->items[f->filled++] = item;
}

struct cpu_item cpu_fifo_take(struct cpu_fifo *f) {
  if (f->taken == BLOCK_ITEMS) {
    struct cpu_block *old = f->first;
    f->first = old->next;
    f->taken = 0;
    free(__atomic_exchange_n(&f->spare, old, __ATOMIC_ACQ_REL));
  }
  return f->first->items[f->taken++];
}
