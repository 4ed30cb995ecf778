/* buffer:copy_from: from a table, a string or another buffer. */
#include "bindings/cuda_parts.h"

#include "bindings/bind.h"
#include "host/dtype.h"
#include "host/interrupt.h"

#include <string.h>

static int copy_host(lua_State *L, struct buffer *b, const void *from) {
  cuda_check_may_wait(L, b->cuda, "copy_from"); /* its memory is gone at a graph's launch */
  CUstream stream = cuda_begin(L, b, 3, "copy_from");
  CUresult rc = CUDA_SUCCESS;
  if (stream && interrupt_is_watched()) { /* the copy itself must not be interrupted */
    rc = cuda_wait_stream(b->cuda, stream, "copy_from");
  }
  if (!rc) rc = b->cuda->api->memcpy_htod_async(b->ptr, from, b->bytes, stream);
  return cuda_end(L, b, stream, "copy_from", rc, true);
}

static int copy_table(lua_State *L, struct buffer *b) {
  const size_t size = dtype_size(b->type), length = lua_rawlen(L, 2);
  luaL_argexpected(L, length <= LLONG_MAX, 2, "table");
  if (length != b->count) {
    return luaL_error(L,
                      "copy_from: the table has %I elements, the buffer %I",
                      (lua_Integer)length,
                      (lua_Integer)b->count);
  }
  char *scratch = lua_newuserdatauv(L, b->bytes, 0);
  for (size_t i = 0; i < length; i++) {
    uint64_t bits = 0;
    lua_rawgeti(L, 2, (lua_Integer)i + 1);
    if (!cuda_element(L, -1, b->type, &bits)) {
      const char *reason = lua_tostring(L, -1);
      return luaL_error(L, "copy_from: element %I: %s", (lua_Integer)i + 1, reason);
    }
    memcpy(scratch + i * size, &bits, size);
    lua_pop(L, 1);
  }
  return copy_host(L, b, scratch);
}

static int copy_string(lua_State *L, struct buffer *b) {
  size_t bytes = 0;
  const char *from = lua_tolstring(L, 2, &bytes);
  if (bytes == b->bytes) return copy_host(L, b, from);
  return luaL_error(L,
                    "copy_from: the string has %I bytes, the buffer %I",
                    (lua_Integer)bytes,
                    (lua_Integer)b->bytes);
}

/* Between devices: by way of the host, which needs no peer access. */
static int copy_device(lua_State *L, struct buffer *b, struct buffer *from) {
  void *scratch = lua_newuserdatauv(L, from->bytes, 0);
  cuda_checkbuffer(L, 2); /* a finalizer may have closed it just now */
  cuda_settle(L, from, "copy_from");
  CUresult rc = from->cuda->api->memcpy_dtoh(scratch, from->ptr, from->bytes);
  if (rc) return cuda_raise(L, b->cuda, "copy_from", rc);
  return copy_host(L, b, scratch);
}

static int copy_buffer(lua_State *L, struct buffer *b) {
  struct buffer *from = cuda_checkbuffer(L, 2);
  cuda_check_alike(L, b, from, "copy_from");
  if (from->device != b->device) return copy_device(L, b, from);
  const CUdeviceptr ptr = from->ptr;
  luaL_argcheck(L,
                ptr == b->ptr || ptr + b->bytes <= b->ptr || b->ptr + b->bytes <= ptr,
                2,
                "the two slices overlap");
  CUstream stream = cuda_begin(L, b, 3, "copy_from");
  cuda_capture_note(L, b->cuda, 2);
  CUresult rc = CUDA_SUCCESS;
  if (ptr != b->ptr) {
    rc = b->cuda->api->memcpy_dtod_async(b->ptr, ptr, b->bytes, stream);
  }
  return cuda_end(L, b, stream, "copy_from", rc, false);
}

int cuda_copy_from(lua_State *L) {
  struct buffer *b = cuda_checkbuffer(L, 1);
  cuda_optstream(L, 3, b->device); /* wrong arguments first */
  lua_settop(L, 3);                /* scratch memory comes above */
  switch (lua_type(L, 2)) {
    case LUA_TTABLE: return copy_table(L, b);
    case LUA_TSTRING: return copy_string(L, b);
    case LUA_TUSERDATA: return copy_buffer(L, b);
    default: return luaL_typeerror(L, 2, "table, string or cuda.buffer");
  }
}
