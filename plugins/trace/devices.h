#ifndef PLUGINS_TRACE_DEVICES_H
#define PLUGINS_TRACE_DEVICES_H

/* The GPUs that the process sees, by the driver it has loaded. */

#include "plugins/trace/store.h"

/* -1: the driver is not initialised. */
int devices_store(struct store *store);

#endif
