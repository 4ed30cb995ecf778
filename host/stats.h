#ifndef HOST_STATS_H
#define HOST_STATS_H

/* Statistics over arrays of doubles. No function changes x; what has to order it takes
   `scratch`, room for n doubles (for two samples: na + nb). n is at least 1 unless said.
   A NaN anywhere in x makes every result NaN. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Neumaier's compensated sum; 0 for n = 0. Infinities behave as in a plain sum. */
double stats_sum(const double *x, size_t n);

double stats_mean(const double *x, size_t n);
double stats_min(const double *x, size_t n);
double stats_max(const double *x, size_t n);

/* exp of the mean logarithm: 0 if a value is 0, NaN if one is negative. */
double stats_geometric_mean(const double *x, size_t n);

/* Divides by n, or by n - 1 if `is_sample` (NaN for one value). */
double stats_stdev(const double *x, size_t n, bool is_sample);

/* Population deviation over the mean, in percent; 0 for one value. */
double stats_cv_percent(const double *x, size_t n);

/* The middle value, or the mean of the two in the middle. */
double stats_median(const double *x, size_t n, double *scratch);

/* ordered[ceil(q n) - 1], the first for q = 0; q from 0 to 1. */
double stats_percentile_nearest(const double *x, size_t n, double q, double *scratch);

/* Between the neighbours of the 0-based place (n - 1) q. */
double stats_percentile_linear(const double *x, size_t n, double q, double *scratch);

/* Median distance from the median, not scaled. */
double stats_mad(const double *x, size_t n, double *scratch);

struct stats_bootstrap {
  double confidence; /* strictly between 0 and 1 */
  size_t resamples;  /* at least 1 */
  uint64_t seed;
};

struct stats_interval {
  double low, high;
};

/* Percentile interval of the median of resamples drawn with replacement. The same seed
   gives the same bits on every machine. `medians` has room for o->resamples doubles,
   `counts` for n integers. */
struct stats_interval stats_bootstrap_median(const double *x, size_t n,
                                             const struct stats_bootstrap *o,
                                             double *scratch, double *medians,
                                             uint32_t *counts);

struct stats_mann_whitney {
  double u;      /* pairs in which a's value is the larger one; a tie counts a half */
  double z;      /* of u, with tie and continuity correction; 0 if all values are equal */
  double p;      /* two-sided */
  bool is_exact; /* p from the exact distribution: no ties, at most 40 values */
};

struct stats_mann_whitney stats_mann_whitney(const double *a, size_t na, const double *b,
                                             size_t nb, double *scratch);

#endif
