#include "host/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A running sum that also keeps what rounding lost (Neumaier 1974). */
struct total {
  double sum, lost;
};

static void add(struct total *t, double value) {
  double sum = t->sum + value;
  t->lost += fabs(t->sum) >= fabs(value) ? t->sum - sum + value : value - sum + t->sum;
  t->sum = sum;
}

static double total(const struct total *t) {
  return isfinite(t->sum) ? t->sum + t->lost : t->sum; /* infinity - infinity is NaN */
}

double stats_sum(const double *x, size_t n) {
  struct total t = {0};
  for (size_t i = 0; i < n; i++) add(&t, x[i]);
  return total(&t);
}

double stats_mean(const double *x, size_t n) {
  return stats_sum(x, n) / (double)n;
}

double stats_min(const double *x, size_t n) {
  double least = x[0];
  for (size_t i = 1; i < n && !isnan(least); i++) {
    if (!(x[i] >= least)) least = x[i]; /* true for NaN */
  }
  return least;
}

double stats_max(const double *x, size_t n) {
  double most = x[0];
  for (size_t i = 1; i < n && !isnan(most); i++) {
    if (!(x[i] <= most)) most = x[i];
  }
  return most;
}

double stats_geometric_mean(const double *x, size_t n) {
  struct total t = {0};
  for (size_t i = 0; i < n; i++) add(&t, log(x[i]));
  return exp(total(&t) / (double)n);
}

double stats_stdev(const double *x, size_t n, bool is_sample) {
  double mean = stats_mean(x, n);
  struct total squares = {0};
  for (size_t i = 0; i < n; i++) add(&squares, (x[i] - mean) * (x[i] - mean));
  return sqrt(total(&squares) / (double)(n - is_sample));
}

double stats_cv_percent(const double *x, size_t n) {
  if (n == 1 && !isnan(x[0])) return 0;
  return stats_stdev(x, n, false) / stats_mean(x, n) * 100;
}

static bool has_nan(const double *x, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (isnan(x[i])) return true;
  }
  return false;
}

static void swap(double *a, double *b) {
  double t = *a;
  *a = *b;
  *b = t;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void sort(double *x, size_t n) {
  qsort(x, n, sizeof *x, compare);
}

/* Orders the first, middle and last of x[0..n-1] and returns the middle one. */
static double middle_of_three(double *x, size_t n) {
  double *first = x, *middle = x + n / 2, *last = x + n - 1;
  if (*middle < *first) swap(middle, first);
  if (*last < *first) swap(last, first);
  if (*last < *middle) swap(last, middle);
  return *middle;
}

enum { FEW = 24 }; /* below that, sorting is as cheap as another partition */

static void insertion_sort(double *x, size_t n) {
  for (size_t i = 1; i < n; i++) {
    double value = x[i];
    size_t j = i;
    for (; j > 0 && x[j - 1] > value; j--) x[j] = x[j - 1];
    x[j] = value;
  }
}

/* Hoare's FIND: x[k] becomes what sorting would put there, smaller or equal values before
   it, larger or equal ones after it. No NaN in x. */
static double place(double *x, size_t n, size_t k) {
  double *const base = x;
  size_t rounds = 64; /* twice what random order needs for 2^32 values */
  const size_t wanted = k;
  while (n > FEW && rounds-- > 0) {
    double pivot = middle_of_three(x, n);
    size_t i = 0, j = n - 1;
    while (i <= j) {
      while (x[i] < pivot) i++;
      while (x[j] > pivot) j--;
      if (i > j) break;
      swap(&x[i++], &x[j--]); /* j cannot pass 0: i stops at the pivot first */
    }
    if (k > j && k < i) return base[wanted];
    if (k >= i) {
      x += i;
      k -= i;
      n -= i;
    } else {
      n = j + 1;
    }
  }
  if (n > FEW)
    sort(x, n); /* an order made to defeat the pivots */
  else
    insertion_sort(x, n);
  return base[wanted];
}

/* The mean of two values, also where their sum overflows. */
static double between(double a, double b) {
  double sum = a + b;
  return isinf(sum) ? a / 2 + b / 2 : sum / 2;
}

/* The median of an array that it may reorder. */
static double take_median(double *x, size_t n) {
  double upper = place(x, n, n / 2);
  return n % 2 ? upper : between(stats_max(x, n / 2), upper);
}

double stats_median(const double *x, size_t n, double *scratch) {
  if (has_nan(x, n)) return NAN;
  memcpy(scratch, x, n * sizeof *x);
  return take_median(scratch, n);
}

double stats_percentile_nearest(const double *x, size_t n, double q, double *scratch) {
  if (has_nan(x, n)) return NAN;
  memcpy(scratch, x, n * sizeof *x);
  size_t rank = (size_t)ceil(q * (double)n);
  if (rank > n) rank = n;
  return place(scratch, n, rank ? rank - 1 : 0);
}

/* Nothing to interpolate is an answer of its own: infinity - infinity would be NaN. */
static double interpolate(double low, double high, double part) {
  return part == 0 || low == high ? low : low + part * (high - low);
}

double stats_percentile_linear(const double *x, size_t n, double q, double *scratch) {
  if (has_nan(x, n)) return NAN;
  memcpy(scratch, x, n * sizeof *x);
  double at = (double)(n - 1) * q;
  size_t k = (size_t)at;
  if (k + 1 >= n) return place(scratch, n, n - 1);
  double low = place(scratch, n, k);
  return interpolate(low, stats_min(scratch + k + 1, n - k - 1), at - (double)k);
}

double stats_mad(const double *x, size_t n, double *scratch) {
  double median = stats_median(x, n, scratch);
  if (isnan(median)) return median;
  for (size_t i = 0; i < n; i++) scratch[i] = x[i] == median ? 0 : fabs(x[i] - median);
  return take_median(scratch, n);
}

/* splitmix64, which its authors recommend for seeding xoshiro (Blackman, Vigna 2018). */
static uint64_t mix(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

struct random {
  uint64_t s[4];
};

static uint64_t rotate(uint64_t x, int by) {
  return x << by | x >> (64 - by);
}

/* xoshiro256** */
static uint64_t draw(struct random *r) {
  uint64_t *s = r->s, result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotate(s[3], 45);
  return result;
}

/* 0 to n - 1 by multiplication (Lemire 2019); its bias, n / 2^64, is below any noise. */
static size_t draw_below(struct random *r, size_t n) {
  return (size_t)((unsigned __int128)draw(r) * n >> 64);
}

/* The median of n draws from a sorted array: only how often each place came matters. */
static double draw_median(const double *sorted, size_t n, struct random *r,
                          uint32_t *counts) {
  memset(counts, 0, n * sizeof *counts);
  for (size_t i = 0; i < n; i++) counts[draw_below(r, n)]++;
  size_t k = 0, seen = counts[0];
  const size_t lower = (n - 1) / 2, upper = n / 2;
  while (seen <= lower) seen += counts[++k];
  double low = sorted[k];
  while (seen <= upper) seen += counts[++k];
  return between(low, sorted[k]);
}

struct stats_interval stats_bootstrap_median(const double *x, size_t n,
                                             const struct stats_bootstrap *o,
                                             double *scratch, double *medians,
                                             uint32_t *counts) {
  if (has_nan(x, n)) return (struct stats_interval){NAN, NAN};
  memcpy(scratch, x, n * sizeof *x);
  sort(scratch, n);
  uint64_t seed = o->seed;
  struct random r;
  for (int i = 0; i < 4; i++) r.s[i] = mix(&seed);
  for (size_t i = 0; i < o->resamples; i++) {
    medians[i] = draw_median(scratch, n, &r, counts);
  }
  sort(medians, o->resamples);
  double tail = (1 - o->confidence) / 2, last = (double)(o->resamples - 1);
  size_t low = (size_t)floor(tail * last), high = o->resamples - 1 - low;
  return (struct stats_interval){medians[low], medians[high]};
}

/* Counts, over two sorted samples, pairs with a > b, and sums t^3 - t over groups of ties.
 */
static double count_pairs(const double *a, size_t na, const double *b, size_t nb,
                          double *ties) {
  double u = 0;
  *ties = 0;
  for (size_t i = 0, j = 0; i < na || j < nb;) {
    double value = j >= nb || (i < na && a[i] < b[j]) ? a[i] : b[j];
    size_t first_a = i, first_b = j;
    while (i < na && a[i] == value) i++;
    while (j < nb && b[j] == value) j++;
    double same_a = (double)(i - first_a), same_b = (double)(j - first_b);
    double same = same_a + same_b;
    u += same_a * ((double)first_b + same_b / 2);
    *ties += same * same * same - same;
  }
  return u;
}

enum { EXACT_MOST = 40 }; /* C(40, 20) and all counts below it are exact doubles */

/* Two-sided p of u without ties. The counts are the coefficients of a Gaussian binomial:
   the product of (1 - q^(nb + i)) / (1 - q^i) for i = 1 to na. */
static double exact_p(size_t na, size_t nb, double u) {
  double ways[EXACT_MOST * EXACT_MOST / 4 + 1] = {1};
  size_t most = na * nb;
  for (size_t i = 1; i <= na; i++) {
    for (size_t k = most; k >= nb + i; k--) ways[k] -= ways[k - nb - i];
    for (size_t k = i; k <= most; k++) ways[k] += ways[k - i];
  }
  size_t edge = (size_t)fmin(u, (double)most - u);
  double p = 2 * stats_sum(ways, edge + 1) / stats_sum(ways, most + 1);
  return p < 1 ? p : 1;
}

/* z of u by the normal approximation, moved half a step towards the mean. */
static double normal_z(double na, double nb, double u, double ties) {
  double n = na + nb;
  double variance = na * nb / 12 * (n + 1 - ties / (n * (n - 1)));
  double off = fabs(u - na * nb / 2) - 0.5;
  if (off <= 0 || variance <= 0) return 0;
  return copysign(off / sqrt(variance), u - na * nb / 2);
}

struct stats_mann_whitney stats_mann_whitney(const double *a, size_t na, const double *b,
                                             size_t nb, double *scratch) {
  if (has_nan(a, na) || has_nan(b, nb)) {
    return (struct stats_mann_whitney){NAN, NAN, NAN, false};
  }
  memcpy(scratch, a, na * sizeof *a);
  memcpy(scratch + na, b, nb * sizeof *b);
  sort(scratch, na);
  sort(scratch + na, nb);
  double ties;
  double u = count_pairs(scratch, na, scratch + na, nb, &ties);
  double z = normal_z((double)na, (double)nb, u, ties);
  bool is_exact = ties == 0 && na + nb <= EXACT_MOST;
  double p = is_exact ? exact_p(na, nb, u) : erfc(fabs(z) * M_SQRT1_2);
  return (struct stats_mann_whitney){u, z, p, is_exact};
}
