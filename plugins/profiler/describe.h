#ifndef PLUGINS_PROFILER_DESCRIBE_H
#define PLUGINS_PROFILER_DESCRIBE_H

/* What NCCL says about an event, as a row; which table, its type decides. */

#include "plugins/profiler/event.h"
#include "plugins/trace/session.h"

#include <stdbool.h>

/* Who tells. */
struct describe_from {
  const struct session *session;
  int64_t now, comm;
};

/* `event` has its type and abi; false: it is of no known type. */
bool describe_start(struct event *event, const void *descriptor,
                    const struct describe_from *from);

/* `arguments` may be NULL. */
void describe_state(struct event *event, int state, const void *arguments, int64_t now);

void describe_end(struct event *event, int64_t now);

#endif
