#ifndef PLUGINS_TRACE_KINDS_H
#define PLUGINS_TRACE_KINDS_H

/* What CUPTI is asked to record: NCLUA_TRACE_KINDS. */

#include "plugins/trace/cupti.h"

/* -1 with the reason in `why` if kernels cannot be recorded. */
int kinds_enable(const struct cupti *cupti, char *why, size_t size);

void kinds_disable(const struct cupti *cupti);

#endif
