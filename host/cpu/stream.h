#ifndef HOST_CPU_STREAM_H
#define HOST_CPU_STREAM_H

/* Streams of the CPU backend: a queue of tasks and a worker thread that runs them in
   order. A thread that synchronises a stream may run its queue itself. */

#include "host/backend.h"

/* Work on a stream. The same task runs again for each launch of a graph that holds it. */
struct cpu_task {
  /* On the enqueueing thread, at each enqueue or graph launch (not at capture): takes the
     task's place in an order beyond the stream, such as a communicator's. May be NULL. */
  uint64_t (*enter)(struct cpu_task *task);
  /* On the stream's worker; `ticket` is what enter returned. May block. */
  void (*run)(struct cpu_task *task, uint64_t ticket);
  /* The last reference is gone. */
  void (*release)(struct cpu_task *task);
  int references; /* atomic; cpu_stream_submit takes over the caller's one */
};

/* Enqueues, or adds to the graph if the stream is capturing. NULL is the current device's
   default stream. On failure the task has been released. */
CUresult cpu_stream_submit(CUstream stream, struct cpu_task *task);

/* Does the pointer stand for a stream of this device? NULL does. */
bool cpu_stream_is_on(CUstream stream, CUdevice device);

/* Is what is enqueued kept in a graph? */
bool cpu_stream_is_capturing(CUstream stream);

/* The calling thread's current device, -1 if no context is current. */
CUdevice cpu_device_current(void);

#endif
