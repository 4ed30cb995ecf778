#ifndef HOST_TRACE_CPU_H
#define HOST_TRACE_CPU_H

/* What the CPU backend's workers tell, as rows of a trace. */

#include "host/backend.h"

int trace_cpu_start(struct device_api *api, const char *path, struct err *e);

/* What could not be written is said in `why`, "" if all was. */
void trace_cpu_stop(struct device_api *api, char *why, size_t size);

#endif
