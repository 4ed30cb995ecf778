#include "host/dtype.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void names_follow_nccl(void **state) {
  (void)state;
  static const char *const names[] = {"i8",
                                      "u8",
                                      "i32",
                                      "u32",
                                      "i64",
                                      "u64",
                                      "f16",
                                      "f32",
                                      "f64",
                                      "bf16",
                                      "f8e4m3",
                                      "f8e5m2"};
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  for (unsigned type = 0; type < ncclNumTypes; type++) {
    assert_string_equal(dtype_names[type], names[type]);
    assert_int_equal(dtype_size(type), sizes[type]);
    assert_int_equal(dtype_is_float(type), strchr(names[type], 'f') != NULL);
  }
  assert_null(dtype_names[ncclNumTypes]);
}

static void doubles_become_elements(void **state) {
  (void)state;
  static const struct {
    ncclDataType_t type;
    double value;
    bool is_in_range;
    uint64_t bits;
  } cases[] = {
    {ncclInt8, -128, true, 0x80},
    {ncclInt8, 127, true, 0x7f},
    {ncclInt8, 128, false, 0},
    {ncclInt8, -129, false, 0},
    {ncclUint8, 255, true, 0xff},
    {ncclUint8, 256, false, 0},
    {ncclUint8, -1, false, 0},
    {ncclUint8, -0.0, true, 0},
    {ncclInt32, 1.5, false, 0},
    {ncclInt32, NAN, false, 0},
    {ncclInt32, INFINITY, false, 0},
    {ncclInt32, -2147483648.0, true, 0x80000000},
    {ncclUint32, 4294967295.0, true, 0xffffffff},
    {ncclUint32, 4294967296.0, false, 0},
    {ncclInt64, -0x1p63, true, UINT64_C(1) << 63},
    {ncclInt64, 0x1p63, false, 0},
    {ncclUint64, 0x1p63, true, UINT64_C(1) << 63},
    {ncclUint64, 0x1p64, false, 0},
    {ncclFloat32, 1, true, 0x3f800000},
    {ncclFloat32, 1e300, true, 0x7f800000},
    {ncclFloat64, -1, true, 0xbff0000000000000},
    {ncclFloat16, 1, true, 0x3c00},
    {ncclFloat16, 65519.999, true, 0x7bff},
    {ncclFloat16, 65520, true, 0x7c00},
    {ncclBfloat16, 1, true, 0x3f80},
    {ncclFloat8e4m3, 448, true, 0x7e},
    {ncclFloat8e5m2, 57344, true, 0x7b},
    /* Just above a tie: through float it would look like one, and go down to even. */
    {ncclFloat16, 1 + 0x1p-11 + 0x1p-40, true, 0x3c01},
    {ncclBfloat16, 1 + 0x1p-8 + 0x1p-40, true, 0x3f81},
    {ncclFloat8e4m3, 1 + 0x1p-4 + 0x1p-40, true, 0x39},
    {ncclFloat8e5m2, 1 + 0x1p-3 + 0x1p-40, true, 0x3d},
    {ncclFloat16, 1 + 0x1p-11, true, 0x3c00},
    {ncclFloat16, 1e-320, true, 0},
    {ncclFloat16, -1e-320, true, 0x8000},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    uint64_t bits = 0;
    const bool is_in_range = dtype_from_double(cases[i].type, cases[i].value, &bits);
    if (is_in_range == cases[i].is_in_range && (!is_in_range || bits == cases[i].bits))
      continue;
    fail_msg("%s %a: got %d %#llx",
             dtype_names[cases[i].type],
             cases[i].value,
             is_in_range,
             (unsigned long long)bits);
  }
}

static void integers_become_elements(void **state) {
  (void)state;
  static const struct {
    ncclDataType_t type;
    int64_t value;
    bool is_in_range;
    uint64_t bits;
  } cases[] = {
    {ncclInt8, -128, true, 0x80},
    {ncclInt8, -129, false, 0},
    {ncclInt8, 128, false, 0},
    {ncclUint8, 255, true, 0xff},
    {ncclUint8, 256, false, 0},
    {ncclUint8, -1, false, 0},
    {ncclInt32, INT32_MIN, true, 0x80000000},
    {ncclInt32, INT64_C(1) << 31, false, 0},
    {ncclUint32, INT64_C(0xffffffff), true, 0xffffffff},
    {ncclUint32, INT64_C(1) << 32, false, 0},
    {ncclInt64, INT64_MIN, true, UINT64_C(1) << 63},
    {ncclUint64, INT64_MAX, true, INT64_MAX},
    {ncclUint64, -1, false, 0},
    {ncclFloat32, -3, true, 0xc0400000},
    {ncclFloat16, 2048, true, 0x6800},
    {ncclFloat16, 100000, true, 0x7c00},
    /* 2^40 + 2^16 + 1: above the tie between two floats. */
    {ncclFloat32, (INT64_C(1) << 40) + (1 << 16) + 1, true, 0x53800001},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    uint64_t bits = 0;
    const bool is_in_range = dtype_from_integer(cases[i].type, cases[i].value, &bits);
    if (is_in_range == cases[i].is_in_range && (!is_in_range || bits == cases[i].bits))
      continue;
    fail_msg("%s %lld: got %d %#llx",
             dtype_names[cases[i].type],
             (long long)cases[i].value,
             is_in_range,
             (unsigned long long)bits);
  }
}

static void elements_come_back_as_doubles(void **state) {
  (void)state;
  for (unsigned type = 0; type < ncclNumTypes; type++) {
    for (uint64_t i = 0; i < 65536; i++) {
      const uint64_t bits = i & (UINT64_MAX >> (64 - 8 * dtype_size(type)));
      const double value = dtype_to_double(type, bits);
      uint64_t back;
      if (isnan(value)) continue;
      assert_true(dtype_from_double(type, value, &back));
      assert_int_equal(back, bits);
    }
  }
  assert_true(dtype_to_double(ncclInt64, UINT64_MAX) == -1);
  assert_true(dtype_to_double(ncclUint64, UINT64_MAX) == 0x1p64);
  assert_true(dtype_to_double(ncclInt8, 0xffffffffffffff80) == -128);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_follow_nccl),
    cmocka_unit_test(doubles_become_elements),
    cmocka_unit_test(integers_become_elements),
    cmocka_unit_test(elements_come_back_as_doubles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
