/* cuda.kernel: a script's own CUDA C++, compiled at run time and launched. */
#include "bindings/cuda_parts.h"

#include "bindings/bind.h"
#include "host/dtype.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 1, LOG, USER_VALUES = LOG, MOST_ARGUMENTS = 64, MOST_PARAMETERS = 4096 };

struct kernel {
  struct cuda *cuda;
  CUmodule module; /* NULL: closed */
  CUfunction function;
  int device;
  int parameters;       /* -1: the driver cannot tell */
  struct compiled made; /* while compiling only */
};

static struct kernel *check_kernel(lua_State *L, int arg) {
  struct kernel *k = luaL_checkudata(L, arg, CUDA_KERNEL);
  bind_checkopen(L, k->module != NULL, "kernel");
  return k;
}

static void forget_made(struct kernel *k) {
  struct compiled made = k->made;
  k->made = (struct compiled){0};
  free(made.image);
  free(made.symbol);
  free(made.log);
}

static int kernel_close(lua_State *L) {
  struct kernel *k = luaL_checkudata(L, 1, CUDA_KERNEL);
  const CUmodule module = k->module;
  forget_made(k);
  if (!module) return 0;
  cuda_close_graphs(L, k->cuda, 1);
  k->module = NULL;
  cuda_release(k->cuda,
               &(struct cuda_doomed){
                 .kind = CUDA_IS_MODULE,
                 .device = k->device,
                 .handle.module = module,
               });
  return 0;
}

static int count_parameters(const struct kernel *k) {
  const struct device_api *api = k->cuda->api;
  size_t offset, bytes;
  int count = 0;
  if (!api->func_get_param_info) return -1;
  while (count < MOST_PARAMETERS &&
         !api->func_get_param_info(k->function, (size_t)count, &offset, &bytes)) {
    count++;
  }
  return count;
}

static CUresult load(struct kernel *k) {
  const struct device_api *api = k->cuda->api;
  CUresult rc = api->module_load_data(&k->module, k->made.image);
  if (rc) {
    k->module = NULL;
    return rc;
  }
  rc = api->module_get_function(&k->function, k->module, k->made.symbol);
  if (!rc) k->parameters = count_parameters(k);
  return rc;
}

/* nil, the compiler's text if there is one, code. */
static int compile_failed(lua_State *L, const struct kernel *k, const struct err *e) {
  luaL_pushfail(L);
  lua_pushfstring(L, "kernel: %s", e->text);
  if (k->made.log) {
    lua_pushfstring(L, "\n%s", k->made.log);
    lua_concat(L, 2);
  }
  lua_pushstring(L, e->code);
  return 3;
}

int cuda_kernel_new(lua_State *L) {
  const char *source = luaL_checkstring(L, 1), *name = luaL_checkstring(L, 2);
  luaL_argcheck(L, *name != '\0', 2, "expected a kernel's name, got ''");
  struct err e;
  struct cuda *c = cuda_open(L, &e);
  if (!c) return bind_fail(L, &e);
  cuda_check_may_wait(L, c, "kernel");
  if (!c->api->compile) {
    err_set(&e, "ENOTSUP", "kernel: kernels need a GPU, this is the cpu backend");
    return bind_fail(L, &e);
  }
  struct kernel *k = lua_newuserdatauv(L, sizeof *k, USER_VALUES);
  *k = (struct kernel){.cuda = c, .device = c->chosen};
  luaL_setmetatable(L, CUDA_KERNEL);
  CUresult rc = cuda_use(c, k->device);
  if (rc) return cuda_fail(L, c, "kernel", rc);
  if (c->api->compile(source, name, &k->made, &e)) return compile_failed(L, k, &e);
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, -2, NAME);
  lua_pushstring(L, k->made.log ? k->made.log : "");
  lua_setiuservalue(L, -2, LOG);
  rc = load(k);
  forget_made(k);
  return rc ? cuda_fail(L, c, "kernel", rc) : 1;
}

struct launch {
  int grid_at, block_at, stream_at; /* stack indices */
  size_t shared_bytes;
  unsigned grid[3], block[3];
};

static const struct bind_field launch_fields[] = {
  {"grid", BIND_ANY, offsetof(struct launch, grid_at), .required = true},
  {"block", BIND_ANY, offsetof(struct launch, block_at), .required = true},
  {"shared_bytes",
   BIND_SIZE,
   offsetof(struct launch, shared_bytes),
   .min = 0,
   .max = 1 << 30},
  {"stream", BIND_ANY, offsetof(struct launch, stream_at)},
  {NULL},
};

/* One size on top of the stack, popped. */
static unsigned pop_size(lua_State *L, const char *key) {
  int is_integer = 0;
  lua_Integer n = lua_type(L, -1) == LUA_TNUMBER ? lua_tointegerx(L, -1, &is_integer) : 0;
  if (!is_integer || n < 1 || n > INT_MAX) {
    luaL_argerror(L,
                  2,
                  lua_pushfstring(L,
                                  "option '%s': expected one to three integers from 1 on, "
                                  "got %s",
                                  key,
                                  luaL_tolstring(L, -1, NULL)));
  }
  lua_pop(L, 1);
  return (unsigned)n;
}

static void read_sizes(lua_State *L, int at, const char *key, unsigned sizes[3]) {
  sizes[0] = sizes[1] = sizes[2] = 1;
  if (!lua_istable(L, at)) {
    lua_pushvalue(L, at);
    sizes[0] = pop_size(L, key);
    return;
  }
  const lua_Unsigned count = lua_rawlen(L, at);
  for (lua_Unsigned i = 0; i < count || i == 0; i++) {
    lua_rawgeti(L, at, i < 3 ? (lua_Integer)i + 1 : -1); /* a fourth is as wrong as none */
    const unsigned size = pop_size(L, key);
    if (i < 3) sizes[i] = size;
  }
}

/* A parameter that the script left out, or a struct longer than what it gave, reads `rest`
   (a driver before 12.4 cannot tell how many bytes a kernel takes; 32764 is the most). */
struct arguments {
  uint64_t values[MOST_ARGUMENTS];
  char rest[1 << 15];
  void *pointers[MOST_PARAMETERS];
};

static size_t read_number(lua_State *L, int arg, uint64_t *bits) {
  luaL_checktype(L, arg, LUA_TTABLE);
  lua_rawgeti(L, arg, 1);
  lua_rawgeti(L, arg, 2);
  const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
  int type = 0;
  while (dtype_names[type] && strcmp(dtype_names[type], name) != 0) type++;
  if (!dtype_names[type]) {
    luaL_argerror(
      L, arg, "expected a buffer or a number with its type, such as { \"i32\", 7 }");
  }
  if (!cuda_element(L, lua_gettop(L), (ncclDataType_t)type, bits)) {
    luaL_argerror(L, arg, lua_tostring(L, -1));
  }
  lua_pop(L, 2);
  return dtype_size((ncclDataType_t)type);
}

/* Returns the argument's size in bytes. */
static size_t read_argument(lua_State *L, const struct kernel *k, int arg, uint64_t *bits) {
  if (!lua_isuserdata(L, arg)) return read_number(L, arg, bits);
  const struct buffer *b = cuda_checkbuffer(L, arg);
  luaL_argcheck(L, b->device == k->device, arg, "the buffer is on another device");
  cuda_capture_note(L, k->cuda, arg);
  *bits = b->ptr;
  return sizeof b->ptr;
}

static void check_size(lua_State *L, const struct kernel *k, int index, size_t bytes) {
  size_t offset, wanted;
  if (k->parameters < 0) return;
  if (k->cuda->api->func_get_param_info(k->function, (size_t)index, &offset, &wanted)) {
    return;
  }
  if (wanted == bytes) return;
  luaL_argerror(
    L,
    index + 3,
    lua_pushfstring(L, "the kernel wants %d bytes here, got %d", (int)wanted, (int)bytes));
}

static void read_arguments(lua_State *L, const struct kernel *k, int top,
                           struct arguments *a) {
  const int count = top - 2;
  luaL_argcheck(L, count <= MOST_ARGUMENTS, MOST_ARGUMENTS + 3, "too many arguments");
  if (k->parameters >= 0 && k->parameters != count) {
    luaL_error(L, "launch: the kernel takes %d arguments, got %d", k->parameters, count);
  }
  for (int i = 0; i < count; i++) {
    check_size(L, k, i, read_argument(L, k, i + 3, &a->values[i]));
    a->pointers[i] = &a->values[i];
  }
  const int last = k->parameters < 0 ? MOST_PARAMETERS : count;
  for (int i = count; i < last; i++) a->pointers[i] = a->rest;
}

/* As a buffer's methods: without a stream, after all the device was given before. */
static CUstream begin(lua_State *L, const struct kernel *k, int stream_at) {
  struct cuda *c = k->cuda;
  CUstream stream = cuda_optstream(L, stream_at, k->device);
  if (!stream) cuda_check_may_wait(L, c, "launch");
  CUresult rc = CUDA_SUCCESS;
  if (!stream && c->is_busy[k->device]) rc = cuda_wait_device(c, k->device, "launch");
  if (!rc) rc = cuda_use(c, k->device);
  if (rc) cuda_raise(L, c, "launch", rc);
  cuda_capture_note(L, c, 1);
  return stream;
}

static int kernel_launch(lua_State *L) {
  struct kernel *k = check_kernel(L, 1);
  const int top = lua_gettop(L);
  struct launch o = {0};
  struct arguments a;
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_checkstack(L, 16, NULL);
  bind_fields(L, 2, launch_fields, &o);
  read_sizes(L, o.grid_at, "grid", o.grid);
  read_sizes(L, o.block_at, "block", o.block);
  CUstream stream = begin(L, k, o.stream_at);
  check_kernel(L, 1); /* a finalizer may have closed it meanwhile */
  read_arguments(L, k, top, &a);
  const unsigned *g = o.grid, *b = o.block;
  CUresult rc = k->cuda->api->launch_kernel(k->function,
                                            g[0],
                                            g[1],
                                            g[2],
                                            b[0],
                                            b[1],
                                            b[2],
                                            (unsigned)o.shared_bytes,
                                            stream,
                                            a.pointers,
                                            NULL);
  cuda_enqueued(k->cuda, k->device);
  if (!rc && !stream) rc = cuda_wait_stream(k->cuda, NULL, "launch");
  if (rc) return cuda_raise(L, k->cuda, "launch", rc);
  if (!stream) k->cuda->is_busy[k->device] = false;
  lua_settop(L, 1);
  return 1;
}

static int kernel_name(lua_State *L) {
  luaL_checkudata(L, 1, CUDA_KERNEL);
  lua_getiuservalue(L, 1, NAME);
  return 1;
}

static int kernel_log(lua_State *L) {
  luaL_checkudata(L, 1, CUDA_KERNEL);
  lua_getiuservalue(L, 1, LOG);
  return 1;
}

static int kernel_device(lua_State *L) {
  const struct kernel *k = luaL_checkudata(L, 1, CUDA_KERNEL);
  lua_pushinteger(L, k->device);
  return 1;
}

static int kernel_tostring(lua_State *L) {
  const struct kernel *k = luaL_checkudata(L, 1, CUDA_KERNEL);
  if (k->module) {
    lua_getiuservalue(L, 1, NAME);
    lua_pushfstring(L, "cuda.kernel (%s, device %d)", lua_tostring(L, -1), k->device);
  } else {
    lua_pushliteral(L, "cuda.kernel (closed)");
  }
  return 1;
}

static const luaL_Reg kernel_meta[] = {
  {"__gc", kernel_close},
  {"__close", kernel_close},
  {"__tostring", kernel_tostring},
  {NULL, NULL},
};

static const luaL_Reg kernel_methods[] = {
  {"close", kernel_close},
  {"launch", kernel_launch},
  {NULL, NULL},
};

static const luaL_Reg kernel_fields[] = {
  {"name", kernel_name},
  {"log", kernel_log},
  {"device", kernel_device},
  {NULL, NULL},
};

void cuda_kernel_type(lua_State *L) {
  bind_type_fields(L, CUDA_KERNEL, kernel_meta, kernel_methods, kernel_fields);
}
