#ifndef HOST_CPU_DELAY_H
#define HOST_CPU_DELAY_H

/* Which steps are to come late. Callers see to it that nobody reads while it is changed. */

#include "host/backend.h"

/* "rank:step:us[:channel[:call]];...", where * means any. */
int cpu_delay_parse(const char *text, struct err *e);

int cpu_delay_set(const struct coll_delay *list, size_t count, struct err *e);
size_t cpu_delay_count(void);

/* All that is meant for this step, added up. */
int64_t cpu_delay_ns(const struct coll_step *step);

#endif
