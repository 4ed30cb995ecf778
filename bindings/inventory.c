#include "host/inventory.h"
#include "bindings/bind.h"
#include "bindings/open.h"
#include "host/backend.h"
#include "host/needs.h"
#include "host/version.h"

#include <string.h>

/* nclua.inventory: what this machine has, without initialising anything in this process. */

static bool add_library(const char *path, const char *version, void *context) {
  lua_State *L = context;
  lua_createtable(L, 0, 2);
  lua_pushstring(L, path);
  lua_setfield(L, -2, "path");
  if (*version) {
    lua_pushstring(L, version);
    lua_setfield(L, -2, "version");
  }
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  return true;
}

static int inventory_libraries(lua_State *L) {
  static const char *const names[] = {"driver", "nccl", "nvrtc", "cupti", NULL};
  int kind = bind_checkname(L, 1, names);
  lua_newtable(L);
  inventory_each((enum inventory_library)kind, add_library, L);
  return 1;
}

static void push_device(lua_State *L, const struct inventory_device *d) {
  lua_createtable(L, 0, 5);
  lua_pushstring(L, d->name);
  lua_setfield(L, -2, "name");
  lua_pushstring(L, d->uuid);
  lua_setfield(L, -2, "uuid");
  lua_pushstring(L, d->bus_id);
  lua_setfield(L, -2, "pci_bus_id");
  lua_pushstring(L, d->compute_capability);
  lua_setfield(L, -2, "compute_capability");
  lua_pushinteger(L, (lua_Integer)d->memory_bytes);
  lua_setfield(L, -2, "memory_bytes");
}

static int inventory_gpus(lua_State *L) {
  int timeout = (int)luaL_optinteger(L, 1, 20);
  luaL_argcheck(L, timeout >= 1 && timeout <= 3600, 1, "expected 1 to 3600 seconds");
  struct err e;
  struct inventory_devices *all = lua_newuserdatauv(L, sizeof *all, 0);
  if (inventory_read_devices(timeout, all, &e)) return bind_fail(L, &e);
  lua_createtable(L, all->count, 1);
  for (int i = 0; i < all->count; i++) {
    push_device(L, &all->list[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_pushinteger(L, all->driver_version);
  lua_setfield(L, -2, "driver_version");
  return 1;
}

static int inventory_backend(lua_State *L) {
  lua_pushstring(L, backend_name());
  lua_pushinteger(L, backend_device_guess());
  return 2;
}

static int inventory_version(lua_State *L) {
  lua_pushliteral(L, NCLUA_VERSION);
  return 1;
}

/* inventory.needs(version) */
static int inventory_needs(lua_State *L) {
  struct err e;
  if (needs_version(luaL_checkstring(L, 1), &e)) return bind_fail(L, &e);
  lua_pushboolean(L, 1);
  return 1;
}

static const luaL_Reg functions[] = {
  {"backend", inventory_backend},
  {"gpus", inventory_gpus},
  {"libraries", inventory_libraries},
  {"needs", inventory_needs},
  {"version", inventory_version},
  {NULL, NULL},
};

int luaopen_nclua_inventory(lua_State *L) {
  luaL_newlib(L, functions);
  return 1;
}
