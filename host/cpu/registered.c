#include "host/cpu/registered.h"
#include "host/cpu/fail.h"

#include <stdint.h>
#include <stdlib.h>

struct cpu_registration {
  struct cpu_registration *next;
  uintptr_t start;
  size_t bytes;
};

ncclResult_t cpu_registered_add(struct cpu_registered *r, const void *buffer, size_t bytes,
                                void **handle) {
  struct cpu_registration *one = malloc(sizeof *one);
  if (!one) return cpu_fail(ncclSystemError, "out of memory");
  *one = (struct cpu_registration){r->list, (uintptr_t)buffer, bytes};
  r->list = one;
  *handle = one;
  return ncclSuccess;
}

ncclResult_t cpu_registered_remove(struct cpu_registered *r, void *handle) {
  struct cpu_registration **at = &r->list;
  while (*at && *at != handle) at = &(*at)->next;
  if (!*at) return cpu_fail(ncclInvalidArgument, "handle: no registration");
  struct cpu_registration *one = *at;
  *at = one->next;
  free(one);
  return ncclSuccess;
}

void cpu_registered_free(struct cpu_registered *r) {
  while (r->list) cpu_registered_remove(r, r->list);
}

bool cpu_registered_covers(const struct cpu_registered *r, const void *start,
                           size_t bytes) {
  const uintptr_t first = (uintptr_t)start;
  for (const struct cpu_registration *one = r->list; one; one = one->next) {
    const uintptr_t skipped = first - one->start;
    if (first >= one->start && skipped <= one->bytes && bytes <= one->bytes - skipped) {
      return true;
    }
  }
  return false;
}
