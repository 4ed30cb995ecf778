#ifndef PLUGINS_PROFILER_EVENT_H
#define PLUGINS_PROFILER_EVENT_H

/* Events under way. An event's handle is its id, not an address: NCCL names a parent long
   after it has stopped it, and names parents of other processes. */

#include "plugins/trace/table.h"

#include <pthread.h>

struct event {
  uint64_t id;
  uint64_t type;
  int abi;
  struct trace_row row; /* complete when the event stops */
};

/* A new event with a free place, locked for the caller until event_unlock; NULL: there are
   too many under way. */
struct event *event_new(void);

/* The event that a handle names, locked; NULL if it has stopped. */
struct event *event_lock(const void *handle);
void event_unlock(struct event *event);

/* Its place is free again; unlocks. */
void event_free(struct event *event);

/* As a handle. */
void *event_handle(const struct event *event);

#endif
