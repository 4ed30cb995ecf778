/* nclua.cuda: devices, memory, streams, events, graphs. One type a file; this one has the
   functions of the module itself. */
#include "bindings/cuda_parts.h"

#include "bindings/bind.h"

#include <time.h>

/* cuda.backend([name]): chooses one first, which is possible until a device is in use. */
static int backend(lua_State *L) {
  static const char *const names[] = {"auto", "cpu", "cuda", NULL};
  struct err e;
  if (!lua_isnoneornil(L, 1)) {
    const char *name = names[bind_checkname(L, 1, names)];
    if (cuda_state(L)->api) return luaL_error(L, "backend: %s is in use", backend_name());
    if (backend_choose(name, NULL, &e)) return luaL_error(L, "%s", e.text);
  }
  lua_pushstring(L, backend_name());
  return 1;
}

/* Before a device is in use this is a guess that touches none, so that a script may ask how
   many ranks to fork. */
static int device_count(lua_State *L) {
  const struct cuda *c = cuda_state(L);
  lua_pushinteger(L, c->api ? c->count : backend_device_guess());
  return 1;
}

static void set_integer(lua_State *L, const char *key, lua_Integer value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, key);
}

static void set_string(lua_State *L, const char *key, const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, key);
}

static int attribute(const struct cuda *c, CUdevice device, int which) {
  int value = 0;
  return c->api->device_get_attribute(&value, which, device) ? 0 : value;
}

/* 8-4-4-4-12 digits, as nvidia-smi prints it after "GPU-". */
static void set_uuid(lua_State *L, const CUuuid *uuid) {
  luaL_Buffer text;
  luaL_buffinit(L, &text);
  for (size_t i = 0; i < sizeof uuid->bytes; i++) {
    const unsigned byte = (unsigned char)uuid->bytes[i];
    if (i == 4 || i == 6 || i == 8 || i == 10) luaL_addchar(&text, '-');
    luaL_addchar(&text, "0123456789abcdef"[byte >> 4]);
    luaL_addchar(&text, "0123456789abcdef"[byte & 15]);
  }
  luaL_pushresult(&text);
  lua_setfield(L, -2, "uuid");
}

static void set_attributes(lua_State *L, const struct cuda *c, CUdevice device) {
  const int major = attribute(c, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  const int minor = attribute(c, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  lua_pushfstring(L, "%d.%d", major, minor);
  lua_setfield(L, -2, "compute_capability");
  set_integer(
    L, "multiprocessors", attribute(c, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
}

/* Pushes the description of one device. */
static CUresult push_device(lua_State *L, const struct cuda *c, int index) {
  const struct device_api *api = c->api;
  char name[256] = "", bus[32] = "";
  CUuuid uuid = {{0}};
  size_t bytes = 0;
  CUdevice device;
  CUresult rc = api->device_get(&device, index);
  if (!rc) rc = api->device_get_name(name, (int)sizeof name, device);
  if (!rc) rc = api->device_get_pci_bus_id(bus, (int)sizeof bus, device);
  if (!rc) rc = api->device_get_uuid(&uuid, device);
  if (!rc) rc = api->device_total_mem(&bytes, device);
  if (rc) return rc;
  lua_createtable(L, 0, 7);
  set_integer(L, "index", index);
  set_string(L, "name", name);
  set_uuid(L, &uuid);
  set_string(L, "pci_bus_id", bus);
  set_integer(L, "memory_bytes", (lua_Integer)bytes);
  set_attributes(L, c, device);
  return CUDA_SUCCESS;
}

static int devices(lua_State *L) {
  struct err e;
  const struct cuda *c = cuda_open(L, &e);
  if (!c) return bind_fail(L, &e);
  lua_createtable(L, c->count, 0);
  for (int i = 0; i < c->count; i++) {
    CUresult rc = push_device(L, c, i);
    if (rc) return cuda_fail(L, c, "devices", rc);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int set_device(lua_State *L) {
  luaL_checkinteger(L, 1);
  struct cuda *c = cuda_need(L);
  c->chosen = (int)bind_checkrange(L, 1, 0, c->count - 1);
  return 0;
}

static int device(lua_State *L) {
  lua_pushinteger(L, cuda_state(L)->chosen);
  return 1;
}

static int synchronize(lua_State *L) {
  struct cuda *c = cuda_need(L);
  cuda_check_may_wait(L, c, "synchronize");
  CUresult rc = cuda_wait_device(c, c->chosen, "cuda.synchronize");
  if (rc) return cuda_raise(L, c, "synchronize", rc);
  cuda_check_collectives(L, "synchronize");
  return 0;
}

/* cuda.is_idle([device]) */
static int is_idle(lua_State *L) {
  struct cuda *c = cuda_need(L);
  cuda_check_may_wait(L, c, "is_idle");
  const bool is_given = !lua_isnoneornil(L, 1);
  const int index = is_given ? (int)bind_checkrange(L, 1, 0, c->count - 1) : c->chosen;
  lua_pushboolean(L, cuda_is_idle(c, index));
  return 1;
}

static int now_ns(lua_State *L) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  lua_pushinteger(L, (lua_Integer)now.tv_sec * 1000000000 + now.tv_nsec);
  return 1;
}

static int driver_version(lua_State *L) {
  struct err e;
  int version = 0;
  const struct cuda *c = cuda_open(L, &e);
  if (!c) return bind_fail(L, &e);
  CUresult rc = c->api->driver_get_version(&version);
  if (rc) return cuda_fail(L, c, "driver_version", rc);
  lua_pushfstring(L, "%d.%d", version / 1000, version % 1000 / 10);
  return 1;
}

/* Ranges show up in a profiler; without one, or in a backend without them, they are nothing
   by nature, so that results are not looked at. */
static void push_range(struct cuda *c, const char *name) {
  if (c->api->range_push) c->api->range_push(name);
  c->range_depth++;
}

static void pop_range(struct cuda *c) {
  if (c->api->range_pop) c->api->range_pop();
  c->range_depth--;
}

static int range_push(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  push_range(cuda_need(L), name);
  return 0;
}

static int range_pop(lua_State *L) {
  struct cuda *c = cuda_need(L);
  if (c->range_depth == 0) return luaL_error(L, "range_pop: no range was pushed");
  pop_range(c);
  return 0;
}

#define RANGE "cuda.range"

struct range {
  struct cuda *cuda;
  int depth; /* before this range */
};

/* Also pops what the function pushed and left. */
static int range_close(lua_State *L) {
  const struct range *r = luaL_checkudata(L, 1, RANGE);
  while (r->cuda->range_depth > r->depth) pop_range(r->cuda);
  return 0;
}

static int range(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  struct cuda *c = cuda_need(L);
  lua_settop(L, 2);
  struct range *r = lua_newuserdatauv(L, sizeof *r, 0);
  *r = (struct range){c, c->range_depth};
  luaL_setmetatable(L, RANGE);
  lua_toclose(L, 3);
  push_range(c, name);
  lua_pushvalue(L, 2);
  lua_call(L, 0, LUA_MULTRET);
  return lua_gettop(L) - 3;
}

static const luaL_Reg range_meta[] = {{"__close", range_close}, {NULL, NULL}};
static const luaL_Reg range_methods[] = {{NULL, NULL}};

static const luaL_Reg functions[] = {
  {"backend", backend},
  {"devices", devices},
  {"device_count", device_count},
  {"set_device", set_device},
  {"device", device},
  {"synchronize", synchronize},
  {"is_idle", is_idle},
  {"now_ns", now_ns},
  {"driver_version", driver_version},
  {"range", range},
  {"range_push", range_push},
  {"range_pop", range_pop},
  {"buffer", cuda_buffer_new},
  {"stream", cuda_stream_new},
  {"event", cuda_event_new},
  {"kernel", cuda_kernel_new},
  {"time", cuda_time},
  {NULL, NULL},
};

int luaopen_nclua_cuda(lua_State *L) {
  luaL_checkversion(L);
  cuda_make_state(L);
  cuda_buffer_type(L);
  cuda_stream_type(L);
  cuda_event_type(L);
  cuda_graph_type(L);
  cuda_kernel_type(L);
  cuda_time_type(L);
  bind_type(L, RANGE, range_meta, range_methods);
  luaL_newlib(L, functions);
  return 1;
}
