#ifndef PLUGINS_TRACE_TRACE_H
#define PLUGINS_TRACE_TRACE_H

/* What a program that opens the plugin itself may call. One trace a process; a stopped one
   may be followed by another. */

#include <stddef.h>

#define NCLUA_TRACE_API __attribute__((visibility("default")))

/* Records CUDA's work of this process into a new file. -1 with the reason in `why`. */
NCLUA_TRACE_API int nclua_trace_start(const char *path, char *why, size_t size);

/* Completes the file. -1 if something could not be written. */
NCLUA_TRACE_API int nclua_trace_stop(char *why, size_t size);

/* A range of this thread, as nvtxRangePush and nvtxRangePop make it. */
NCLUA_TRACE_API void nclua_trace_push(const char *text);
NCLUA_TRACE_API void nclua_trace_pop(void);

#endif
