/* LuaFileSystem under its own name, made safe: up to 1.9 the close method of a directory
   takes whatever it is given for one, so that d.close(42) would end the process. */

#include "bindings/open.h"

#include <lauxlib.h>

#define DIRECTORY "directory metatable" /* the library's name for the type */
#define LOCK "lock metatable"

int luaopen_lfs(lua_State *L); /* in Debian's archive, which has no header */

/* Upvalue 1 is the library's own function, which has no upvalues. */
static int close_directory(lua_State *L) {
  luaL_checkudata(L, 1, DIRECTORY);
  return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

/* Wraps the function `name` of the table on top of the stack. */
static void guard_close(lua_State *L, const char *name) {
  lua_getfield(L, -1, name);
  if (!lua_iscfunction(L, -1)) luaL_error(L, "lfs: a version that is not known");
  lua_pushcclosure(L, close_directory, 1);
  lua_setfield(L, -2, name);
}

static void guard_directory(lua_State *L) {
  luaL_getmetatable(L, DIRECTORY);
  if (!lua_istable(L, -1)) luaL_error(L, "lfs: a version that is not known");
  guard_close(L, "__gc");
  guard_close(L, "__close");
  lua_getfield(L, -1, "__index");
  guard_close(L, "close");
  lua_pop(L, 2);
}

static void protect(lua_State *L, const char *type) {
  luaL_getmetatable(L, type);
  lua_pushliteral(L, "protected");
  lua_setfield(L, -2, "__metatable");
  lua_pop(L, 1);
}

/* The library sets a global, which scripts that forbid new globals would refuse: it sets
   it in a table of nobody. */
static int open_without_global(lua_State *L) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
  lua_newtable(L);
  lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
  lua_pushcfunction(L, luaopen_lfs);
  int rc = lua_pcall(L, 0, 1, 0);
  lua_pushvalue(L, -2);
  lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
  return rc ? lua_error(L) : 1;
}

int open_lfs(lua_State *L) {
  lua_settop(L, 0);
  open_without_global(L);
  guard_directory(L);
  protect(L, DIRECTORY);
  protect(L, LOCK);
  return 1;
}
