#ifndef PLUGINS_TRACE_DECODE_H
#define PLUGINS_TRACE_DECODE_H

/* CUPTI's activity records as rows of a trace. Calls nothing of CUPTI but what it is
   given, so that buffers made by a test do as well. */

#include "plugins/trace/abi.h"
#include "plugins/trace/store.h"

enum { DECODE_CALLS = 1024 }; /* functions of an API whose names are kept */

struct decoder {
  struct session session;
  int64_t shift_ns; /* from CUPTI's clock to CLOCK_REALTIME */
  struct cupti_layout layout;
  uint32_t own_tid; /* the calls of this thread are the tracer's, and left out */
  CUptiResult (*next_record)(uint8_t *buffer, size_t bytes, struct cupti_record **record);
  CUptiResult (*callback_name)(int domain, uint32_t cbid, const char **name);
  int64_t names[2][DECODE_CALLS]; /* ids in StringIds of the runtime's, the driver's */
  uint64_t untimed;               /* kernels that CUPTI has no times for */
};

/* `context` is a struct decoder. */
void decode_buffer(void *context, struct store *store, const uint8_t *data, size_t bytes);

#endif
