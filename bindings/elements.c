#include "bindings/bind.h"
#include "bindings/open.h"

#include "host/dtype.h"
#include "host/half.h"

#include <math.h>
#include <string.h>

/* Arithmetic on strings of elements, one at a time and as plainly as can be: what the fast
   kernels of a backend are held against. Rounded as NCCL's kernels round (reduce_kernel.h,
   2.28): f16 and bf16 are computed in float and rounded once; max and min pass over NaN and
   order -0 below +0; any NaN comes out as one. */

enum op { SUM, PROD, MAX, MIN };
static const char *const ops[] = {"sum", "prod", "max", "min", NULL};

/* Integers do not depend on any order, f8 is not reduced in its own precision. */
static const char *const types[] = {"f16", "bf16", "f32", "f64", NULL};
enum type { F16, BF16, F32, F64 };
static const size_t sizes[] = {2, 2, 4, 8};

static double load(enum type type, const char *at) {
  uint16_t small;
  float f;
  double d;
  switch (type) {
    case F64: memcpy(&d, at, sizeof d); return d;
    case F32: memcpy(&f, at, sizeof f); return (double)f;
    default: memcpy(&small, at, sizeof small);
  }
  return (double)(type == F16 ? half_from_f16(small) : half_from_bf16(small));
}

static void store_nan(enum type type, char *at) {
  static const uint64_t bits[] = {0x7fff, 0x7fff, 0x7fffffff, 0x7fffffffffffffff};
  const uint64_t nan_bits = bits[type];
  memcpy(at, &nan_bits, sizes[type]); /* little-endian, as all that runs this */
}

/* `value` was computed in double from elements of the type, which for f32 and below is
   exact or wide enough that rounding it to float rounds as computing in float does. */
static void store(enum type type, char *at, double value) {
  const float f = (float)value;
  uint16_t small;
  if (isnan(value)) {
    store_nan(type, at);
    return;
  }
  switch (type) {
    case F64: memcpy(at, &value, sizeof value); return;
    case F32: memcpy(at, &f, sizeof f); return;
    default: small = type == F16 ? half_to_f16(f) : half_to_bf16(f);
  }
  memcpy(at, &small, sizeof small);
}

static double larger(double a, double b) {
  if (isnan(a)) return b;
  if (isnan(b)) return a;
  if (a == b) return signbit(a) ? b : a;
  return a > b ? a : b;
}

static double combine(enum op op, double a, double b) {
  switch (op) {
    case SUM: return a + b;
    case PROD: return a * b;
    case MAX: return larger(a, b);
    default: return -larger(-a, -b);
  }
}

static const char *check_elements(lua_State *L, int arg, enum type type, size_t *bytes) {
  const char *text = luaL_checklstring(L, arg, bytes);
  luaL_argcheck(L, *bytes % sizes[type] == 0, arg, "not a whole number of elements");
  return text;
}

/* elements.reduce(dtype, op, a, b) */
static int reduce(lua_State *L) {
  size_t bytes, other;
  const enum type type = (enum type)bind_checkname(L, 1, types);
  const enum op op = (enum op)bind_checkname(L, 2, ops);
  const char *a = check_elements(L, 3, type, &bytes);
  const char *b = check_elements(L, 4, type, &other);
  luaL_argcheck(L, bytes == other, 4, "not as long as the other string");
  luaL_Buffer buffer;
  char *to = luaL_buffinitsize(L, &buffer, bytes);
  for (size_t at = 0; at < bytes; at += sizes[type]) {
    store(type, to + at, combine(op, load(type, a + at), load(type, b + at)));
  }
  luaL_pushresultsize(&buffer, bytes);
  return 1;
}

/* elements.scale(dtype, a, factor): the factor is rounded to the type first. */
static int scale(lua_State *L) {
  size_t bytes;
  char rounded[sizeof(double)];
  const enum type type = (enum type)bind_checkname(L, 1, types);
  const char *a = check_elements(L, 2, type, &bytes);
  store(type, rounded, luaL_checknumber(L, 3));
  const double factor = load(type, rounded);
  luaL_Buffer buffer;
  char *to = luaL_buffinitsize(L, &buffer, bytes);
  for (size_t at = 0; at < bytes; at += sizes[type]) {
    store(type, to + at, load(type, a + at) * factor);
  }
  luaL_pushresultsize(&buffer, bytes);
  return 1;
}

static const luaL_Reg functions[] = {
  {"reduce", reduce},
  {"scale", scale},
  {NULL, NULL},
};

int luaopen_nclua_elements(lua_State *L) {
  luaL_newlib(L, functions);
  return 1;
}
