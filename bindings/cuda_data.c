/* What a buffer holds: filling it, looking at it, and the way between device and Lua.
   Without a stream argument a method comes after everything its device was given before,
   and is done when it returns; with one it is enqueued there. */
#include "bindings/cuda_parts.h"

#include "bindings/bind.h"
#include "host/dtype.h"

#include <float.h>
#include <string.h>

/* Pushes the reason and returns false if the value at `index` is no element of the type. A
   u64 takes all 64 bits of a Lua integer: -1 is the largest one, as in 0xffffffffffffffff.
 */
bool cuda_element(lua_State *L, int index, ncclDataType_t type, uint64_t *bits) {
  bool fits = false;
  if (lua_type(L, index) != LUA_TNUMBER) {
    lua_pushfstring(L, "expected a number, got %s", luaL_typename(L, index));
    return false;
  }
  if (!lua_isinteger(L, index)) {
    fits = dtype_from_double(type, lua_tonumber(L, index), bits);
  } else if (type == ncclUint64) {
    *bits = (uint64_t)lua_tointeger(L, index);
    fits = true;
  } else {
    fits = dtype_from_integer(type, lua_tointeger(L, index), bits);
  }
  if (fits) return true;
  const char *text = luaL_tolstring(L, index, NULL);
  lua_pushfstring(L, "%s does not fit in %s", text, dtype_names[type]);
  return false;
}

uint64_t cuda_checkelement(lua_State *L, int arg, ncclDataType_t type) {
  uint64_t bits = 0;
  if (!cuda_element(L, arg, type, &bits)) luaL_argerror(L, arg, lua_tostring(L, -1));
  return bits;
}

static void push_element(lua_State *L, ncclDataType_t type, const char *at) {
  uint64_t bits = 0;
  const size_t size = dtype_size(type);
  memcpy(&bits, at, size); /* the low bytes: nclua runs on little-endian machines */
  const int unused = 64 - 8 * (int)size;
  switch (type) {
    case ncclInt8:
    case ncclInt32:
    case ncclInt64: lua_pushinteger(L, (int64_t)(bits << unused) >> unused); break;
    case ncclUint8:
    case ncclUint32:
    case ncclUint64: lua_pushinteger(L, (lua_Integer)bits); break;
    default: lua_pushnumber(L, dtype_to_double(type, bits)); break;
  }
}

void cuda_settle(lua_State *L, const struct buffer *b, const char *what) {
  struct cuda *c = b->cuda;
  cuda_check_may_wait(L, c, what);
  CUresult rc = CUDA_SUCCESS;
  if (c->is_busy[b->device]) rc = cuda_wait_device(c, b->device, what);
  if (!rc) rc = cuda_use(c, b->device);
  if (rc) cuda_raise(L, c, what, rc);
  cuda_check_collectives(L, what);
}

CUstream cuda_begin(lua_State *L, const struct buffer *b, int stream_arg,
                    const char *what) {
  cuda_checkbuffer(L, 1); /* a finalizer may have closed it since the last check */
  CUstream stream = cuda_optstream(L, stream_arg, b->device);
  if (stream) {
    cuda_enter(L, b->cuda, b->device, what);
  } else {
    cuda_settle(L, b, what);
  }
  cuda_capture_note(L, b->cuda, 1);
  return stream;
}

int cuda_end(lua_State *L, const struct buffer *b, CUstream stream, const char *what,
             CUresult rc, bool must_wait) {
  struct cuda *c = b->cuda;
  cuda_enqueued(c, b->device);
  if (!rc && (!stream || must_wait)) rc = cuda_wait_surely(c, stream, what);
  if (rc) return cuda_raise(L, c, what, rc);
  if (!stream) c->is_busy[b->device] = false; /* cuda_begin has waited for the rest */
  lua_settop(L, 1);
  return 1;
}

int cuda_data_fill(lua_State *L) {
  struct buffer *b = cuda_checkbuffer(L, 1);
  const uint64_t bits = cuda_checkelement(L, 2, b->type);
  CUstream stream = cuda_begin(L, b, 3, "fill");
  CUresult rc = CUDA_SUCCESS; /* an empty grid would be an error */
  if (b->count) {
    rc = b->cuda->api->fill(b->ptr, b->count, dtype_size(b->type), bits, stream);
  }
  return cuda_end(L, b, stream, "fill", rc, false);
}

/* Below these, every integer is exact in the dtype; start + step * i cannot overflow. */
static const uint64_t moduli[ncclNumTypes] = {
  [ncclInt8] = 1 << 7,
  [ncclUint8] = 1 << 8,
  [ncclInt32] = 1U << 31,
  [ncclUint32] = 1ULL << 32,
  [ncclInt64] = 1ULL << 32,
  [ncclUint64] = 1ULL << 32,
  [ncclFloat16] = 1 << 11,
  [ncclFloat32] = 1 << 24,
  [ncclFloat64] = 1ULL << 32,
  [ncclBfloat16] = 1 << 8,
  [ncclFloat8e4m3] = 1 << 4,
  [ncclFloat8e5m2] = 1 << 3,
};

struct pattern_options {
  size_t start, step, modulus;
};

static const struct bind_field pattern_fields[] = {
  {"start", BIND_SIZE, offsetof(struct pattern_options, start)},
  {"step", BIND_SIZE, offsetof(struct pattern_options, step)},
  {"modulus", BIND_SIZE, offsetof(struct pattern_options, modulus)},
  {NULL},
};

static struct pattern check_pattern(lua_State *L, int arg, ncclDataType_t type) {
  struct pattern_options o = {.step = 1, .modulus = moduli[type]};
  bind_fields(L, arg, pattern_fields, &o);
  if (o.modulus < 1 || o.modulus > moduli[type]) {
    luaL_argerror(L,
                  arg,
                  lua_pushfstring(L,
                                  "option 'modulus': expected 1 to %I for %s, got %I",
                                  (lua_Integer)moduli[type],
                                  dtype_names[type],
                                  (lua_Integer)o.modulus));
  }
  return (struct pattern){o.start % o.modulus, o.step % o.modulus, o.modulus};
}

int cuda_data_pattern(lua_State *L) {
  struct buffer *b = cuda_checkbuffer(L, 1);
  const struct pattern p = check_pattern(L, 2, b->type);
  CUstream stream = cuda_begin(L, b, 3, "pattern");
  CUresult rc = CUDA_SUCCESS;
  if (b->count) {
    rc = b->cuda->api->fill_pattern(b->ptr, b->count, b->type, &p, stream);
  }
  return cuda_end(L, b, stream, "pattern", rc, false);
}

static void read_bytes(lua_State *L, struct buffer *b, size_t first, size_t bytes,
                       void *into, const char *what) {
  cuda_checkbuffer(L, 1); /* as in cuda_begin */
  cuda_settle(L, b, what);
  if (bytes == 0) return;
  CUresult rc = b->cuda->api->memcpy_dtoh(into, b->ptr + first, bytes);
  if (rc) cuda_raise(L, b->cuda, what, rc);
}

int cuda_data_to_table(lua_State *L) {
  struct buffer *b = cuda_checkbuffer(L, 1);
  const size_t size = dtype_size(b->type);
  const size_t first =
    lua_isnoneornil(L, 2) ? 0 : bind_checksize(L, 2, 1, b->count + 1) - 1;
  const size_t rest = b->count - first;
  const size_t count = lua_isnoneornil(L, 3) ? rest : bind_checksize(L, 3, 0, rest);
  char *scratch = lua_newuserdatauv(L, count * size, 0);
  read_bytes(L, b, first * size, count * size, scratch, "to_table");
  lua_createtable(L, count < INT_MAX ? (int)count : INT_MAX, 0);
  for (size_t i = 0; i < count; i++) {
    push_element(L, b->type, scratch + i * size);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

int cuda_data_to_string(lua_State *L) {
  struct buffer *b = cuda_checkbuffer(L, 1);
  luaL_Buffer text;
  char *into = luaL_buffinitsize(L, &text, b->bytes);
  read_bytes(L, b, 0, b->bytes, into, "to_string");
  luaL_pushresultsize(&text, b->bytes);
  return 1;
}

int cuda_data_get(lua_State *L) {
  struct buffer *b = cuda_checkbuffer(L, 1);
  const size_t index = bind_checksize(L, 2, 1, b->count) - 1;
  const size_t size = dtype_size(b->type);
  char element[sizeof(uint64_t)] = {0};
  read_bytes(L, b, index * size, size, element, "get");
  push_element(L, b->type, element);
  return 1;
}

/* A fill of one element: unlike a copy from the host it can be captured. */
int cuda_data_set(lua_State *L) {
  struct buffer *b = cuda_checkbuffer(L, 1);
  const size_t index = bind_checksize(L, 2, 1, b->count) - 1;
  const uint64_t bits = cuda_checkelement(L, 3, b->type);
  const size_t size = dtype_size(b->type);
  CUstream stream = cuda_begin(L, b, 4, "set");
  CUresult rc = b->cuda->api->fill(b->ptr + index * size, 1, size, bits, stream);
  return cuda_end(L, b, stream, "set", rc, false);
}

void cuda_check_alike(lua_State *L, const struct buffer *a, const struct buffer *b,
                      const char *what) {
  if (a->type == b->type && a->count == b->count) return;
  luaL_error(L,
             "%s: expected %I elements of %s, got %I of %s",
             what,
             (lua_Integer)a->count,
             dtype_names[a->type],
             (lua_Integer)b->count,
             dtype_names[b->type]);
}

struct compare_options {
  double tolerance;
  int stream; /* stack index */
};

static const struct bind_field compare_fields[] = {
  {"tolerance",
   BIND_NUMBER,
   offsetof(struct compare_options, tolerance),
   .min = 0,
   .max = DBL_MAX},
  {"stream", BIND_ANY, offsetof(struct compare_options, stream)},
  {NULL},
};

static struct compare check_compare(lua_State *L, struct buffer *b, double tolerance) {
  struct compare what = {
    .a = b->ptr, .count = b->count, .type = b->type, .tolerance = tolerance};
  if (!lua_isuserdata(L, 2)) {
    what.value = cuda_checkelement(L, 2, b->type);
    return what;
  }
  const struct buffer *other = cuda_checkbuffer(L, 2);
  cuda_check_alike(L, b, other, "compare");
  luaL_argcheck(L, other->device == b->device, 2, "the buffer is on another device");
  what.b = other->ptr;
  return what;
}

int cuda_data_compare(lua_State *L) {
  struct buffer *b = cuda_checkbuffer(L, 1);
  struct compare_options o = {0};
  bind_fields(L, 3, compare_fields, &o);
  const struct compare what = check_compare(L, b, o.tolerance);
  cuda_check_may_wait(L, b->cuda, "compare");
  CUstream stream = cuda_begin(L, b, o.stream, "compare");
  struct mismatch found = {0};
  CUresult rc = stream ? cuda_wait_stream(b->cuda, stream, "compare") : CUDA_SUCCESS;
  if (!rc && b->count) rc = b->cuda->api->compare(&what, &found, stream);
  if (rc) return cuda_raise(L, b->cuda, "compare", rc);
  cuda_check_collectives(L, "compare");
  lua_pushinteger(L, (lua_Integer)found.count);
  if (found.count == 0) return 1;
  lua_pushinteger(L, (lua_Integer)found.first + 1);
  return 2;
}
