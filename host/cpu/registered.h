#ifndef HOST_CPU_REGISTERED_H
#define HOST_CPU_REGISTERED_H

/* Buffers that the user has registered. All memory is as good here: but a tuner plugin is
   told, as NCCL tells it. */

#include "host/abi_nccl.h"

#include <stdbool.h>
#include <stddef.h>

struct cpu_registered {
  struct cpu_registration *list;
};

ncclResult_t cpu_registered_add(struct cpu_registered *r, const void *buffer, size_t bytes,
                                void **handle);
ncclResult_t cpu_registered_remove(struct cpu_registered *r, void *handle);
void cpu_registered_free(struct cpu_registered *r);

/* Lies all of the range in one registration? */
bool cpu_registered_covers(const struct cpu_registered *r, const void *start, size_t bytes);

#endif
