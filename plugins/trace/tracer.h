#ifndef PLUGINS_TRACE_TRACER_H
#define PLUGINS_TRACE_TRACER_H

/* The trace of this process: one, whoever asks first, be it CUDA's injection, NVTX's,
   NCCL's profiler interface, or a host that has opened the plugin itself (trace.h). */

#include "plugins/trace/writer.h"

/* The running trace's writer, NULL if there is none. The first call starts one if
   NCLUA_TRACE_FILE is set; a failure is said on stderr, once. */
struct writer *tracer_writer(void);

/* The one that runs, if any: starts nothing. */
struct writer *tracer_current(void);

/* Starts the trace into `path` (%h, %p). NULL with the reason in `why`. */
struct writer *tracer_start(const char *path, char *why, size_t size);

/* Ends it; "" in `why` if all was written. Nothing if none runs. */
void tracer_stop(char *why, size_t size);

/* Says something on stderr and, where a trace runs, in it. */
void tracer_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Now, as a row has it. */
int64_t tracer_time(const struct writer *writer);

/* A range of the calling thread, as nvtxRangePush and Pop: nvtx.c. The text is copied. */
void nvtx_push(const char *text);
void nvtx_pop(void);

/* What CUPTI adds to a running trace: inject.c. -1 with the reason in `why`. */
int inject_start(struct writer *writer, char *why, size_t size);
void inject_stop(void);
void inject_decode(void *context, struct store *store, const uint8_t *data, size_t bytes);
void inject_tick(void *context, struct store *store);
void inject_after_fork(void);

#endif
