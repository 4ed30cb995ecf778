#include "host/stats.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { MOST = 3000 };

static double room[2 * MOST];

static void check(double got, double wanted, double tolerance, const char *what) {
  if (isnan(wanted) ? isnan(got) : got == wanted) return;
  if (fabs(got - wanted) <= tolerance * fabs(wanted)) return;
  fail_msg("%s: got %.17g, wanted %.17g", what, got, wanted);
}

static void sums_keep_what_rounding_loses(void **state) {
  (void)state;
  static const struct {
    double x[4], sum;
  } cases[] = {
    {{1, 1e100, 1, -1e100}, 2},
    {{1e16, 1, 1, -1e16}, 2},
    {{INFINITY, 1, 1, 1}, INFINITY},
    {{INFINITY, -INFINITY, 1, 1}, NAN},
    {{NAN, 1, 1, 1}, NAN},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    check(stats_sum(cases[i].x, 4), cases[i].sum, 0, "sum");
  }
  check(stats_sum(room, 0), 0, 0, "sum of none");
}

static void spread_has_its_textbook_values(void **state) {
  (void)state;
  const double x[] = {2, 4, 4, 4, 5, 5, 7, 9}; /* mean 5, squares 32 */
  check(stats_mean(x, 8), 5, 0, "mean");
  check(stats_stdev(x, 8, false), 2, 0, "population");
  check(stats_stdev(x, 8, true), sqrt(32.0 / 7), 1e-15, "sample");
  check(stats_cv_percent(x, 8), 40, 0, "cv");
  check(stats_mad(x, 8, room), 0.5, 0, "mad");
  check(stats_geometric_mean((double[]){1, 10, 100}, 3), 10, 1e-15, "geometric");
  check(stats_geometric_mean((double[]){0, 10}, 2), 0, 0, "geometric of zero");
  check(stats_geometric_mean((double[]){-1, 10}, 2), NAN, 0, "geometric of negative");
  /* A large offset must not eat the deviation. */
  check(stats_stdev((double[]){1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16}, 4, true),
        sqrt(30),
        1e-15,
        "offset");
}

static void one_value_has_answers(void **state) {
  (void)state;
  const double x[] = {-3};
  check(stats_median(x, 1, room), -3, 0, "median");
  check(stats_percentile_nearest(x, 1, 0, room), -3, 0, "nearest");
  check(stats_percentile_linear(x, 1, 1, room), -3, 0, "linear");
  check(stats_mad(x, 1, room), 0, 0, "mad");
  check(stats_stdev(x, 1, false), 0, 0, "population");
  check(stats_stdev(x, 1, true), NAN, 0, "sample");
  check(stats_cv_percent((double[]){0}, 1), 0, 0, "cv");
  check(stats_cv_percent((double[]){NAN}, 1), NAN, 0, "cv of NaN");
}

static void nan_makes_nan_wherever_it_stands(void **state) {
  (void)state;
  for (size_t at = 0; at < 5; at++) {
    double x[] = {1, 2, 3, 4, 5};
    x[at] = NAN;
    check(stats_min(x, 5), NAN, 0, "min");
    check(stats_max(x, 5), NAN, 0, "max");
    check(stats_mean(x, 5), NAN, 0, "mean");
    check(stats_stdev(x, 5, false), NAN, 0, "stdev");
    check(stats_median(x, 5, room), NAN, 0, "median");
    check(stats_mad(x, 5, room), NAN, 0, "mad");
    check(stats_percentile_nearest(x, 5, 0, room), NAN, 0, "nearest");
    check(stats_percentile_linear(x, 5, 1, room), NAN, 0, "linear");
    check(stats_mann_whitney(x, 5, x, 5, room).p, NAN, 0, "p");
  }
}

static void extremes_do_not_overflow(void **state) {
  (void)state;
  check(stats_median((double[]){DBL_MAX, DBL_MAX}, 2, room), DBL_MAX, 0, "large");
  check(
    stats_median((double[]){-INFINITY, INFINITY, INFINITY}, 3, room), INFINITY, 0, "inf");
  check(stats_percentile_linear((double[]){INFINITY, INFINITY}, 2, 0.5, room),
        INFINITY,
        0,
        "q");
  check(stats_mad((double[]){INFINITY, INFINITY, 1}, 3, room), 0, 0, "mad of infinities");
}

static uint32_t next = 1;

static uint32_t roll(uint32_t below) {
  next = next * 1664525 + 1013904223;
  return (next >> 8) % below;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Orders that break careless selection: random, few values, sorted, reversed, organ pipe.
 */
static void fill(double *x, size_t n, int shape) {
  for (size_t i = 0; i < n; i++) {
    double up = (double)i, down = (double)(n - i);
    switch (shape) {
      case 0: x[i] = roll(1 << 20); break;
      case 1: x[i] = roll(3); break;
      case 2: x[i] = up; break;
      case 3: x[i] = down; break;
      default: x[i] = fmin(up, down); break;
    }
  }
}

static void check_order(const double *x, const double *sorted, size_t n) {
  double middle = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  check(stats_median(x, n, room), middle, 0, "median");
  check(stats_min(x, n), sorted[0], 0, "min");
  check(stats_max(x, n), sorted[n - 1], 0, "max");
  for (int percent = 0; percent <= 100; percent += 5) {
    double q = percent / 100.0, rank = ceil(q * (double)n);
    size_t at = rank < 1 ? 0 : (size_t)rank - 1;
    check(stats_percentile_nearest(x, n, q, room), sorted[at], 0, "nearest");
    double place = (double)(n - 1) * q, part = place - floor(place);
    at = (size_t)place;
    double above = sorted[at + 1 < n ? at + 1 : at];
    double wanted = sorted[at] + part * (above - sorted[at]);
    check(stats_percentile_linear(x, n, q, room), wanted, 1e-14, "linear");
  }
}

static void order_statistics_equal_those_of_a_sort(void **state) {
  (void)state;
  static double x[MOST], before[MOST], sorted[MOST];
  static const size_t sizes[] = {1, 2, 3, 4, 10, 20, 24, 25, 26, 99, 100, 1000, 2999};
  for (size_t i = 0; i < COUNT(sizes); i++) {
    for (int shape = 0; shape < 5; shape++) {
      size_t n = sizes[i];
      fill(x, n, shape);
      memcpy(before, x, sizeof x);
      memcpy(sorted, x, sizeof x);
      qsort(sorted, n, sizeof *sorted, compare);
      check_order(x, sorted, n);
      assert_memory_equal(x, before, sizeof x); /* the input is never changed */
    }
  }
}

static struct stats_interval bootstrap(const double *x, size_t n, uint64_t seed) {
  static double medians[4000];
  static uint32_t counts[MOST];
  const struct stats_bootstrap o = {.confidence = 0.9, .resamples = 4000, .seed = seed};
  return stats_bootstrap_median(x, n, &o, room, medians, counts);
}

static double choose(int n, int k) {
  double ways = 1;
  for (int i = 1; i <= k; i++) ways = ways * (n - k + i) / i;
  return ways;
}

/* The exact distribution: the median of n draws is below place k exactly if at least
   (n + 1) / 2 of them are, which is binomial. n is odd. */
static double exact_below(int n, int k) {
  double p = 0, share = (double)k / n;
  for (int i = (n + 1) / 2; i <= n; i++) {
    p += choose(n, i) * pow(share, i) * pow(1 - share, n - i);
  }
  return p;
}

static void bootstrap_ends_are_the_exact_quantiles(void **state) {
  (void)state;
  double x[51];
  for (int i = 0; i < 51; i++) x[i] = i;
  for (uint64_t seed = 0; seed < 20; seed++) {
    struct stats_interval ends = bootstrap(x, 51, seed);
    /* 4000 resamples: the tail's share is known to 0.0034 (one sigma) */
    assert_true(exact_below(51, (int)ends.low) < 0.05 + 0.015);
    assert_true(exact_below(51, (int)ends.low + 1) > 0.05 - 0.015);
    assert_true(exact_below(51, (int)ends.high) < 0.95 + 0.015);
    assert_true(exact_below(51, (int)ends.high + 1) > 0.95 - 0.015);
  }
}

static void bootstrap_repeats_itself(void **state) {
  (void)state;
  double x[200];
  fill(x, 200, 0);
  struct stats_interval a = bootstrap(x, 200, 7), b = bootstrap(x, 200, 7);
  assert_memory_equal(&a, &b, sizeof a);
  b = bootstrap(x, 200, 8);
  assert_true(a.low != b.low || a.high != b.high);
  a = bootstrap((double[]){5}, 1, 1);
  check(a.low, 5, 0, "low of one");
  check(a.high, 5, 0, "high of one");
  check(bootstrap((double[]){5, NAN}, 2, 1).low, NAN, 0, "low of NaN");
}

/* Two-sided p by trying all ways to give `na` of n ranks to a. */
static double brute_p(int na, int n, double u) {
  double extreme = 0, all = 0, mean = na * (n - na) / 2.0;
  for (unsigned set = 0; set < 1u << n; set++) {
    if (__builtin_popcount(set) != na) continue;
    int pairs = 0, below = 0;
    for (int rank = 0; rank < n; rank++) {
      if (set >> rank & 1)
        pairs += below;
      else
        below++;
    }
    all++;
    extreme += fabs(pairs - mean) >= fabs(u - mean);
  }
  return extreme / all;
}

static void exact_p_equals_all_permutations(void **state) {
  (void)state;
  for (int trial = 0; trial < 60; trial++) {
    double pool[12], a[12], b[12];
    int n = 2 + (int)roll(11), na = 1 + (int)roll((uint32_t)n - 1);
    for (int i = 0; i < n; i++) pool[i] = i;
    for (int i = n - 1; i > 0; i--) {
      int j = (int)roll((uint32_t)i + 1);
      double t = pool[i];
      pool[i] = pool[j];
      pool[j] = t;
    }
    memcpy(a, pool, sizeof a);
    memcpy(b, pool + na, (size_t)(n - na) * sizeof *b);
    struct stats_mann_whitney t =
      stats_mann_whitney(a, (size_t)na, b, (size_t)(n - na), room);
    assert_true(t.is_exact);
    check(t.p, brute_p(na, n, t.u), 1e-12, "p");
  }
}

static void ties_are_corrected_for(void **state) {
  (void)state;
  /* Ranks 1, 3, 3, 3 | 5.5, 5.5, 7, 8 with a = {1, 2, 2, 3}, b = {2, 3, 4, 5}:
     u = 0 + 0.5 + 0.5 + 1.5 = 2.5; ties 3^3 - 3 + 2^3 - 2 = 30;
     variance = 16 / 12 * (9 - 30 / 56); z = -(5.5 - 0.5) / sqrt(variance). */
  const double a[] = {1, 2, 2, 3}, b[] = {2, 3, 4, 5};
  struct stats_mann_whitney t = stats_mann_whitney(a, 4, b, 4, room);
  double z = -5 / sqrt(16.0 / 12 * (9 - 30.0 / 56));
  assert_false(t.is_exact);
  check(t.u, 2.5, 0, "u");
  check(t.z, z, 1e-14, "z");
  check(t.p, erfc(-z / sqrt(2)), 1e-14, "p");
  t = stats_mann_whitney(b, 4, a, 4, room);
  check(t.u, 13.5, 0, "u the other way");
  check(t.z, -z, 1e-14, "z the other way");
  t = stats_mann_whitney((double[]){1, 1}, 2, (double[]){1, 1, 1}, 3, room);
  check(t.p, 1, 0, "p of equal values");
  check(t.z, 0, 0, "z of equal values");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_keep_what_rounding_loses),
    cmocka_unit_test(spread_has_its_textbook_values),
    cmocka_unit_test(one_value_has_answers),
    cmocka_unit_test(nan_makes_nan_wherever_it_stands),
    cmocka_unit_test(extremes_do_not_overflow),
    cmocka_unit_test(order_statistics_equal_those_of_a_sort),
    cmocka_unit_test(bootstrap_ends_are_the_exact_quantiles),
    cmocka_unit_test(bootstrap_repeats_itself),
    cmocka_unit_test(exact_p_equals_all_permutations),
    cmocka_unit_test(ties_are_corrected_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
