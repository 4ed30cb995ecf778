/* The small formats against tables of all their values, made from their definition. */

#include "host/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static float from_f8e4m3(uint16_t bits) {
  return half_from_f8e4m3((uint8_t)bits);
}

static float from_f8e5m2(uint16_t bits) {
  return half_from_f8e5m2((uint8_t)bits);
}

static uint16_t to_f8e4m3(float value) {
  return half_to_f8e4m3(value);
}

static uint16_t to_f8e5m2(float value) {
  return half_to_f8e5m2(value);
}

static const struct format {
  const char *name;
  float (*from)(uint16_t bits);
  uint16_t (*to)(float value);
  unsigned bits, mantissa;
  int bias;
  unsigned overflow; /* the positive code that overflow gives */
  unsigned finite;   /* how many positive codes are finite; they are the first ones */
} formats[] = {
  {"f16", half_from_f16, half_to_f16, 16, 10, 15, 0x7c00, 0x7c00},
  {"bf16", half_from_bf16, half_to_bf16, 16, 7, 127, 0x7f80, 0x7f80},
  {"f8e4m3", from_f8e4m3, to_f8e4m3, 8, 3, 7, 0x7f, 0x7f},
  {"f8e5m2", from_f8e5m2, to_f8e5m2, 8, 2, 15, 0x7c, 0x7c},
};

static double table[1 << 15];

/* A finite positive code's value by the definition. */
static double value_of(const struct format *f, unsigned code) {
  const int exponent = (int)(code >> f->mantissa);
  const double fraction = ldexp(code & ((1u << f->mantissa) - 1), -(int)f->mantissa);
  return exponent ? ldexp(1 + fraction, exponent - f->bias) : ldexp(fraction, 1 - f->bias);
}

static void fill_table(const struct format *f) {
  for (unsigned code = 0; code < f->finite; code++) table[code] = value_of(f, code);
}

/* The nearest code of a non-negative number, ties to the even one, by search. */
static unsigned nearest(const struct format *f, double x) {
  const double last = table[f->finite - 1], step = last - table[f->finite - 2];
  /* The tie beyond the last code goes up, unless that code is even, as in f8e4m3. */
  if (x > last + step / 2) return f->overflow;
  if (x == last + step / 2) return f->finite % 2 ? f->finite - 1 : f->overflow;
  unsigned low = 0, high = f->finite;
  while (high - low > 1) {
    const unsigned middle = (low + high) / 2;
    *(table[middle] <= x ? &low : &high) = middle;
  }
  if (low + 1 == f->finite) return low;
  const double down = x - table[low], up = table[low + 1] - x;
  return down < up || (down == up && low % 2 == 0) ? low : low + 1;
}

static void check(const struct format *f, float x) {
  const unsigned sign = 1u << (f->bits - 1);
  const unsigned wanted = nearest(f, (double)fabsf(x));
  const unsigned got = f->to(fabsf(x)), negative = f->to(-fabsf(x));
  if (got == wanted && negative == (wanted | sign)) return;
  fail_msg("%s: %a gives %#x, %#x, wanted %#x", f->name, (double)x, got, negative, wanted);
}

static void every_code_has_its_value_and_comes_back(void **state) {
  (void)state;
  for (const struct format *f = formats; f < formats + COUNT(formats); f++) {
    const unsigned sign = 1u << (f->bits - 1);
    for (unsigned code = 0; code < f->finite; code++) {
      const double value = value_of(f, code);
      assert_true((double)f->from((uint16_t)code) == value);
      assert_true((double)f->from((uint16_t)(code | sign)) == -value);
      assert_true(signbit(f->from((uint16_t)(code | sign))));
      assert_int_equal(f->to((float)value), code);
      assert_int_equal(f->to(-(float)value), code | sign);
    }
  }
}

static void ties_go_to_even_and_their_neighbours_to_nearest(void **state) {
  (void)state;
  for (const struct format *f = formats; f < formats + COUNT(formats); f++) {
    fill_table(f);
    for (unsigned code = 0; code + 1 < f->finite; code++) {
      const float tie = (float)((table[code] + table[code + 1]) / 2);
      check(f, nextafterf(tie, 0));
      check(f, tie);
      check(f, nextafterf(tie, INFINITY));
    }
  }
}

static void all_magnitudes_are_rounded_to_nearest(void **state) {
  (void)state;
  for (const struct format *f = formats; f < formats + COUNT(formats); f++) {
    fill_table(f);
    for (uint32_t bits = 0; bits < 0x7f800000; bits += 6007) { /* prime: all low bits */
      float x;
      memcpy(&x, &bits, sizeof x);
      check(f, x);
    }
  }
}

static void overflow_gives_infinity_or_nan(void **state) {
  (void)state;
  static const float huge[] = {3.4e38f, INFINITY};
  for (const struct format *f = formats; f < formats + COUNT(formats); f++) {
    fill_table(f);
    const double last = table[f->finite - 1], step = last - table[f->finite - 2];
    check(f, (float)(last + step / 2));
    check(f, nextafterf((float)(last + step / 2), 0));
    check(f, nextafterf((float)(last + step / 2), INFINITY));
    for (size_t i = 0; i < COUNT(huge); i++) {
      if ((double)huge[i] <= last + step / 2) continue; /* bf16 reaches further */
      assert_int_equal(f->to(huge[i]), f->overflow);
    }
    const float back = f->from((uint16_t)f->overflow);
    assert_true(f->overflow == 0x7f ? isnan(back) : isinf(back));
  }
}

static void nan_stays_nan(void **state) {
  (void)state;
  for (const struct format *f = formats; f < formats + COUNT(formats); f++) {
    const unsigned sign = 1u << (f->bits - 1);
    for (uint32_t payload = 1; payload < 1u << 23; payload = payload * 2 + 1) {
      const uint32_t bits = 0x7f800000 | payload, minus = bits | 0x80000000;
      float x, y;
      memcpy(&x, &bits, sizeof x);
      memcpy(&y, &minus, sizeof y);
      assert_true(isnan(f->from(f->to(x))));
      assert_true(isnan(f->from(f->to(y))));
      assert_false(f->to(x) & sign);
      assert_true(f->to(y) & sign);
    }
    for (unsigned code = f->overflow + 1; code < sign; code++) {
      assert_true(isnan(f->from((uint16_t)code)));
      assert_true(isnan(f->from((uint16_t)(code | sign))));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_code_has_its_value_and_comes_back),
    cmocka_unit_test(ties_go_to_even_and_their_neighbours_to_nearest),
    cmocka_unit_test(all_magnitudes_are_rounded_to_nearest),
    cmocka_unit_test(overflow_gives_infinity_or_nan),
    cmocka_unit_test(nan_stays_nan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
