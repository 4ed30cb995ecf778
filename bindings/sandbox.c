/* nclua.sandbox: what holds in this process, and whether a path may be used. */

#include "host/sandbox.h"

#include "bindings/bind.h"
#include "bindings/open.h"

static int sandbox_status(lua_State *L) {
  lua_createtable(L, 0, 4);
  lua_pushboolean(L, sandbox_is_active());
  lua_setfield(L, -2, "active");
  lua_pushinteger(L, sandbox_landlock());
  lua_setfield(L, -2, "landlock");
  lua_pushboolean(L, sandbox_has_seccomp());
  lua_setfield(L, -2, "seccomp");
  if (sandbox_is_active()) lua_pushstring(L, sandbox_folder());
  if (sandbox_is_active()) lua_setfield(L, -2, "folder");
  return 1;
}

/* sandbox.check(path, "read"|"write") */
static int sandbox_check(lua_State *L) {
  static const char *const uses[] = {"read", "write", NULL};
  const char *path = luaL_checkstring(L, 1);
  const bool to_write = luaL_checkoption(L, 2, NULL, uses) == 1;
  struct err e;
  if (sandbox_check_path(path, to_write, &e)) return bind_fail(L, &e);
  lua_pushboolean(L, 1);
  return 1;
}

static const luaL_Reg functions[] = {
  {"check", sandbox_check},
  {"status", sandbox_status},
  {NULL, NULL},
};

int luaopen_nclua_sandbox(lua_State *L) {
  luaL_checkversion(L);
  luaL_newlib(L, functions);
  return 1;
}
