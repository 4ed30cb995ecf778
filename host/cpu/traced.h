#ifndef HOST_CPU_TRACED_H
#define HOST_CPU_TRACED_H

/* What streams do, for whoever looks (device_api.traced). A task says itself what it is
   while it runs; if nobody looks, that is one test. */

#include "host/cpu/stream.h"

/* Is there a reader? Tasks enqueued from now on are traced. */
bool cpu_traced_is_on(void);

/* The task that the calling thread is running: a kernel, a copy (enum traced_copy), a fill.
   `call` is what the API call is named; both texts are static, or copied. */
void cpu_traced_kernel(const char *call, const char *name, unsigned channels,
                       unsigned threads);
void cpu_traced_copy(const char *call, int kind, size_t bytes);
void cpu_traced_set(const char *call, uint64_t value, size_t bytes);

/* A task on its way through a queue: `run` is called instead of the task's own. */
struct cpu_traced;

/* Owns the caller's reference of the task; NULL if memory is short. */
struct cpu_traced *cpu_traced_new(struct cpu_task *task, CUdevice device, uint32_t stream);
void cpu_traced_enqueued(struct cpu_traced *traced);
void cpu_traced_run(void *traced, uint64_t ticket);

/* Whatever this thread enqueues in between belongs to one launch of a graph. */
void cpu_traced_launch_begin(void);
void cpu_traced_launch_end(CUdevice device);

/* A copy that the calling thread has made itself, since `start_ns`. */
void cpu_traced_copied(const char *call, int kind, size_t bytes, CUdevice device,
                       int64_t start_ns);

#endif
