#ifndef PLUGINS_TRACE_MERGE_H
#define PLUGINS_TRACE_MERGE_H

#include <stddef.h>

/* Adds the trace `from` to the trace `into`, which is created if there is none: texts get
   the ids of `into`, times its epoch, processes of another host other numbers. -1 with the
   reason in `why`; `into` is as before then. */
int merge_traces(const char *into, const char *from, char *why, size_t size);

#endif
