#include "host/stats.h"

#include "bindings/bind.h"
#include "bindings/open.h"
#include "bindings/stats.h"

#include <stdbool.h>
#include <stdint.h>

/* A sample with at least one number, from argument `arg`. */
static struct sample check_filled(lua_State *L, int arg) {
  struct sample s = stats_checksample(L, arg);
  luaL_argcheck(L, s.n > 0, arg, "empty: no number to work on");
  return s;
}

static void *scratch(lua_State *L, size_t n, size_t size) {
  return lua_newuserdatauv(L, n * size, 0);
}

static double *scratch_doubles(lua_State *L, size_t n) {
  return scratch(L, n, sizeof(double));
}

static int push(lua_State *L, double value) {
  lua_pushnumber(L, value);
  return 1;
}

static int sum(lua_State *L) {
  struct sample s = stats_checksample(L, 1);
  return push(L, stats_sum(s.x, s.n));
}

static int mean(lua_State *L) {
  struct sample s = check_filled(L, 1);
  return push(L, stats_mean(s.x, s.n));
}

static int geometric_mean(lua_State *L) {
  struct sample s = check_filled(L, 1);
  return push(L, stats_geometric_mean(s.x, s.n));
}

static int min(lua_State *L) {
  struct sample s = check_filled(L, 1);
  return push(L, stats_min(s.x, s.n));
}

static int max(lua_State *L) {
  struct sample s = check_filled(L, 1);
  return push(L, stats_max(s.x, s.n));
}

static int cv_percent(lua_State *L) {
  struct sample s = check_filled(L, 1);
  return push(L, stats_cv_percent(s.x, s.n));
}

static int median(lua_State *L) {
  struct sample s = check_filled(L, 1);
  return push(L, stats_median(s.x, s.n, scratch_doubles(L, s.n)));
}

static int mad(lua_State *L) {
  struct sample s = check_filled(L, 1);
  return push(L, stats_mad(s.x, s.n, scratch_doubles(L, s.n)));
}

static int stdev(lua_State *L) {
  static const char *const kinds[] = {"population", "sample", NULL};
  bool is_sample = bind_checkname(L, 2, kinds);
  struct sample s = check_filled(L, 1);
  return push(L, stats_stdev(s.x, s.n, is_sample));
}

static int percentile(lua_State *L) {
  static const char *const methods[] = {"nearest_rank", "linear", NULL};
  double q = luaL_checknumber(L, 2);
  luaL_argcheck(L, q >= 0 && q <= 1, 2, "expected 0 to 1");
  bool is_linear = bind_checkname(L, 3, methods);
  struct sample s = check_filled(L, 1);
  double *room = scratch_doubles(L, s.n);
  return push(L,
              is_linear ? stats_percentile_linear(s.x, s.n, q, room)
                        : stats_percentile_nearest(s.x, s.n, q, room));
}

static int summary(lua_State *L) {
  struct sample s = check_filled(L, 1);
  double *room = scratch_doubles(L, s.n);
  const struct {
    const char *name;
    double value;
  } fields[] = {
    {"mean", stats_mean(s.x, s.n)},
    {"median", stats_median(s.x, s.n, room)},
    {"mad", stats_mad(s.x, s.n, room)},
    {"stdev", stats_stdev(s.x, s.n, false)},
    {"cv_percent", stats_cv_percent(s.x, s.n)},
    {"min", stats_min(s.x, s.n)},
    {"max", stats_max(s.x, s.n)},
    {"p05", stats_percentile_nearest(s.x, s.n, 0.05, room)},
    {"p25", stats_percentile_nearest(s.x, s.n, 0.25, room)},
    {"p75", stats_percentile_nearest(s.x, s.n, 0.75, room)},
    {"p95", stats_percentile_nearest(s.x, s.n, 0.95, room)},
    {"p99", stats_percentile_nearest(s.x, s.n, 0.99, room)},
  };
  lua_createtable(L, 0, COUNT(fields) + 1);
  for (size_t i = 0; i < COUNT(fields); i++) {
    lua_pushnumber(L, fields[i].value);
    lua_setfield(L, -2, fields[i].name);
  }
  lua_pushinteger(L, (lua_Integer)s.n);
  lua_setfield(L, -2, "count");
  return 1;
}

static int bootstrap_median(lua_State *L) {
  struct options {
    double confidence;
    size_t resamples, seed;
  } o = {0.95, 2000, 1};
  static const struct bind_field fields[] = {
    {"confidence", BIND_NUMBER, offsetof(struct options, confidence), .max = 1},
    {"resamples", BIND_SIZE, offsetof(struct options, resamples), .min = 1, .max = 1e7},
    {"seed", BIND_SIZE, offsetof(struct options, seed)},
    {NULL},
  };
  bind_fields(L, 2, fields, &o);
  luaL_argcheck(L, o.confidence > 0 && o.confidence < 1, 2, "confidence: not within 0, 1");
  struct sample s = check_filled(L, 1);
  luaL_argcheck(L, s.n <= UINT32_MAX, 1, "too many numbers");
  double *room = scratch_doubles(L, s.n), *medians = scratch_doubles(L, o.resamples);
  uint32_t *counts = scratch(L, s.n, sizeof *counts);
  struct stats_interval ends =
    stats_bootstrap_median(s.x,
                           s.n,
                           &(struct stats_bootstrap){o.confidence, o.resamples, o.seed},
                           room,
                           medians,
                           counts);
  lua_pushnumber(L, ends.low);
  lua_pushnumber(L, ends.high);
  return 2;
}

static int mann_whitney(lua_State *L) {
  lua_settop(L, 2); /* what a check pushes must not pass for a missing argument */
  struct sample a = check_filled(L, 1), b = check_filled(L, 2);
  struct stats_mann_whitney t =
    stats_mann_whitney(a.x, a.n, b.x, b.n, scratch_doubles(L, a.n + b.n));
  lua_createtable(L, 0, 4);
  lua_pushnumber(L, t.u);
  lua_setfield(L, -2, "u");
  lua_pushnumber(L, t.z);
  lua_setfield(L, -2, "z");
  lua_pushnumber(L, t.p);
  lua_setfield(L, -2, "p");
  lua_pushboolean(L, t.is_exact);
  lua_setfield(L, -2, "exact");
  return 1;
}

/* Methods of vectors, too. */
static const luaL_Reg functions[] = {
  {"sum", sum},
  {"mean", mean},
  {"geometric_mean", geometric_mean},
  {"min", min},
  {"max", max},
  {"stdev", stdev},
  {"cv_percent", cv_percent},
  {"median", median},
  {"mad", mad},
  {"percentile", percentile},
  {"summary", summary},
  {"bootstrap_median", bootstrap_median},
  {"mann_whitney", mann_whitney},
  {NULL, NULL},
};

static const luaL_Reg makers[] = {
  {"vector", stats_vector},
  {"from_string", stats_from_string},
  {"from_file", stats_from_file},
  {NULL, NULL},
};

int luaopen_nclua_stats(lua_State *L) {
  luaL_checkversion(L);
  stats_opentypes(L, functions);
  luaL_newlib(L, functions);
  luaL_setfuncs(L, makers, 0);
  return 1;
}
