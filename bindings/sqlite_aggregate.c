/* median, percentile, stdev and cv in SQL, over the same functions as nclua.stats. */

#include "bindings/bind.h"
#include "bindings/sqlite.h"
#include "host/stats.h"

#include <string.h>

/* What an aggregate has seen; SQLite zeroes it. `q` and `word` are further arguments, from
   the first row. */
struct seen {
  double *x;
  size_t n, room;
  double q;
  bool is_other; /* "linear" or "sample" */
  bool is_begun, has_failed;
};

struct aggregate {
  const char *name;
  int arguments;
  const char *usual, *other; /* the words of the last argument */
  double (*reduce)(const struct seen *s, double *scratch);
};

static double median(const struct seen *s, double *scratch) {
  return stats_median(s->x, s->n, scratch);
}

static double percentile(const struct seen *s, double *scratch) {
  return s->is_other ? stats_percentile_linear(s->x, s->n, s->q, scratch)
                     : stats_percentile_nearest(s->x, s->n, s->q, scratch);
}

static double stdev(const struct seen *s, double *scratch) {
  (void)scratch;
  return stats_stdev(s->x, s->n, s->is_other);
}

static double cv(const struct seen *s, double *scratch) {
  (void)scratch;
  return stats_cv_percent(s->x, s->n);
}

static const struct aggregate aggregates[] = {
  {"median", 1, NULL, NULL, median},
  {"percentile", 2, NULL, NULL, percentile},
  {"percentile", 3, "nearest_rank", "linear", percentile},
  {"stdev", 1, NULL, NULL, stdev},
  {"stdev", 2, "population", "sample", stdev},
  {"cv", 1, NULL, NULL, cv},
};

static void fail(sqlite3_context *context, struct seen *s, const char *problem,
                 const char *got) {
  const struct aggregate *a = sqlite3_user_data(context);
  char *text = sqlite3_mprintf("%s: %s, got '%.40s'", a->name, problem, got ? got : "NULL");
  sqlite3_result_error(context, text ? text : problem, -1);
  sqlite3_free(text);
  s->has_failed = true;
}

static bool is_number(sqlite3_value *value) {
  int type = sqlite3_value_numeric_type(value);
  return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

static void read_word(sqlite3_context *context, struct seen *s, sqlite3_value *value) {
  const struct aggregate *a = sqlite3_user_data(context);
  const char *word = (const char *)sqlite3_value_text(value);
  s->is_other = word && strcmp(word, a->other) == 0;
  if (s->is_other || (word && strcmp(word, a->usual) == 0)) return;
  char problem[80];
  sqlite3_snprintf(sizeof problem, problem, "expected '%s' or '%s'", a->usual, a->other);
  fail(context, s, problem, word);
}

/* Arguments after the first do not vary over the rows. */
static void begin(sqlite3_context *context, struct seen *s, int count,
                  sqlite3_value **values) {
  const struct aggregate *a = sqlite3_user_data(context);
  s->is_begun = true;
  if (a->reduce == percentile) {
    s->q = sqlite3_value_double(values[1]);
    if (!is_number(values[1]) || !(s->q >= 0 && s->q <= 1)) {
      fail(context, s, "expected 0 to 1", (const char *)sqlite3_value_text(values[1]));
      return;
    }
  }
  if (a->other) read_word(context, s, values[count - 1]);
}

static bool append(struct seen *s, double value) {
  if (s->n == s->room) {
    size_t room = s->room ? s->room * 2 : 64;
    double *x = sqlite3_realloc64(s->x, room * sizeof *x);
    if (!x) return false;
    s->x = x;
    s->room = room;
  }
  s->x[s->n++] = value;
  return true;
}

static void step(sqlite3_context *context, int count, sqlite3_value **values) {
  struct seen *s = sqlite3_aggregate_context(context, sizeof *s);
  if (!s) {
    sqlite3_result_error_nomem(context);
    return;
  }
  if (!s->is_begun) begin(context, s, count, values);
  if (s->has_failed || sqlite3_value_type(values[0]) == SQLITE_NULL) return;
  if (!is_number(values[0])) {
    fail(context, s, "expected a number", (const char *)sqlite3_value_text(values[0]));
  } else if (!append(s, sqlite3_value_double(values[0]))) {
    sqlite3_result_error_nomem(context);
    s->has_failed = true;
  }
}

static void finish(sqlite3_context *context, const struct seen *s) {
  const struct aggregate *a = sqlite3_user_data(context);
  double *scratch = sqlite3_malloc64(s->n * sizeof *scratch);
  if (scratch)
    sqlite3_result_double(context, a->reduce(s, scratch));
  else
    sqlite3_result_error_nomem(context);
  sqlite3_free(scratch);
}

/* Called after an error, too, and for no rows at all. */
static void final(sqlite3_context *context) {
  struct seen *s = sqlite3_aggregate_context(context, 0);
  if (!s) return; /* the result is NULL */
  if (s->n && !s->has_failed) finish(context, s);
  sqlite3_free(s->x);
}

int sqlite_addaggregates(sqlite3 *db) {
  enum { FLAGS = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS };
  for (size_t i = 0; i < COUNT(aggregates); i++) {
    const struct aggregate *a = &aggregates[i];
    int rc = sqlite3_create_function_v2(
      db, a->name, a->arguments, FLAGS, (void *)a, NULL, step, final, NULL);
    if (rc) return rc;
  }
  return 0;
}
