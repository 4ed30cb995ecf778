#ifndef HOST_CPU_FIFO_H
#define HOST_CPU_FIFO_H

/* Items in blocks that never move: one thread at a time appends and one at a time takes,
   without a lock between the two. That there is an item to take, the taker must know. */

#include <stdbool.h>
#include <stdint.h>

/* `run` gets back `what` and `number`. */
struct cpu_item {
  void (*run)(void *what, uint64_t number);
  void *what;
  uint64_t number;
};

struct cpu_block;

struct cpu_fifo {
  struct cpu_block *first; /* the taker's */
  unsigned taken;          /* the taker's: items of `first` that are done with */
  unsigned filled;         /* the appender's: items in `last` */
  struct cpu_block *last;  /* the appender's */
  struct cpu_block *spare; /* atomic: a used block to use again */
};

/* False if memory is short. */
bool cpu_fifo_init(struct cpu_fifo *fifo);
void cpu_fifo_free(struct cpu_fifo *fifo);

/* Makes room for one item; false if memory is short. */
bool cpu_fifo_reserve(struct cpu_fifo *fifo);
void cpu_fifo_append(struct cpu_fifo *fifo, struct cpu_item item);

struct cpu_item cpu_fifo_take(struct cpu_fifo *fifo);

#endif
