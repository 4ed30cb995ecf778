/* Patterns into memory, and comparing memory element by element. */

#include "host/cpu/capture.h"
#include "host/cpu/device.h"
#include "host/cpu/traced.h"
#include "host/dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fill {
  struct cpu_task task;
  unsigned char *dst;
  size_t count;
  ncclDataType_t type;
  struct pattern pattern;
};

struct comparison {
  struct cpu_task task;
  struct compare what;
  struct mismatch *out;
};

static void release(struct cpu_task *task) {
  free(task);
}

/* An integer wraps into a narrow integer type; a float rounds it. */
static uint64_t element(ncclDataType_t type, uint64_t value) {
  uint64_t bits = value;
  if (!dtype_is_float(type)) return bits;
  if (value <= INT64_MAX) {
    dtype_from_integer(type, (int64_t)value, &bits);
  } else {
    dtype_from_double(type, (double)value, &bits);
  }
  return bits;
}

/* start + step * i is computed without its wrapping at 2^64: both are below the modulus. */
static uint64_t advance(uint64_t value, uint64_t step, uint64_t modulus) {
  return value >= modulus - step ? value - (modulus - step) : value + step;
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b) {
  while (b) {
    const uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Modulus 0 stands for 2^64. After modulus / gcd(step, modulus) elements, all recurs. */
static void run_fill(struct cpu_task *task, uint64_t ticket) {
  (void)ticket;
  const struct fill *f = (const struct fill *)task;
  const struct pattern *p = &f->pattern;
  cpu_traced_kernel("cuLaunchKernel", "nclua_pattern", 1, 1);
  const size_t bytes = dtype_size(f->type);
  const uint64_t step = p->modulus ? p->step % p->modulus : p->step;
  const uint64_t period = p->modulus ? p->modulus / greatest_divisor(p->modulus, step) : 0;
  const size_t laid = period && period < f->count ? (size_t)period : f->count;
  uint64_t value = p->modulus ? p->start % p->modulus : p->start;
  for (size_t i = 0; i < laid; i++) {
    const uint64_t bits = element(f->type, value);
    memcpy(f->dst + i * bytes, &bits, bytes);
    value = p->modulus ? advance(value, step, p->modulus) : value + step;
  }
  cpu_repeat(f->dst, laid * bytes, f->count * bytes);
}

static bool is_range(CUdeviceptr ptr, size_t count, ncclDataType_t type) {
  return (unsigned)type < ncclNumTypes && count <= SIZE_MAX / dtype_size(type) &&
         cpu_mem_is_valid(ptr, count * dtype_size(type));
}

CUresult cpu_fill_pattern(CUdeviceptr dst, size_t count, ncclDataType_t type,
                          const struct pattern *p, CUstream stream) {
  struct cpu_stream *s;
  const CUresult rc = cpu_stream_find(stream, &s);
  if (rc || count == 0) return rc;
  if (!p || !is_range(dst, count, type)) return CUDA_ERROR_INVALID_VALUE;
  struct fill *f = malloc(sizeof *f);
  if (!f) return CUDA_ERROR_OUT_OF_MEMORY;
  *f = (struct fill){{NULL, run_fill, release, 1}, (void *)(uintptr_t)dst, count, type, *p};
  return cpu_stream_submit(stream, &f->task);
}

static uint64_t load(const unsigned char *at, size_t bytes) {
  uint64_t bits = 0;
  memcpy(&bits, at, bytes);
  return bits;
}

static bool agree(const struct compare *c, uint64_t a, uint64_t b) {
  if (a == b) return true;
  if (!dtype_is_float(c->type) && c->tolerance == 0) return false;
  const double x = dtype_to_double(c->type, a), y = dtype_to_double(c->type, b);
  if (dtype_is_float(c->type) && (x == y || (isnan(x) && isnan(y)))) return true;
  /* Infinities: their difference and limit are infinite, which says nothing. */
  if (!isfinite(x) || !isfinite(y)) return false;
  return fabs(x - y) <= c->tolerance * fmax(fabs(x), fabs(y));
}

/* Counts the elements from `at` on that differ, one by one. */
static void compare_block(const struct compare *c, const unsigned char *b, size_t at,
                          size_t count, struct mismatch *result) {
  const size_t bytes = dtype_size(c->type);
  const unsigned char *a = (const unsigned char *)(uintptr_t)c->a + at * bytes;
  for (size_t i = 0; i < count; i++) {
    if (agree(c, load(a + i * bytes, bytes), load(b + i * bytes, bytes))) continue;
    if (result->count++ == 0) result->first = at + i;
  }
}

/* Most blocks are equal in every bit, which memcmp sees at memory's speed. */
static void run_compare(struct cpu_task *task, uint64_t ticket) {
  (void)ticket;
  enum { BLOCK = 4096 };
  unsigned char wanted[BLOCK];
  const struct comparison *run = (const struct comparison *)task;
  const struct compare *c = &run->what;
  const size_t bytes = dtype_size(c->type), each = BLOCK / bytes;
  const unsigned char *a = (const void *)(uintptr_t)c->a,
                      *b = (const void *)(uintptr_t)c->b;
  cpu_traced_kernel("cuLaunchKernel", "nclua_compare", 1, 1);
  struct mismatch result = {0};
  memcpy(wanted, &c->value, bytes);
  cpu_repeat(wanted, bytes, BLOCK);
  for (size_t at = 0; at < c->count; at += each) {
    const size_t n = each < c->count - at ? each : c->count - at;
    const unsigned char *with = b ? b + at * bytes : wanted;
    if (memcmp(a + at * bytes, with, n * bytes) != 0) {
      compare_block(c, with, at, n, &result);
    }
  }
  *run->out = result;
}

CUresult cpu_compare(const struct compare *what, struct mismatch *out, CUstream stream) {
  struct cpu_stream *s;
  CUresult rc = cpu_stream_find(stream, &s);
  if (rc) return rc;
  if (!what || !out || !(what->tolerance >= 0)) return CUDA_ERROR_INVALID_VALUE;
  *out = (struct mismatch){0};
  if (what->count == 0) return CUDA_SUCCESS;
  if (!is_range(what->a, what->count, what->type) ||
      (what->b && !is_range(what->b, what->count, what->type))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  rc = cpu_capture_check_sync(s); /* a graph cannot give an answer */
  if (rc) return rc;
  struct comparison *c = malloc(sizeof *c);
  if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
  *c = (struct comparison){{NULL, run_compare, release, 1}, *what, out};
  rc = cpu_stream_submit(stream, &c->task);
  return rc ? rc : cpu_stream_synchronize(stream);
}
