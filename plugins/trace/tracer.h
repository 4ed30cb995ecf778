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

/* The same, the name made by session_name from `pattern`, ended when the process exits. */
struct writer *tracer_start_named(const char *pattern, char *why, size_t size);

/* Has the process's end end the trace. Handlers run in reverse order: whoever opens a
   library that has one calls this again, since that library is still needed then. */
void tracer_stop_at_exit(void);

/* Ends it; "" in `why` if all was written. Nothing if none runs. */
void tracer_stop(char *why, size_t size);

/* Says something on stderr and, where a trace runs, in it. */
void tracer_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Now, as a row has it. */
int64_t tracer_time(const struct writer *writer);

/* A source of records that fills buffers of the writer's: CUPTI. */
struct tracer_source {
  void (*decode)(struct store *store, const uint8_t *data, size_t bytes);
  void (*tick)(struct store *store); /* see writer_options */
  void (*stop)(void);                /* before the writer ends: what it still holds, now */
  void (*after_fork)(void);          /* in the child */
};

/* Before the source gives its first buffer; at most one. */
void tracer_connect(const struct tracer_source *source);

#endif
