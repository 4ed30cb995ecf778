/* The device's side of struct device_api: fill, pattern, compare, spin; NVRTC compiles it
   at first use. It is C as well as CUDA C++, so that a test can run it on the host. The
   small floating-point formats are host/half.c itself, so that both sides round alike. */

#include "host/half.c"

#ifdef __CUDACC__
#define KERNEL extern "C" __global__

static uint64_t clock_ns(void) {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}
#endif

/* Which elements are this thread's: from FIRST on, STRIDE apart. */
#define FIRST ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x)
#define STRIDE ((uint64_t)gridDim.x * blockDim.x)

/* ncclDataType_t, whose header is not at hand here. */
enum type {
  TYPE_I8,
  TYPE_U8,
  TYPE_I32,
  TYPE_U32,
  TYPE_I64,
  TYPE_U64,
  TYPE_F16,
  TYPE_F32,
  TYPE_F64,
  TYPE_BF16,
  TYPE_F8E4M3,
  TYPE_F8E5M2
};

static int size_of(int type) {
  if (type == TYPE_I64 || type == TYPE_U64 || type == TYPE_F64) return 8;
  if (type == TYPE_I32 || type == TYPE_U32 || type == TYPE_F32) return 4;
  return type == TYPE_F16 || type == TYPE_BF16 ? 2 : 1;
}

static uint64_t load(const void *from, uint64_t i, int size) {
  switch (size) {
    case 1: return ((const uint8_t *)from)[i];
    case 2: return ((const uint16_t *)from)[i];
    case 4: return ((const uint32_t *)from)[i];
    default: return ((const uint64_t *)from)[i];
  }
}

static void store(void *to, uint64_t i, int size, uint64_t bits) {
  switch (size) {
    case 1: ((uint8_t *)to)[i] = (uint8_t)bits; break;
    case 2: ((uint16_t *)to)[i] = (uint16_t)bits; break;
    case 4: ((uint32_t *)to)[i] = (uint32_t)bits; break;
    default: ((uint64_t *)to)[i] = bits; break;
  }
}

KERNEL void nclua_fill(void *to, uint64_t count, uint64_t bits) {
  for (uint64_t i = FIRST; i < count; i += STRIDE) ((uint64_t *)to)[i] = bits;
}

/* x + y mod m for x, y < m. */
static uint64_t add_mod(uint64_t x, uint64_t y, uint64_t m) {
  return x >= m - y ? x - (m - y) : x + y;
}

static uint64_t multiply_mod(uint64_t x, uint64_t y, uint64_t m) {
  x %= m;
  y %= m;
  if (m >> 32 == 0) return x * y % m;
  uint64_t product = 0;
  for (; y; y >>= 1) {
    if (y & 1) product = add_mod(product, x, m);
    x = add_mod(x, x, m);
  }
  return product;
}

/* To float, rounded to odd, so that the next rounding is as good as the only one. */
static float odd_float(uint64_t value) {
  int spare = 0;
  while (value >> spare >= 1u << 24) spare++;
  uint64_t kept = value >> spare;
  if (kept << spare != value) kept |= 1;
  return (float)(kept << spare);
}

static uint64_t bits_of_double(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static double double_of_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* An element's bits, as dtype_from_integer makes them: by way of double for the small
   formats, by truncation for the integers. */
static uint64_t encode_integer(int type, uint64_t value) {
  const float odd = odd_float(value >> 53 ? (uint64_t)(double)value : value);
  switch (type) {
    case TYPE_F16: return half_to_f16(odd);
    case TYPE_BF16: return half_to_bf16(odd);
    case TYPE_F8E4M3: return half_to_f8e4m3(odd);
    case TYPE_F8E5M2: return half_to_f8e5m2(odd);
    case TYPE_F32: return bits_of((float)value);
    case TYPE_F64: return bits_of_double((double)value);
    default: return value;
  }
}

KERNEL void nclua_pattern(void *to, uint64_t count, int type, uint64_t start, uint64_t step,
                          uint64_t modulus) {
  const int size = size_of(type);
  const uint64_t stride = multiply_mod(step, STRIDE, modulus);
  uint64_t value = add_mod(multiply_mod(step, FIRST, modulus), start % modulus, modulus);
  for (uint64_t i = FIRST; i < count; i += STRIDE) {
    store(to, i, size, encode_integer(type, value));
    value = add_mod(value, stride, modulus);
  }
}

static double to_double(int type, uint64_t bits) {
  switch (type) {
    case TYPE_I8: return (double)(int8_t)bits;
    case TYPE_I32: return (double)(int32_t)bits;
    case TYPE_I64: return (double)(int64_t)bits;
    case TYPE_F16: return half_from_f16((uint16_t)bits);
    case TYPE_BF16: return half_from_bf16((uint16_t)bits);
    case TYPE_F8E4M3: return half_from_f8e4m3((uint8_t)bits);
    case TYPE_F8E5M2: return half_from_f8e5m2((uint8_t)bits);
    case TYPE_F32: return float_of((uint32_t)bits);
    case TYPE_F64: return double_of_bits(bits);
    default: return (double)bits;
  }
}

static double absolute(double x) {
  return x < 0 ? -x : x;
}

/* Integers beyond 2^53 can be equal as doubles and yet differ. An infinity agrees with
   nothing but itself, whatever the tolerance. */
static int agree(int type, uint64_t a, uint64_t b, double tolerance) {
  if (a == b) return 1;
  if (type < TYPE_F16 && tolerance == 0) return 0;
  const double x = to_double(type, a), y = to_double(type, b);
  if (x == y || (x != x && y != y)) return 1;
  const double difference = absolute(x - y), ax = absolute(x), ay = absolute(y);
  return difference - difference == 0 && difference <= tolerance * (ax > ay ? ax : ay);
}

/* `b` NULL: every element against `value`. out[0] counts, out[1] is the first. */
KERNEL void nclua_compare(const void *a, const void *b, uint64_t count, int type,
                          uint64_t value, double tolerance, unsigned long long *out) {
  const int size = size_of(type);
  unsigned long long wrong = 0, first = ~0ull;
  for (uint64_t i = FIRST; i < count; i += STRIDE) {
    if (agree(type, load(a, i, size), b ? load(b, i, size) : value, tolerance)) continue;
    if (!wrong) first = i;
    wrong++;
  }
  if (!wrong) return;
  atomicAdd(&out[0], wrong);
  atomicMin(&out[1], first);
}

KERNEL void nclua_spin(uint64_t ns) {
  const uint64_t start = clock_ns();
  while (clock_ns() - start < ns) continue;
}
