/* Device memory is ordinary memory, but accounted for: what is not a live allocation is an
   error, and there is no more than the machine can back. */

#include "host/cpu/capture.h"
#include "host/cpu/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum { ALIGNMENT = 512, HUGE = 2 << 20 }; /* cuMemAlloc's alignment; a large page */

struct range {
  uintptr_t start;
  size_t bytes;
  bool is_host;
};

/* Freed while work was under way that may touch it: it goes when that is complete. */
struct condemned {
  void *memory;
  struct cpu_point *points;
  int count;
  struct condemned *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges; /* live, by start */
static size_t range_count, range_room;
static struct condemned *condemned;

/* The number after `key` in a file of "key number" lines, or the first one if key is "". */
static bool read_number(const char *path, const char *key, size_t *number) {
  char line[256];
  bool is_found = false;
  FILE *file = fopen(path, "re");
  if (!file) return false;
  while (!is_found && fgets(line, sizeof line, file)) {
    if (strncmp(line, key, strlen(key)) != 0) continue;
    is_found = sscanf(line + strlen(key), "%zu", number) == 1;
  }
  fclose(file);
  return is_found;
}

/* What a container may still use; its file cache can be dropped. */
static size_t cgroup_available(void) {
  size_t limit, used, cache = 0;
  if (!read_number("/sys/fs/cgroup/memory.max", "", &limit) ||
      !read_number("/sys/fs/cgroup/memory.current", "", &used)) {
    return SIZE_MAX;
  }
  read_number("/sys/fs/cgroup/memory.stat", "inactive_file ", &cache);
  return limit + cache > used ? limit + cache - used : 0;
}

static size_t available(void) {
  size_t kilobytes = 0;
  read_number("/proc/meminfo", "MemAvailable:", &kilobytes);
  const size_t machine = kilobytes << 10, container = cgroup_available();
  return machine < container ? machine : container;
}

static size_t total(void) {
  size_t kilobytes = 0, limit = SIZE_MAX;
  read_number("/proc/meminfo", "MemTotal:", &kilobytes);
  read_number("/sys/fs/cgroup/memory.max", "", &limit);
  const size_t machine = kilobytes << 10;
  return machine < limit ? machine : limit;
}

/* The one place where memory comes from. Large blocks are backed at once, as a GPU's are:
   neither a first touch within a measurement nor the kernel's out-of-memory killer. */
static void *allocate(size_t bytes) {
  const size_t unit = bytes < HUGE ? ALIGNMENT : HUGE;
  if (bytes > SIZE_MAX / 2) return NULL;
  if (bytes >= HUGE && bytes > available() / 64 * 63) return NULL;
  const size_t rounded = (bytes + unit - 1) / unit * unit;
  void *memory = aligned_alloc(unit, rounded);
  if (!memory || bytes < HUGE) return memory;
  madvise(memory, rounded, MADV_HUGEPAGE);
  if (madvise(memory, rounded, MADV_POPULATE_WRITE) && errno != EINVAL) {
    free(memory);
    return NULL;
  }
  return memory;
}

/* The index of the first range that starts above ptr. */
static size_t above(uintptr_t ptr) {
  size_t low = 0, high = range_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (ranges[middle].start <= ptr) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static bool insert(struct range range) {
  if (range_count == range_room) {
    const size_t room = range_room ? 2 * range_room : 64;
    struct range *moved = realloc(ranges, room * sizeof *moved);
    if (!moved) return false;
    ranges = moved;
    range_room = room;
  }
  const size_t at = above(range.start);
  memmove(&ranges[at + 1], &ranges[at], (range_count - at) * sizeof *ranges);
  ranges[at] = range;
  range_count++;
  return true;
}

static bool take(uintptr_t start, bool is_host) {
  const size_t at = above(start);
  if (at == 0 || ranges[at - 1].start != start) return false;
  if (ranges[at - 1].is_host != is_host) return false;
  memmove(&ranges[at - 1], &ranges[at], (range_count - at) * sizeof *ranges);
  range_count--;
  return true;
}

static bool is_over(const struct condemned *c) {
  for (int i = 0; i < c->count; i++) {
    if (!cpu_queue_reached(c->points[i].queue, c->points[i].number)) return false;
  }
  return true;
}

/* Under the lock: lets go what nothing touches any more. */
static void reap(void) {
  for (struct condemned **link = &condemned; *link;) {
    struct condemned *c = *link;
    if (!is_over(c)) {
      link = &c->next;
      continue;
    }
    *link = c->next;
    free(c->memory);
    cpu_points_free(c->points, c->count);
    free(c);
  }
}

/* cuMemFree waits for the device. Waiting here could be for ever, for a collective whose
   peer is gone, and from a garbage collector; so the memory waits instead. */
static void dispose(void *memory) {
  struct cpu_point *points;
  const int count = cpu_queue_pending(-1, false, &points);
  if (count == 0) {
    cpu_points_free(points, 0); /* what was pending may have ended meanwhile */
    free(memory);
    return;
  }
  struct condemned *c = count < 0 ? NULL : malloc(sizeof *c);
  if (!c) {
    cpu_points_free(points, count); /* and the memory is lost, rather than torn away */
    return;
  }
  *c = (struct condemned){memory, points, count, condemned};
  condemned = c;
}

static CUresult make(void **ptr, size_t bytes, bool is_host) {
  CUdevice device;
  CUresult rc = cpu_device_require(&device);
  if (!rc) rc = cpu_capture_check_unsafe();
  if (rc) return rc;
  if (!ptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  reap();
  void *memory = allocate(bytes);
  const bool is_made = memory && insert((struct range){(uintptr_t)memory, bytes, is_host});
  pthread_mutex_unlock(&lock);
  if (!is_made) free(memory);
  if (is_made) *ptr = memory;
  return is_made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult unmake(uintptr_t start, bool is_host) {
  const CUresult rc = start ? cpu_capture_check_unsafe() : CUDA_SUCCESS;
  if (rc || !start) return rc;
  pthread_mutex_lock(&lock);
  reap();
  const bool is_live = take(start, is_host);
  if (is_live) dispose((void *)start);
  pthread_mutex_unlock(&lock);
  return is_live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cpu_mem_alloc(CUdeviceptr *ptr, size_t bytes) {
  void *memory;
  const CUresult rc = ptr ? make(&memory, bytes, false) : CUDA_ERROR_INVALID_VALUE;
  if (!rc) *ptr = (uintptr_t)memory;
  return rc;
}

CUresult cpu_mem_free(CUdeviceptr ptr) {
  return unmake((uintptr_t)ptr, false);
}

CUresult cpu_mem_host_alloc(void **ptr, size_t bytes, unsigned flags) {
  (void)flags; /* all memory is portable, mapped and cached */
  return make(ptr, bytes, true);
}

CUresult cpu_mem_free_host(void *ptr) {
  return unmake((uintptr_t)ptr, true);
}

bool cpu_mem_is_valid(CUdeviceptr ptr, size_t bytes) {
  pthread_mutex_lock(&lock);
  const size_t at = above((uintptr_t)ptr);
  const struct range *range = at ? &ranges[at - 1] : NULL;
  const bool is_valid = range && ptr - range->start <= range->bytes &&
                        bytes <= range->start + range->bytes - ptr;
  pthread_mutex_unlock(&lock);
  return is_valid;
}

CUresult cpu_mem_total(size_t *bytes, CUdevice device) {
  if (device < 0 || device >= cpu_device_count()) return CUDA_ERROR_INVALID_DEVICE;
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  *bytes = total();
  return CUDA_SUCCESS;
}

CUresult cpu_mem_get_info(size_t *free_bytes, size_t *total_bytes) {
  CUdevice device;
  const CUresult rc = cpu_device_require(&device);
  if (rc) return rc;
  if (!free_bytes || !total_bytes) return CUDA_ERROR_INVALID_VALUE;
  *free_bytes = available();
  *total_bytes = total();
  return CUDA_SUCCESS;
}
