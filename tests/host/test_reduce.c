/* Every data type and operation against arithmetic in double, rounded as a GPU's NCCL does;
   both compilations of the loops. */

#include "host/cpu/kernels.h"
#include "host/cpu/reduce.h"
#include "host/dtype.h"
#include "host/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { PAIRS = 1 << 16 };

static const char *const ops[] = {"sum", "prod", "max", "min"};
static _Alignas(64) unsigned char a[8 * PAIRS], b[8 * PAIRS], got[8 * PAIRS];

static uint64_t random_bits(void) {
  static uint64_t x = 88172645463325252u; /* xorshift64 */
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return x;
}

static uint64_t load(ncclDataType_t type, const unsigned char *from, size_t i) {
  uint64_t bits = 0;
  memcpy(&bits, from + i * dtype_size(type), dtype_size(type));
  return bits;
}

static void store(ncclDataType_t type, unsigned char *to, size_t i, uint64_t bits) {
  memcpy(to + i * dtype_size(type), &bits, dtype_size(type));
}

/* Zeros, the smallest, the largest, infinity, NaN of both signs; then chance, with
   exponents close enough for sums to matter. For one byte, every pair there is. */
static void fill_pairs(ncclDataType_t type) {
  static const double special[] = {
    0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, -NAN, 3e38, 1e-45};
  const size_t n = COUNT(special);
  for (size_t i = 0; i < PAIRS; i++) {
    uint64_t x = random_bits(), y = i % 2 ? random_bits() : x ^ (random_bits() >> (i % 64));
    if (dtype_size(type) == 1) {
      x = i >> 8;
      y = i;
    } else if (dtype_is_float(type) && i < n * n) {
      dtype_from_double(type, special[i / n], &x);
      dtype_from_double(type, special[i % n], &y);
    }
    store(type, a, i, x);
    store(type, b, i, y);
  }
}

static double apply_float(int op, double x, double y) {
  if (op == 0) return x + y;
  if (op == 1) return x * y;
  if (isnan(x)) return y;
  if (isnan(y)) return x;
  if (x == y) return signbit(x) == (op == 3) ? x : y; /* -0 is below +0 */
  return (x > y) == (op == 2) ? x : y;
}

/* __NV_SATFINITE: no infinities, and what overflows is the largest number. */
static uint64_t saturate_f8(ncclDataType_t type, double x) {
  const double largest = type == ncclFloat8e4m3 ? 448 : 57344;
  const double half = (double)half_from_f16(half_to_f16((float)x));
  uint64_t bits;
  dtype_from_double(type,
                    half > largest    ? largest
                    : half < -largest ? -largest
                                      : half,
                    &bits);
  return bits;
}

/* All but f64 is computed in float; a double's 53 bits make (float)(x op y) exactly that.
 */
static uint64_t round_float(ncclDataType_t type, double x) {
  uint64_t bits;
  if (isnan(x)) return UINT64_MAX >> (65 - 8 * dtype_size(type));
  if (type == ncclFloat8e4m3 || type == ncclFloat8e5m2) return saturate_f8(type, x);
  dtype_from_double(type, type == ncclFloat64 ? x : (double)(float)x, &bits);
  return bits;
}

static bool is_less(ncclDataType_t type, uint64_t x, uint64_t y) {
  const unsigned spare = (unsigned)(64 - 8 * dtype_size(type));
  const bool is_signed = type == ncclInt8 || type == ncclInt32 || type == ncclInt64;
  if (is_signed) return (int64_t)(x << spare) < (int64_t)(y << spare);
  return x < y;
}

static uint64_t apply(ncclDataType_t type, int op, uint64_t x, uint64_t y) {
  if (dtype_is_float(type)) {
    return round_float(type,
                       apply_float(op, dtype_to_double(type, x), dtype_to_double(type, y)));
  }
  if (op == 0) x += y;
  if (op == 1) x *= y;
  if (op > 1) x = is_less(type, x, y) == (op == 3) ? x : y;
  return x & (UINT64_MAX >> (64 - 8 * dtype_size(type)));
}

static void check_pairs(const struct cpu_kernels *k, ncclDataType_t type, int op) {
  k->reduce[type][op](got, a, b, PAIRS);
  for (size_t i = 0; i < PAIRS; i++) {
    const uint64_t x = load(type, a, i), y = load(type, b, i);
    const uint64_t wanted = apply(type, op, x, y), is = load(type, got, i);
    if (is == wanted) continue;
    fail_msg("%s %s of %#llx, %#llx: got %#llx, wanted %#llx",
             dtype_names[type],
             ops[op],
             (unsigned long long)x,
             (unsigned long long)y,
             (unsigned long long)is,
             (unsigned long long)wanted);
  }
}

static const struct cpu_kernels *const *variants(void) {
  static const struct cpu_kernels *list[3] = {&cpu_kernels_plain};
#ifdef CPU_KERNELS_HAVE_AVX2
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) {
    list[1] = &cpu_kernels_avx2;
  }
#endif
  return list;
}

static void all_types_and_ops_match_the_reference(void **state) {
  (void)state;
  for (unsigned type = 0; type < ncclNumTypes; type++) {
    fill_pairs(type);
    for (const struct cpu_kernels *const *k = variants(); *k; k++) {
      for (int op = 0; op < 4; op++) check_pairs(*k, type, op);
    }
  }
}

static void check_length(const struct cpu_kernels *k, ncclDataType_t type, size_t count) {
  static const unsigned char guard = 0xa5;
  const size_t bytes = count * dtype_size(type);
  static unsigned char wanted[8 * PAIRS], in_place[8 * PAIRS];
  for (size_t i = 0; i < count; i++) {
    store(type, wanted, i, apply(type, 0, load(type, a, i), load(type, b, i)));
  }
  memset(got, guard, sizeof got);
  k->reduce[type][0](got + dtype_size(type), a, b, count); /* off the vector's alignment */
  assert_memory_equal(got + dtype_size(type), wanted, bytes);
  assert_int_equal(got[dtype_size(type) - 1], guard);
  assert_int_equal(got[dtype_size(type) + bytes], guard);
  memcpy(in_place, a, bytes);
  k->reduce[type][0](in_place, in_place, b, count);
  assert_memory_equal(in_place, wanted, bytes);
  memcpy(in_place, b, bytes);
  k->reduce[type][0](in_place, a, in_place, count);
  assert_memory_equal(in_place, wanted, bytes);
}

static void lengths_and_places_do_not_matter(void **state) {
  (void)state;
  static const size_t counts[] = {0, 1, 2, 3, 7, 8, 9, 31, 33, 255, 256, 257, 511, 1009};
  for (unsigned type = 0; type < ncclNumTypes; type++) {
    fill_pairs(type);
    for (const struct cpu_kernels *const *k = variants(); *k; k++) {
      for (size_t i = 0; i < COUNT(counts); i++) check_length(*k, type, counts[i]);
    }
  }
}

static void a_scalar_multiplies(void **state) {
  (void)state;
  for (unsigned type = 0; type < ncclNumTypes; type++) {
    fill_pairs(type);
    for (const struct cpu_kernels *const *k = variants(); *k; k++) {
      for (size_t s = 0; s < 64; s++) {
        const uint64_t scalar = load(type, b, s * 37);
        (*k)->premultiply[type](got, a, scalar, 1009);
        for (size_t i = 0; i < 1009; i++) {
          assert_int_equal(load(type, got, i), apply(type, 1, load(type, a, i), scalar));
        }
      }
    }
  }
}

static int64_t sign_extend(ncclDataType_t type, uint64_t bits) {
  const unsigned spare = (unsigned)(64 - 8 * dtype_size(type));
  return (int64_t)(bits << spare) >> spare;
}

static void integers_divide_towards_zero(void **state) {
  (void)state;
  for (unsigned type = 0; type <= ncclUint64; type++) {
    const bool is_signed = type % 2 == 0;
    fill_pairs(type);
    for (uint64_t by = 1; by < 70; by++) {
      cpu_postdivide(type, got, a, by, 1009);
      for (size_t i = 0; i < 1009; i++) {
        const uint64_t x = load(type, a, i);
        const uint64_t wanted =
          is_signed ? (uint64_t)(sign_extend(type, x) / (int64_t)by) : x / by;
        assert_int_equal(load(type, got, i),
                         wanted & (UINT64_MAX >> (64 - 8 * dtype_size(type))));
      }
    }
  }
}

static void a_sum_is_rounded_at_every_step(void **state) {
  (void)state;
  uint16_t sum = half_to_f16(2048), one = half_to_f16(1);
  for (int i = 0; i < 3; i++) cpu_reduce(ncclFloat16, ncclSum, &sum, &sum, &one, 1);
  assert_int_equal(sum, half_to_f16(2048)); /* each step is a tie that goes to even */
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_types_and_ops_match_the_reference),
    cmocka_unit_test(lengths_and_places_do_not_matter),
    cmocka_unit_test(a_scalar_multiplies),
    cmocka_unit_test(integers_divide_towards_zero),
    cmocka_unit_test(a_sum_is_rounded_at_every_step),
  };
  if (!variants()[1]) print_message("only the plain loops: no AVX2 and F16C here\n");
  return cmocka_run_group_tests(tests, NULL, NULL);
}
