/* cuda.buffer: memory on a device, and slices of it. */
#include "bindings/cuda_parts.h"

#include "bindings/bind.h"
#include "host/dtype.h"

#include <stdint.h>

static const char *const kinds[] = {"device", "nccl", NULL};
enum { KIND_DEVICE, KIND_NCCL };

static const struct bind_tag buffer_tag = {CUDA_BUFFER, sizeof(struct buffer)};

static bool is_open(const struct buffer *b) {
  return b->ptr && (!b->owner || b->owner->ptr);
}

struct buffer *cuda_checkbuffer(lua_State *L, int arg) {
  struct buffer *b = bind_checktagged(L, arg, &buffer_tag);
  bind_checkopen(L, is_open(b), b->owner && b->ptr ? "buffer (of a slice)" : "buffer");
  return b;
}

/* Even an empty buffer has an address of its own. */
static size_t allocated_bytes(const struct buffer *b) {
  return b->bytes ? b->bytes : 1;
}

static CUresult allocate_nccl(struct buffer *b) {
  struct err e;
  const struct coll_api *coll = backend_coll(&e);
  void *ptr = NULL;
  if (!coll || !coll->mem_alloc) return CUDA_ERROR_NOT_SUPPORTED;
  if (coll->mem_alloc(&ptr, allocated_bytes(b))) return CUDA_ERROR_OUT_OF_MEMORY;
  b->ptr = (CUdeviceptr)(uintptr_t)ptr;
  return CUDA_SUCCESS;
}

static CUresult allocate_once(struct buffer *b) {
  CUresult rc = cuda_use(b->cuda, b->device);
  if (rc) return rc;
  if (b->is_nccl) return allocate_nccl(b);
  return b->cuda->api->mem_alloc(&b->ptr, allocated_bytes(b));
}

enum { MOST_DOOMED_BYTES = 1 << 30 };

/* What was closed but could not be freed yet counts: it is waited for, as cuMemFree would
   have done, before the device runs out of memory. */
static CUresult allocate(lua_State *L, struct buffer *b) {
  struct cuda *c = b->cuda;
  CUresult rc = CUDA_SUCCESS;
  if (c->doomed_bytes > MOST_DOOMED_BYTES && !c->holds) {
    rc = cuda_wait_device(c, b->device, "cuda.buffer");
  }
  if (!rc) rc = allocate_once(b);
  if (rc != CUDA_ERROR_OUT_OF_MEMORY || c->holds) return rc;
  lua_gc(L, LUA_GCCOLLECT);
  rc = cuda_wait_device(c, b->device, "cuda.buffer");
  return rc ? rc : allocate_once(b);
}

int cuda_buffer_new(lua_State *L) {
  struct err e;
  const ncclDataType_t type = (ncclDataType_t)bind_checkname(L, 1, dtype_names);
  const size_t count = bind_checksize(L, 2, 0, PTRDIFF_MAX / dtype_size(type));
  struct {
    int kind;
  } options = {KIND_DEVICE};
  const struct bind_field fields[] = {{"kind", BIND_NAME, 0, .names = kinds}, {NULL}};
  bind_fields(L, 3, fields, &options);
  struct cuda *c = cuda_open(L, &e);
  if (!c || (options.kind == KIND_NCCL && !backend_coll(&e))) return bind_fail(L, &e);
  struct buffer *b = lua_newuserdatauv(L, sizeof *b, 1);
  *b = (struct buffer){.tag = &buffer_tag,
                       .cuda = c,
                       .count = count,
                       .bytes = count * dtype_size(type),
                       .type = type};
  b->device = c->chosen;
  b->is_nccl = options.kind == KIND_NCCL;
  c->epoch++;
  luaL_setmetatable(L, CUDA_BUFFER);
  CUresult rc = allocate(L, b);
  if (!rc) return 1;
  b->ptr = 0;
  return cuda_fail(L, c, "buffer", rc);
}

void cuda_tie(struct buffer *b, struct cuda_tie *tie) {
  if (b->owner) b = b->owner;
  tie->next = b->ties;
  tie->link = &b->ties;
  if (b->ties) b->ties->link = &tie->next;
  b->ties = tie;
}

void cuda_untie(struct cuda_tie *tie) {
  if (!tie->link) return;
  *tie->link = tie->next;
  if (tie->next) tie->next->link = tie->link;
  tie->link = NULL;
}

static void undo_ties(struct buffer *b) {
  while (b->ties) {
    struct cuda_tie *tie = b->ties;
    cuda_untie(tie);
    tie->undo(tie);
  }
}

/* A slice only forgets its address; the buffer is what is released. */
static int buffer_close(lua_State *L) {
  struct buffer *b = luaL_checkudata(L, 1, CUDA_BUFFER);
  const CUdeviceptr ptr = b->ptr;
  if (!ptr) return 0;
  b->cuda->epoch++;
  if (!b->owner) cuda_close_graphs(L, b->cuda, 1);
  b->ptr = 0;
  if (b->owner) return 0;
  undo_ties(b);
  cuda_release(b->cuda,
               &(struct cuda_doomed){
                 .kind = b->is_nccl ? CUDA_IS_NCCL_BUFFER : CUDA_IS_BUFFER,
                 .device = b->device,
                 .bytes = b->bytes,
                 .handle.ptr = ptr,
               });
  return 0;
}

static int buffer_slice(lua_State *L) {
  struct buffer *b = cuda_checkbuffer(L, 1);
  const size_t first = bind_checksize(L, 2, 1, b->count + 1) - 1;
  const size_t count = bind_checksize(L, 3, 0, b->count - first);
  const size_t size = dtype_size(b->type);
  struct buffer *s = lua_newuserdatauv(L, sizeof *s, 1);
  cuda_checkbuffer(L, 1); /* the allocation may have run a finalizer that closed it */
  *s = *b;
  s->ties = NULL;
  s->cuda->epoch++;
  s->owner = b->owner ? b->owner : b;
  s->ptr = b->ptr + first * size;
  s->count = count;
  s->bytes = count * size;
  luaL_setmetatable(L, CUDA_BUFFER);
  if (!b->owner || lua_getiuservalue(L, 1, 1) == LUA_TNIL) lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1); /* the buffer itself, also for a slice of a slice */
  return 1;
}

static int buffer_tostring(lua_State *L) {
  const struct buffer *b = luaL_checkudata(L, 1, CUDA_BUFFER);
  if (is_open(b)) {
    lua_pushfstring(L,
                    "cuda.buffer (%s, %I elements, device %d)",
                    dtype_names[b->type],
                    (lua_Integer)b->count,
                    b->device);
  } else {
    lua_pushliteral(L, "cuda.buffer (closed)");
  }
  return 1;
}

static int buffer_dtype(lua_State *L) {
  const struct buffer *b = luaL_checkudata(L, 1, CUDA_BUFFER);
  lua_pushstring(L, dtype_names[b->type]);
  return 1;
}

static int buffer_count(lua_State *L) {
  const struct buffer *b = luaL_checkudata(L, 1, CUDA_BUFFER);
  lua_pushinteger(L, (lua_Integer)b->count);
  return 1;
}

static int buffer_bytes(lua_State *L) {
  const struct buffer *b = luaL_checkudata(L, 1, CUDA_BUFFER);
  lua_pushinteger(L, (lua_Integer)b->bytes);
  return 1;
}

static int buffer_device(lua_State *L) {
  const struct buffer *b = luaL_checkudata(L, 1, CUDA_BUFFER);
  lua_pushinteger(L, b->device);
  return 1;
}

static const luaL_Reg buffer_meta[] = {
  {"__gc", buffer_close},
  {"__close", buffer_close},
  {"__tostring", buffer_tostring},
  {"__len", buffer_count},
  {NULL, NULL},
};

static const luaL_Reg buffer_methods[] = {
  {"close", buffer_close},
  {"slice", buffer_slice},
  {"fill", cuda_data_fill},
  {"pattern", cuda_data_pattern},
  {"copy_from", cuda_copy_from},
  {"to_table", cuda_data_to_table},
  {"to_string", cuda_data_to_string},
  {"get", cuda_data_get},
  {"set", cuda_data_set},
  {"compare", cuda_data_compare},
  {NULL, NULL},
};

static const luaL_Reg buffer_fields[] = {
  {"dtype", buffer_dtype},
  {"count", buffer_count},
  {"bytes", buffer_bytes},
  {"device", buffer_device},
  {NULL, NULL},
};

void cuda_buffer_type(lua_State *L) {
  bind_type_fields(L, CUDA_BUFFER, buffer_meta, buffer_methods, buffer_fields);
}
