#ifndef HOST_AFFINITY_H
#define HOST_AFFINITY_H

/* The CPUs near a GPU: those of its NUMA node that this process may run on. */

#include "host/err.h"

#include <sched.h>

/* `ordinal` as CUDA counts; `root` is "" but in tests. -1 if the machine does not tell, or
   if none of those CPUs is allowed: then a rank is better left where it is. */
int affinity_of_gpu(const char *root, int ordinal, cpu_set_t *cpus, struct err *e);

/* "0-3,8" into a set; -1 with code "EINVAL" if it is none or beyond the set's size. */
int affinity_parse(const char *list, cpu_set_t *cpus, struct err *e);

#endif
