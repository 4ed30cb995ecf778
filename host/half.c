#include "host/half.h"

#include <string.h>

/* A binary format of at most 16 bits, laid out as sign, exponent, mantissa. */
struct format {
  unsigned mantissa, bias;
  uint32_t overflow; /* the first code that is not finite; what overflow becomes */
  uint32_t nan;      /* a quiet NaN's code, to which a NaN's payload is added */
  uint32_t sign;
};

static const struct format F16 = {10, 15, 0x7c00, 0x7e00, 0x8000};
static const struct format F8E5M2 = {2, 15, 0x7c, 0x7e, 0x80};
static const struct format F8E4M3 = {3, 7, 0x7f, 0x7f, 0x80};

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Drops `shift` bits (1 to 31), to nearest, ties to even. */
static inline uint32_t round_off(uint32_t bits, unsigned shift) {
  return (bits + (1u << (shift - 1)) - 1 + (bits >> shift & 1)) >> shift;
}

static inline uint32_t encode(float value, const struct format *f) {
  const uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffff;
  const uint32_t sign = bits >> 31 ? f->sign : 0;
  const unsigned drop = 23 - f->mantissa;
  const uint32_t rebias = (127 - f->bias) << 23;
  /* The payload's top bits survive, as in the x86 and Arm instructions. */
  if (magnitude > 0x7f800000) return sign | f->nan | (magnitude & 0x7fffff) >> drop;
  if (magnitude >= rebias + (1u << 23)) {
    const uint32_t code = round_off(magnitude - rebias, drop);
    return sign | (code < f->overflow ? code : f->overflow);
  }
  /* Subnormal here: the units of the last place are 2^(1 - bias - mantissa). */
  const unsigned shift = drop + (128 - f->bias) - (magnitude >> 23);
  if (shift > 24) return sign;
  return sign | round_off((magnitude & 0x7fffff) | 0x800000, shift);
}

static inline float decode(uint32_t code, const struct format *f) {
  const unsigned drop = 23 - f->mantissa;
  const uint32_t magnitude = code & (f->sign - 1);
  const uint32_t sign = code & f->sign ? 0x80000000 : 0;
  if (magnitude >= 1u << f->mantissa) {
    return float_of(sign | ((magnitude << drop) + ((127 - f->bias) << 23)));
  }
  const float unit = float_of((128 - f->bias - f->mantissa) << 23);
  return float_of(sign | bits_of((float)magnitude * unit));
}

float half_from_f16(uint16_t bits) {
  const uint32_t magnitude = bits & 0x7fff;
  if (magnitude <= F16.overflow) {
    return magnitude < F16.overflow
             ? decode(bits, &F16)
             : float_of((uint32_t)(bits & 0x8000) << 16 | 0x7f800000);
  }
  return float_of((uint32_t)(bits & 0x8000) << 16 | 0x7fc00000 | (magnitude & 0x3ff) << 13);
}

float half_from_bf16(uint16_t bits) {
  return float_of((uint32_t)bits << 16);
}

float half_from_f8e4m3(uint8_t bits) {
  return (bits & 0x7f) == F8E4M3.nan ? float_of((uint32_t)(bits & 0x80) << 24 | 0x7fc00000)
                                     : decode(bits, &F8E4M3);
}

/* The upper byte of an f16. */
float half_from_f8e5m2(uint8_t bits) {
  return half_from_f16((uint16_t)(bits << 8));
}

uint16_t half_to_f16(float value) {
  return (uint16_t)encode(value, &F16);
}

uint16_t half_to_bf16(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits >> 31) << 15 | round_off(magnitude, 16));
}

uint8_t half_to_f8e4m3(float value) {
  return (uint8_t)encode(value, &F8E4M3);
}

uint8_t half_to_f8e5m2(float value) {
  return (uint8_t)encode(value, &F8E5M2);
}
