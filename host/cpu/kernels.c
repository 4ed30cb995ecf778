#include "host/cpu/kernels.h"

#include "host/half.h"

#include <string.h>

#ifdef __F16C__
#include <immintrin.h>
#endif

/* Floats as NCCL reduces them (src/device/reduce_kernel.h, 2.28, on sm_90): max and min
   pass over NaN, as fmaxf and __hmax do, and order -0 below +0; any other NaN comes out as
   the GPU's, all ones. f8 is computed in f16 and converted with saturation: no infinities.
 */

/* Elements of the small formats are widened block by block, in the first-level cache. */
enum { BLOCK = 256 };

/* No iteration reads what another one writes: dst is a, or b, or apart from both. */
#define EACH(i, count) _Pragma("GCC ivdep") for (size_t i = 0; i < (count); i++)

static inline uint32_t bits32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline uint64_t bits64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline double double_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* All bits set where the condition holds: selection without a branch. */
#define MASK32(condition) (-(uint32_t)(condition))
#define MASK64(condition) (-(uint64_t)(condition))

static inline float quiet32(float x) {
  const uint32_t is_nan = MASK32(x != x);
  return float_of((bits32(x) & ~is_nan) | (is_nan & 0x7fffffff));
}

static inline double quiet64(double x) {
  const uint64_t is_nan = MASK64(x != x);
  return double_of((bits64(x) & ~is_nan) | (is_nan & UINT64_C(0x7fffffffffffffff)));
}

/* `equal` is what two values that compare equal give: the same, but for the zeros. */
static inline float select32(float a, float b, uint32_t a_first, uint32_t b_first,
                             uint32_t equal) {
  const uint32_t x = bits32(a), y = bits32(b);
  const uint32_t a_wins = a_first | MASK32(b != b), b_wins = b_first | MASK32(a != a);
  const uint32_t both = a_wins & b_wins; /* both NaN */
  const uint32_t winner = (x & a_wins) | (y & b_wins) | (equal & ~a_wins & ~b_wins);
  return float_of((winner & ~both) | (both & 0x7fffffff));
}

static inline double select64(double a, double b, uint64_t a_first, uint64_t b_first,
                              uint64_t equal) {
  const uint64_t x = bits64(a), y = bits64(b);
  const uint64_t a_wins = a_first | MASK64(b != b), b_wins = b_first | MASK64(a != a);
  const uint64_t both = a_wins & b_wins;
  const uint64_t winner = (x & a_wins) | (y & b_wins) | (equal & ~a_wins & ~b_wins);
  return double_of((winner & ~both) | (both & UINT64_C(0x7fffffffffffffff)));
}

static inline float sum32(float a, float b) {
  return quiet32(a + b);
}

static inline float prod32(float a, float b) {
  return quiet32(a * b);
}

static inline float max32(float a, float b) {
  return select32(a, b, MASK32(a > b), MASK32(b > a), bits32(a) & bits32(b));
}

static inline float min32(float a, float b) {
  return select32(a, b, MASK32(a < b), MASK32(b < a), bits32(a) | bits32(b));
}

static inline double sum64(double a, double b) {
  return quiet64(a + b);
}

static inline double prod64(double a, double b) {
  return quiet64(a * b);
}

static inline double max64(double a, double b) {
  return select64(a, b, MASK64(a > b), MASK64(b > a), bits64(a) & bits64(b));
}

static inline double min64(double a, double b) {
  return select64(a, b, MASK64(a < b), MASK64(b < a), bits64(a) | bits64(b));
}

/* f16 */

static inline void widen_f16(float *restrict to, const uint16_t *restrict from,
                             size_t count) {
  size_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from + i))));
  }
#endif
  for (; i < count; i++) to[i] = half_from_f16(from[i]);
}

static inline void narrow_f16(uint16_t *restrict to, const float *restrict from,
                              size_t count) {
  size_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128((void *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
  }
#endif
  for (; i < count; i++) to[i] = half_to_f16(from[i]);
}

/* bf16: half.c's conversions, in a form that the compiler vectorises. */

static inline void widen_bf16(float *restrict to, const uint16_t *restrict from,
                              size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = float_of((uint32_t)from[i] << 16);
}

static inline void narrow_bf16(uint16_t *restrict to, const float *restrict from,
                               size_t count) {
  for (size_t i = 0; i < count; i++) {
    const uint32_t bits = bits32(from[i]), is_nan = MASK32(from[i] != from[i]);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    to[i] = (uint16_t)((rounded & ~is_nan) | (0x7fff & is_nan));
  }
}

/* f8e5m2: the upper byte of an f16. */

static inline void widen_f8e5m2(float *restrict to, const uint8_t *restrict from,
                                size_t count) {
  uint16_t half[BLOCK];
  for (size_t i = 0; i < count; i++) half[i] = (uint16_t)(from[i] << 8);
  widen_f16(to, half, count);
}

static inline void narrow_f8e5m2(uint8_t *restrict to, const float *restrict from,
                                 size_t count) {
  uint16_t half[BLOCK];
  narrow_f16(half, from, count);
  for (size_t i = 0; i < count; i++) {
    const uint32_t bits = half[i], magnitude = bits & 0x7fff;
    const uint32_t rounded = (magnitude + 0x7f + (magnitude >> 8 & 1)) >> 8;
    const uint32_t finite = rounded < 0x7b ? rounded : 0x7b;
    const uint32_t code = (bits >> 8 & 0x80) | finite;
    to[i] = (uint8_t)(magnitude > 0x7c00 ? 0x7f : code);
  }
}

/* f8e4m3: as an f16 whose exponent is 8 too low. */

static inline void widen_f8e4m3(float *restrict to, const uint8_t *restrict from,
                                size_t count) {
  uint16_t half[BLOCK];
  for (size_t i = 0; i < count; i++) {
    half[i] = (uint16_t)((from[i] & 0x80) << 8 | (from[i] & 0x7f) << 7);
  }
  widen_f16(to, half, count);
  for (size_t i = 0; i < count; i++) {
    const uint32_t is_nan = MASK32((from[i] & 0x7f) == 0x7f);
    to[i] = float_of(bits32(to[i] * 256) | (is_nan & 0x7fffffff));
  }
}

static inline void narrow_f8e4m3(uint8_t *restrict to, const float *restrict from,
                                 size_t count) {
  uint16_t half[BLOCK];
  float value[BLOCK];
  narrow_f16(half, from, count);
  widen_f16(value, half, count);
  for (size_t i = 0; i < count; i++) {
    const uint32_t bits = bits32(value[i]), magnitude = bits & 0x7fffffff;
    const uint32_t rebased = magnitude - (120u << 23);
    const uint32_t normal = (rebased + 0x7ffff + (rebased >> 20 & 1)) >> 20;
    /* Adding 2^23 leaves the number of units of 2^-9 in the low bits, rounded. */
    const uint32_t subnormal = bits32(float_of(magnitude) * 512 + 8388608) & 0x7f;
    const uint32_t rounded = magnitude < 121u << 23 ? subnormal : normal;
    const uint32_t finite = rounded < 0x7e ? rounded : 0x7e;
    const uint32_t code = (bits >> 24 & 0x80) | finite;
    to[i] = (uint8_t)(magnitude > 0x7f800000 ? 0x7f : code);
  }
}

/* The loops. C has no templates; four small macros stand for them. */

#define REDUCE(name, T, expression)                                                        \
  static void name(void *dst, const void *src_a, const void *src_b, size_t count) {        \
    T *d = dst;                                                                            \
    const T *x = src_a, *y = src_b;                                                        \
    EACH(i, count) {                                                                       \
      const T a = x[i], b = y[i];                                                          \
      d[i] = (T)(expression);                                                              \
    }                                                                                      \
  }

#define INTEGER(name, T, U, W)                                                             \
  REDUCE(sum_##name, U, a + b)                                                             \
  REDUCE(prod_##name, U, a *b)                                                             \
  REDUCE(max_##name, T, a > b ? a : b)                                                     \
  REDUCE(min_##name, T, a < b ? a : b)                                                     \
  static void premultiply_##name(                                                          \
    void *dst, const void *src, uint64_t scalar, size_t count) {                           \
    U *d = dst;                                                                            \
    const U *x = src, s = (U)scalar;                                                       \
    EACH(i, count) d[i] = (U)(x[i] * s);                                                   \
  }                                                                                        \
  static void postdivide_##name(                                                           \
    void *dst, const void *src, uint64_t divisor, size_t count) {                          \
    T *d = dst;                                                                            \
    const T *x = src;                                                                      \
    const W by = (W)divisor;                                                               \
    EACH(i, count) d[i] = (T)((W)x[i] / by);                                               \
  }

INTEGER(i8, int8_t, uint8_t, int64_t)
INTEGER(u8, uint8_t, uint8_t, uint64_t)
INTEGER(i32, int32_t, uint32_t, int64_t)
INTEGER(u32, uint32_t, uint32_t, uint64_t)
INTEGER(i64, int64_t, uint64_t, int64_t)
INTEGER(u64, uint64_t, uint64_t, uint64_t)

REDUCE(sum_f32, float, sum32(a, b))
REDUCE(prod_f32, float, prod32(a, b))
REDUCE(max_f32, float, max32(a, b))
REDUCE(min_f32, float, min32(a, b))
REDUCE(sum_f64, double, sum64(a, b))
REDUCE(prod_f64, double, prod64(a, b))
REDUCE(max_f64, double, max64(a, b))
REDUCE(min_f64, double, min64(a, b))

static void premultiply_f32(void *dst, const void *src, uint64_t scalar, size_t count) {
  float *d = dst;
  const float *x = src, s = float_of((uint32_t)scalar);
  EACH(i, count) d[i] = prod32(x[i], s);
}

static void premultiply_f64(void *dst, const void *src, uint64_t scalar, size_t count) {
  double *d = dst;
  const double *x = src, s = double_of(scalar);
  EACH(i, count) d[i] = prod64(x[i], s);
}

#define SMALL_REDUCE(op, name, T)                                                          \
  static void op##_##name(void *dst, const void *src_a, const void *src_b, size_t count) { \
    T *d = dst;                                                                            \
    const T *x = src_a, *y = src_b;                                                        \
    float a[BLOCK], b[BLOCK];                                                              \
    for (size_t at = 0; at < count; at += BLOCK) {                                         \
      const size_t n = count - at < BLOCK ? count - at : BLOCK;                            \
      widen_##name(a, x + at, n);                                                          \
      widen_##name(b, y + at, n);                                                          \
      EACH(i, n) a[i] = op##32(a[i], b[i]);                                                \
      narrow_##name(d + at, a, n);                                                         \
    }                                                                                      \
  }

#define SMALL_FLOAT(name, T)                                                               \
  SMALL_REDUCE(sum, name, T)                                                               \
  SMALL_REDUCE(prod, name, T)                                                              \
  SMALL_REDUCE(max, name, T)                                                               \
  SMALL_REDUCE(min, name, T)                                                               \
  static void premultiply_##name(                                                          \
    void *dst, const void *src, uint64_t scalar, size_t count) {                           \
    T *d = dst;                                                                            \
    const T *x = src, bits = (T)scalar;                                                    \
    float a[BLOCK], s;                                                                     \
    widen_##name(&s, &bits, 1);                                                            \
    for (size_t at = 0; at < count; at += BLOCK) {                                         \
      const size_t n = count - at < BLOCK ? count - at : BLOCK;                            \
      widen_##name(a, x + at, n);                                                          \
      EACH(i, n) a[i] = prod32(a[i], s);                                                   \
      narrow_##name(d + at, a, n);                                                         \
    }                                                                                      \
  }

SMALL_FLOAT(f16, uint16_t)
SMALL_FLOAT(bf16, uint16_t)
SMALL_FLOAT(f8e4m3, uint8_t)
SMALL_FLOAT(f8e5m2, uint8_t)

#define OPS(name)                                                                          \
  { sum_##name, prod_##name, max_##name, min_##name }

#ifdef __F16C__
const struct cpu_kernels cpu_kernels_avx2 = {
#else
const struct cpu_kernels cpu_kernels_plain = {
#endif
  .reduce =
    {
      [ncclInt8] = OPS(i8),
      [ncclUint8] = OPS(u8),
      [ncclInt32] = OPS(i32),
      [ncclUint32] = OPS(u32),
      [ncclInt64] = OPS(i64),
      [ncclUint64] = OPS(u64),
      [ncclFloat16] = OPS(f16),
      [ncclFloat32] = OPS(f32),
      [ncclFloat64] = OPS(f64),
      [ncclBfloat16] = OPS(bf16),
      [ncclFloat8e4m3] = OPS(f8e4m3),
      [ncclFloat8e5m2] = OPS(f8e5m2),
    },
  .premultiply =
    {
      [ncclInt8] = premultiply_i8,
      [ncclUint8] = premultiply_u8,
      [ncclInt32] = premultiply_i32,
      [ncclUint32] = premultiply_u32,
      [ncclInt64] = premultiply_i64,
      [ncclUint64] = premultiply_u64,
      [ncclFloat16] = premultiply_f16,
      [ncclFloat32] = premultiply_f32,
      [ncclFloat64] = premultiply_f64,
      [ncclBfloat16] = premultiply_bf16,
      [ncclFloat8e4m3] = premultiply_f8e4m3,
      [ncclFloat8e5m2] = premultiply_f8e5m2,
    },
  .postdivide =
    {
      [ncclInt8] = postdivide_i8,
      [ncclUint8] = postdivide_u8,
      [ncclInt32] = postdivide_i32,
      [ncclUint32] = postdivide_u32,
      [ncclInt64] = postdivide_i64,
      [ncclUint64] = postdivide_u64,
    },
};
