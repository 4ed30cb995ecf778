#include "host/dtype.h"

#include "host/half.h"

#include <math.h>
#include <string.h>

const char *const dtype_names[ncclNumTypes + 1] = {
  [ncclInt8] = "i8",
  [ncclUint8] = "u8",
  [ncclInt32] = "i32",
  [ncclUint32] = "u32",
  [ncclInt64] = "i64",
  [ncclUint64] = "u64",
  [ncclFloat16] = "f16",
  [ncclFloat32] = "f32",
  [ncclFloat64] = "f64",
  [ncclBfloat16] = "bf16",
  [ncclFloat8e4m3] = "f8e4m3",
  [ncclFloat8e5m2] = "f8e5m2",
};

static const unsigned char sizes[ncclNumTypes] = {
  [ncclInt8] = 1,
  [ncclUint8] = 1,
  [ncclInt32] = 4,
  [ncclUint32] = 4,
  [ncclInt64] = 8,
  [ncclUint64] = 8,
  [ncclFloat16] = 2,
  [ncclFloat32] = 4,
  [ncclFloat64] = 8,
  [ncclBfloat16] = 2,
  [ncclFloat8e4m3] = 1,
  [ncclFloat8e5m2] = 1,
};

size_t dtype_size(ncclDataType_t type) {
  return sizes[type];
}

bool dtype_is_float(ncclDataType_t type) {
  return type >= ncclFloat16;
}

static bool is_signed(ncclDataType_t type) {
  return type == ncclInt8 || type == ncclInt32 || type == ncclInt64;
}

static unsigned width(ncclDataType_t type) {
  return 8u * sizes[type];
}

static uint64_t mask(ncclDataType_t type) {
  return UINT64_MAX >> (64 - width(type));
}

static uint64_t double_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static uint32_t float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* To float, rounded to odd: what is rounded to nearest once more, to fewer bits, comes out
   as if it had been rounded once (Boldo and Melquiond, 2008). */
static float narrow_to_odd(double value) {
  const float nearest = (float)value;
  if ((double)nearest == value || value != value || isinf(nearest)) return nearest;
  if (float_bits(nearest) & 1) return nearest;
  return nextafterf(nearest, (double)nearest < value ? INFINITY : -INFINITY);
}

static uint64_t bits_from_double(ncclDataType_t type, double value) {
  const float odd = narrow_to_odd(value);
  switch (type) {
    case ncclFloat16: return half_to_f16(odd);
    case ncclBfloat16: return half_to_bf16(odd);
    case ncclFloat8e4m3: return half_to_f8e4m3(odd);
    case ncclFloat8e5m2: return half_to_f8e5m2(odd);
    case ncclFloat32: return float_bits((float)value);
    default: return double_bits(value);
  }
}

bool dtype_from_double(ncclDataType_t type, double value, uint64_t *bits) {
  if (dtype_is_float(type)) {
    *bits = bits_from_double(type, value);
    return true;
  }
  if (floor(value) != value) return false; /* NaN too */
  const int magnitude_bits = (int)width(type) - is_signed(type);
  const double limit = ldexp(1, magnitude_bits);
  if (value >= limit || value < (is_signed(type) ? -limit : 0)) return false;
  *bits = (value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value) & mask(type);
  return true;
}

bool dtype_from_integer(ncclDataType_t type, int64_t value, uint64_t *bits) {
  if (dtype_is_float(type)) {
    /* An integer beyond 2^53 would be rounded twice on its way through double. */
    *bits = type == ncclFloat32 ? float_bits((float)value)
                                : bits_from_double(type, (double)value);
    return true;
  }
  const unsigned spare = 64 - width(type);
  const uint64_t raw = (uint64_t)value;
  if (is_signed(type) ? value >> (63 - spare) != 0 && value >> (63 - spare) != -1
                      : value < 0 || raw > mask(type)) {
    return false;
  }
  *bits = raw & mask(type);
  return true;
}

static double signed_value(ncclDataType_t type, uint64_t bits) {
  const unsigned spare = 64 - width(type);
  return (double)((int64_t)(bits << spare) >> spare);
}

static float float_from(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double double_from(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

double dtype_to_double(ncclDataType_t type, uint64_t bits) {
  switch (type) {
    case ncclFloat16: return half_from_f16((uint16_t)bits);
    case ncclBfloat16: return half_from_bf16((uint16_t)bits);
    case ncclFloat8e4m3: return half_from_f8e4m3((uint8_t)bits);
    case ncclFloat8e5m2: return half_from_f8e5m2((uint8_t)bits);
    case ncclFloat32: return float_from((uint32_t)bits);
    case ncclFloat64: return double_from(bits);
    default:
      return is_signed(type) ? signed_value(type, bits) : (double)(bits & mask(type));
  }
}
