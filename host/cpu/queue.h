#ifndef HOST_CPU_QUEUE_H
#define HOST_CPU_QUEUE_H

/* The queue under a stream: items run in order, one at a time, by a worker thread or by a
   thread that waits for them. All functions may be called from any thread. */

#include "host/cpu/fifo.h"
#include "host/cpu/stream.h"

struct cpu_queue;

/* A place in a queue, reached when that many of its items are complete. */
struct cpu_point {
  struct cpu_queue *queue; /* a reference is held by whoever stores a point */
  uint64_t number;
};

/* NULL if memory is short. `is_blocking`: in step with its device's default stream. */
struct cpu_queue *cpu_queue_new(CUdevice device, bool is_blocking);

/* The last item runs all the same; then the worker ends. */
void cpu_queue_close(struct cpu_queue *queue);

struct cpu_queue *cpu_queue_retain(struct cpu_queue *queue);
void cpu_queue_release(struct cpu_queue *queue);

/* Appends; out of memory is the only failure. `number`, if not NULL, becomes the place that
   is reached once the item is complete. */
CUresult cpu_queue_push(struct cpu_queue *queue, struct cpu_item item, uint64_t *number);

/* Appends a task, whose `enter` is called in the queue's order; owns one reference. */
CUresult cpu_queue_submit(struct cpu_queue *queue, struct cpu_task *task, uint64_t *number);

/* Appends: later items wait for the point. No item where the wait would be for nothing. */
CUresult cpu_queue_wait(struct cpu_queue *queue, struct cpu_point point);

/* The place after everything that is in the queue by now. */
uint64_t cpu_queue_end(const struct cpu_queue *queue);
bool cpu_queue_reached(const struct cpu_queue *queue, uint64_t number);

/* Waits for the place, running the items before it where nobody does so yet. */
void cpu_queue_drive(struct cpu_queue *queue, uint64_t number);

/* Has the worker begin now: for a caller that polls, or that will wait elsewhere. */
void cpu_queue_nudge(struct cpu_queue *queue);

/* The ends of a device's (-1: all) queues that are not reached yet, of the blocking ones or
   all: how many; *points is the caller's (cpu_points_free). -1 if memory is short. */
int cpu_queue_pending(CUdevice device, bool blocking_only, struct cpu_point **points);
void cpu_points_free(struct cpu_point *points, int count);

void cpu_task_retain(struct cpu_task *task);
void cpu_task_release(struct cpu_task *task);

#endif
