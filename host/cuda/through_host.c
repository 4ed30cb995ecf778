#include "host/cuda/through_host.h"

#include "host/dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 1 << 22 }; /* memory on the host; a piece is copied at a time */

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Copies what `make` writes, piece by piece; element size in bytes. */
static CUresult copy_in(CUdeviceptr dst, size_t count, size_t size, CUstream stream,
                        void (*make)(void *to, size_t first, size_t n, const void *what),
                        const void *what) {
  char *piece = malloc(PIECE_BYTES);
  CUresult rc = piece ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  for (size_t done = 0; done < count && !rc;) {
    size_t n = least(count - done, PIECE_BYTES / size);
    make(piece, done, n, what);
    rc = cuda_device.memcpy_htod_async(dst + done * size, piece, n * size, stream);
    if (!rc) rc = cuda_device.stream_synchronize(stream); /* before the piece is reused */
    done += n;
  }
  free(piece);
  return rc;
}

static void make_fill(void *to, size_t first, size_t n, const void *what) {
  (void)first;
  for (size_t i = 0; i < n; i++) memcpy((char *)to + i * 8, what, 8);
}

CUresult through_host_fill(CUdeviceptr dst, size_t count, uint64_t bits, CUstream stream) {
  return copy_in(dst, count, sizeof bits, stream, make_fill, &bits);
}

struct typed_pattern {
  struct pattern p;
  ncclDataType_t type;
};

static void make_pattern(void *to, size_t first, size_t n, const void *what) {
  const struct typed_pattern *t = what;
  size_t size = dtype_size(t->type);
  for (size_t i = 0; i < n; i++) {
    unsigned __int128 index = first + i;
    uint64_t value = (uint64_t)((t->p.start + t->p.step * index) % t->p.modulus), bits = 0;
    if (!dtype_from_integer(t->type, (int64_t)value, &bits)) bits = value;
    memcpy((char *)to + i * size, &bits, size); /* little endian, as every GPU's host */
  }
}

CUresult through_host_pattern(CUdeviceptr dst, size_t count, ncclDataType_t type,
                              const struct pattern *p, CUstream stream) {
  struct typed_pattern t = {*p, type};
  return copy_in(dst, count, dtype_size(type), stream, make_pattern, &t);
}

/* As kernels.cu's `agree`. */
static bool agree(const struct compare *c, uint64_t a, uint64_t b) {
  if (a == b) return true;
  if (!dtype_is_float(c->type) && c->tolerance == 0) return false;
  double x = dtype_to_double(c->type, a), y = dtype_to_double(c->type, b);
  if (x == y || (isnan(x) && isnan(y))) return true;
  return isfinite(x - y) && fabs(x - y) <= c->tolerance * fmax(fabs(x), fabs(y));
}

static void compare_piece(const struct compare *c, const char *a, const char *b,
                          size_t first, size_t n, struct mismatch *out) {
  size_t size = dtype_size(c->type);
  for (size_t i = 0; i < n; i++) {
    uint64_t x = 0, y = 0;
    memcpy(&x, a + i * size, size);
    memcpy(&y, b ? b + i * size : (const char *)&c->value, size);
    if (agree(c, x, y)) continue;
    if (out->count++ == 0) out->first = first + i;
  }
}

CUresult through_host_compare(const struct compare *what, struct mismatch *out,
                              CUstream stream) {
  size_t size = dtype_size(what->type), most = PIECE_BYTES / size;
  char *pieces = malloc(2 * (size_t)PIECE_BYTES), *other = pieces + PIECE_BYTES;
  if (!pieces) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult rc = cuda_device.stream_synchronize(stream);
  for (size_t done = 0; done < what->count && !rc; done += most) {
    size_t n = least(what->count - done, most);
    rc = cuda_device.memcpy_dtoh(pieces, what->a + done * size, n * size);
    if (!rc && what->b) {
      rc = cuda_device.memcpy_dtoh(other, what->b + done * size, n * size);
    }
    if (!rc) compare_piece(what, pieces, what->b ? other : NULL, done, n, out);
  }
  free(pieces);
  return rc;
}
