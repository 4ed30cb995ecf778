/* Copies, fills and waiting as tasks of a stream. */

#include "host/cpu/capture.h"
#include "host/cpu/device.h"
#include "host/cpu/gate.h"
#include "host/cpu/traced.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Up to here a copy from ordinary host memory takes the bytes along, as CUDA's driver
   does, so that the caller may reuse the memory at once. */
enum { STAGED_MAX = 64 << 10 };

struct copy {
  struct cpu_task task;
  void *dst;
  const void *src;
  size_t bytes;
  enum traced_copy kind;
  unsigned char staged[];
};

struct fill {
  struct cpu_task task;
  void *dst;
  size_t count, element_bytes;
  uint64_t bits;
};

struct spin {
  struct cpu_task task;
  unsigned microseconds;
};

static void release(struct cpu_task *task) {
  free(task);
}

static void *pointer(CUdeviceptr ptr) {
  return (void *)(uintptr_t)ptr;
}

static const char *name_of(enum traced_copy kind) {
  if (kind == TRACED_HTOD) return "cuMemcpyHtoDAsync_v2";
  return kind == TRACED_DTOH ? "cuMemcpyDtoHAsync_v2" : "cuMemcpyDtoDAsync_v2";
}

static void run_copy(struct cpu_task *task, uint64_t ticket) {
  (void)ticket;
  const struct copy *c = (const struct copy *)task;
  cpu_traced_copy(name_of(c->kind), c->kind, c->bytes);
  memmove(c->dst, c->src, c->bytes);
}

static CUresult submit_copy(void *dst, const void *src, size_t bytes, enum traced_copy kind,
                            bool is_staged, CUstream stream) {
  struct copy *c = malloc(sizeof *c + (is_staged ? bytes : 0));
  if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
  *c = (struct copy){{NULL, run_copy, release, 1}, dst, src, bytes, kind};
  if (is_staged) {
    memcpy(c->staged, src, bytes);
    c->src = c->staged;
  }
  return cpu_stream_submit(stream, &c->task);
}

/* A copy that is complete on return, in order with everything on the default stream. */
static CUresult copy_now(void *dst, const void *src, size_t bytes, enum traced_copy kind) {
  struct cpu_stream *s;
  CUresult rc = cpu_stream_enter(NULL, &s);
  if (!rc) rc = cpu_capture_check_unsafe();
  if (!rc) rc = cpu_stream_drain(s);
  if (rc) return rc;
  const int64_t start_ns = cpu_now_ns();
  memmove(dst, src, bytes);
  const char *call = kind == TRACED_HTOD ? "cuMemcpyHtoD_v2" : "cuMemcpyDtoH_v2";
  cpu_traced_copied(call, kind, bytes, s->device, start_ns);
  return CUDA_SUCCESS;
}

CUresult cpu_memcpy_htod(CUdeviceptr dst, const void *src, size_t bytes) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (!src || !cpu_mem_is_valid(dst, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return copy_now(pointer(dst), src, bytes, TRACED_HTOD);
}

CUresult cpu_memcpy_dtoh(void *dst, CUdeviceptr src, size_t bytes) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (!dst || !cpu_mem_is_valid(src, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return copy_now(dst, pointer(src), bytes, TRACED_DTOH);
}

/* Is the host side ordinary memory, and the copy not one that a graph will repeat? */
static CUresult is_pageable_now(const void *host, size_t bytes, CUstream stream,
                                bool *is_pageable) {
  struct cpu_stream *s;
  const CUresult rc = cpu_stream_find(stream, &s);
  if (rc) return rc;
  *is_pageable = !cpu_is_capturing(s) && !cpu_mem_is_valid((uintptr_t)host, bytes);
  return CUDA_SUCCESS;
}

CUresult cpu_memcpy_htod_async(CUdeviceptr dst, const void *src, size_t bytes,
                               CUstream stream) {
  bool is_pageable;
  const CUresult rc = is_pageable_now(src, bytes, stream, &is_pageable);
  if (rc || bytes == 0) return rc;
  if (!src || !cpu_mem_is_valid(dst, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const bool is_staged = is_pageable && bytes <= STAGED_MAX;
  const CUresult submitted =
    submit_copy(pointer(dst), src, bytes, TRACED_HTOD, is_staged, stream);
  if (submitted || !is_pageable || is_staged) return submitted;
  return cpu_stream_synchronize(stream);
}

CUresult cpu_memcpy_dtoh_async(void *dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  bool is_pageable;
  const CUresult rc = is_pageable_now(dst, bytes, stream, &is_pageable);
  if (rc || bytes == 0) return rc;
  if (!dst || !cpu_mem_is_valid(src, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult submitted =
    submit_copy(dst, pointer(src), bytes, TRACED_DTOH, false, stream);
  return submitted || !is_pageable ? submitted : cpu_stream_synchronize(stream);
}

CUresult cpu_memcpy_dtod_async(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                               CUstream stream) {
  struct cpu_stream *s;
  const CUresult rc = cpu_stream_find(stream, &s);
  if (rc || bytes == 0) return rc;
  if (!cpu_mem_is_valid(dst, bytes) || !cpu_mem_is_valid(src, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return submit_copy(pointer(dst), pointer(src), bytes, TRACED_DTOD, false, stream);
}

/* By copies that double, until what is copied is long enough for memcpy's full speed and
   still fits the second-level cache. */
void cpu_repeat(unsigned char *dst, size_t laid, size_t bytes) {
  const size_t enough = 64 << 10;
  size_t block = laid;
  for (size_t at = laid; at < bytes;) {
    const size_t left = bytes - at;
    memcpy(dst + at, dst, block < left ? block : left);
    at += block < left ? block : left;
    if (block < enough) block = at;
  }
}

static void run_fill(struct cpu_task *task, uint64_t ticket) {
  (void)ticket;
  const struct fill *f = (const struct fill *)task;
  memcpy(f->dst, &f->bits, f->element_bytes);
  const size_t bytes = f->count * f->element_bytes;
  cpu_traced_set("cuMemsetD8Async", f->bits, bytes);
  cpu_repeat(f->dst, f->element_bytes, bytes);
}

CUresult cpu_fill(CUdeviceptr dst, size_t count, size_t element_bytes, uint64_t bits,
                  CUstream stream) {
  struct cpu_stream *s;
  const CUresult rc = cpu_stream_find(stream, &s);
  if (rc || count == 0) return rc;
  const bool is_size =
    element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8;
  if (!is_size || count > SIZE_MAX / element_bytes ||
      !cpu_mem_is_valid(dst, count * element_bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  struct fill *f = malloc(sizeof *f);
  if (!f) return CUDA_ERROR_OUT_OF_MEMORY;
  *f =
    (struct fill){{NULL, run_fill, release, 1}, pointer(dst), count, element_bytes, bits};
  return cpu_stream_submit(stream, &f->task);
}

CUresult cpu_memset_d8_async(CUdeviceptr dst, unsigned char value, size_t count,
                             CUstream stream) {
  return cpu_fill(dst, count, 1, value, stream);
}

/* Leaves the core to others for as long as a timer can be trusted, as a waiting kernel on a
   GPU would. */
static void run_spin(struct cpu_task *task, uint64_t ticket) {
  (void)ticket;
  cpu_traced_kernel("cuLaunchKernel", "nclua_spin", 1, 1);
  const int64_t timer_slack_ns = 100000;
  const int64_t end = cpu_now_ns() + ((const struct spin *)task)->microseconds * 1000LL;
  for (int64_t left; (left = end - cpu_now_ns()) > 0;) {
    const int64_t nap = left - timer_slack_ns;
    const struct timespec time = {nap / 1000000000, nap % 1000000000};
    if (nap > 0) {
      nanosleep(&time, NULL);
    } else {
      cpu_relax();
    }
  }
}

CUresult cpu_spin(unsigned microseconds, CUstream stream) {
  struct spin *s = malloc(sizeof *s);
  if (!s) return CUDA_ERROR_OUT_OF_MEMORY;
  *s = (struct spin){{NULL, run_spin, release, 1}, microseconds};
  return cpu_stream_submit(stream, &s->task);
}
