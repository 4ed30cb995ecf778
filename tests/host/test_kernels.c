/* host/cuda/kernels.cu against host/cuda/through_host.c, which knows the formats by
   host/dtype.c: two roads to one answer, both without a GPU. */
#include "host/cuda/through_host.h"
#include "host/dtype.h"
#include "tests/host/kernels_on_host.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 3000 };

static CUresult copy_in(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) {
  (void)stream;
  memcpy((void *)(uintptr_t)dst, src, bytes);
  return CUDA_SUCCESS;
}

static CUresult copy_out(void *dst, CUdeviceptr src, size_t bytes) {
  memcpy(dst, (const void *)(uintptr_t)src, bytes);
  return CUDA_SUCCESS;
}

static CUresult synchronize(CUstream stream) {
  (void)stream;
  return CUDA_SUCCESS;
}

static CUdeviceptr address(const void *at) {
  return (CUdeviceptr)(uintptr_t)at;
}

static void run(const char *name, void **parameters) {
  static const struct kernels_grid grid = {3, 32}; /* smaller than the data: it strides */
  const size_t *sizes;
  kernels_function *kernel = kernels_on_host(name, &sizes);
  assert_non_null(kernel);
  kernel(&grid, parameters);
}

static void run_pattern(void *to, uint64_t count, int type, struct pattern p) {
  void *parameters[] = {&to, &count, &type, &p.start, &p.step, &p.modulus};
  run("nclua_pattern", parameters);
}

static struct mismatch run_compare(const struct compare *what) {
  unsigned long long out[2] = {0, ~0ull}, *to = out;
  CUdeviceptr a = what->a, b = what->b;
  uint64_t count = what->count, value = what->value;
  int type = (int)what->type;
  double tolerance = what->tolerance;
  void *parameters[] = {&a, &b, &count, &type, &value, &tolerance, &to};
  run("nclua_compare", parameters);
  return (struct mismatch){out[0], out[1]};
}

static void test_pattern(void **state) {
  static const struct pattern patterns[] = {
    {0, 1, 7},
    {5, 3, 8},
    {0, 0, 1},
    {100, 12345, 1000},
    {1, 65521, UINT64_C(1) << 32},
    {(UINT64_C(1) << 53) - 1, UINT64_C(0x123456789abcdef), UINT64_C(1) << 62},
    {3, UINT64_C(1) << 52, (UINT64_C(1) << 54) + 1},
  };
  static char want[MOST * 8], got[MOST * 8];
  (void)state;
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
    for (int type = 0; type < ncclNumTypes; type++) {
      size_t bytes = MOST * dtype_size((ncclDataType_t)type);
      assert_int_equal(
        through_host_pattern(address(want), MOST, (ncclDataType_t)type, &patterns[i], NULL),
        CUDA_SUCCESS);
      memset(got, 0xa5, bytes);
      run_pattern(got, MOST, type, patterns[i]);
      if (memcmp(want, got, bytes) != 0)
        fail_msg("pattern %zu of %s", i, dtype_names[type]);
    }
  }
}

static void check_compare(const struct compare *what, const char *title) {
  struct mismatch want = {0}, got = run_compare(what);
  assert_int_equal(through_host_compare(what, &want, NULL), CUDA_SUCCESS);
  if (want.count != got.count || (want.count && want.first != got.first)) {
    fail_msg("%s of %s: %llu from %llu, the host says %llu from %llu",
             title,
             dtype_names[what->type],
             (unsigned long long)got.count,
             (unsigned long long)got.first,
             (unsigned long long)want.count,
             (unsigned long long)want.first);
  }
}

/* All codes of the small types: NaN, infinities, both zeros are among them. */
static void test_compare(void **state) {
  static unsigned char a[MOST * 8], b[MOST * 8];
  static const double tolerances[] = {0, 1e-3, 0.25, 2};
  (void)state;
  srand(1);
  for (int type = 0; type < ncclNumTypes; type++) {
    for (size_t i = 0; i < sizeof a; i++) a[i] = (unsigned char)rand();
    memcpy(b, a, sizeof b);
    for (size_t i = 0; i < sizeof b; i += 5) b[i] ^= (unsigned char)(1 << rand() % 8);
    for (size_t t = 0; t < sizeof tolerances / sizeof *tolerances; t++) {
      struct compare what = {address(a), address(b), MOST, (ncclDataType_t)type};
      what.tolerance = tolerances[t];
      check_compare(&what, "two buffers");
      what.b = 0;
      memcpy(&what.value, a + 16, dtype_size(what.type));
      check_compare(&what, "a value");
    }
  }
}

/* The rule itself, not only that both agree on it. */
static void test_agreement(void **state) {
  static const struct {
    double a, b, tolerance;
    int mismatches;
  } cases[] = {
    {1, 1, 0, 0},
    {1, nextafter(1, 2), 0, 1},
    {0.0, -0.0, 0, 0},
    {100, 101, 0.01, 0},
    {100, 102, 0.01, 1},
    {INFINITY, INFINITY, 0, 0},
    {INFINITY, 1e300, 0.5, 1},
    {INFINITY, -INFINITY, 0.5, 1},
    {NAN, NAN, 0, 0},
    {NAN, 1, 1e9, 1},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct compare what = {address(&cases[i].a), address(&cases[i].b), 1, ncclFloat64};
    what.tolerance = cases[i].tolerance;
    struct mismatch m = run_compare(&what);
    if ((int)m.count != cases[i].mismatches) fail_msg("case %zu", i);
  }
  const int64_t big[2] = {(INT64_C(1) << 53) + 1, INT64_C(1) << 53};
  struct compare what = {address(&big[0]), address(&big[1]), 1, ncclInt64};
  assert_int_equal(run_compare(&what).count, 1);
}

static void test_fill(void **state) {
  static uint64_t words[MOST], *to = words;
  uint64_t count = MOST - 1, bits = UINT64_C(0x0123456789abcdef);
  void *parameters[] = {&to, &count, &bits};
  (void)state;
  words[MOST - 1] = 7;
  run("nclua_fill", parameters);
  for (int i = 0; i < MOST - 1; i++) assert_true(words[i] == bits);
  assert_int_equal(words[MOST - 1], 7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_pattern),
    cmocka_unit_test(test_compare),
    cmocka_unit_test(test_agreement),
    cmocka_unit_test(test_fill),
  };
  cuda_device.memcpy_htod_async = copy_in;
  cuda_device.memcpy_dtoh = copy_out;
  cuda_device.stream_synchronize = synchronize;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
