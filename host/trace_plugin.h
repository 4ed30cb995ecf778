#ifndef HOST_TRACE_PLUGIN_H
#define HOST_TRACE_PLUGIN_H

#include "host/err.h"

#include <stddef.h>

/* The file of the trace plugin: in NCLUA_PLUGIN_DIR, beside the program, or where it is
   installed; else the copy that the program carries, written into the user's cache. */
int trace_plugin_path(char *path, size_t size, struct err *e);

/* Where that copy is; for main.c. */
void trace_plugin_carried(const char *begin, const char *end);

#endif
