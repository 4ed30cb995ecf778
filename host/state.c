#include "host/state.h"

#include "host/embed.h"

#include <lauxlib.h>
#include <lualib.h>

int state_load_embedded(lua_State *L, const char *name) {
  const struct embedded *f = embed_find(name);
  if (!f) {
    lua_pushfstring(L, "no embedded file '%s'", name);
    return LUA_ERRFILE;
  }
  lua_pushfstring(L, "@%s", f->path);
  int rc =
    luaL_loadbufferx(L, f->begin, (size_t)(f->end - f->begin), lua_tostring(L, -1), "t");
  lua_remove(L, -2);
  return rc;
}

/* package.searchers[2]: before the path, so that a file in the current directory cannot
   shadow a module of nclua. */
static int search_embedded(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  const struct embedded *f = embed_find(name);
  if (!f) {
    lua_pushfstring(L, "no embedded module '%s'", name);
    return 1;
  }
  if (state_load_embedded(L, name) != LUA_OK) return lua_error(L);
  lua_pushstring(L, f->path);
  return 2;
}

static void add_searcher(lua_State *L) {
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchers");
  for (lua_Integer i = (lua_Integer)lua_rawlen(L, -1); i >= 2; i--) {
    lua_rawgeti(L, -1, i);
    lua_rawseti(L, -2, i + 1);
  }
  lua_pushcfunction(L, search_embedded);
  lua_rawseti(L, -2, 2);
  lua_pop(L, 2);
}

/* os.exit(code [, close]): as in Lua, but the state is closed unless close is false, so
   that finalizers run: ranks, files and communicators end in order. */
static int exit_closing(lua_State *L) {
  lua_settop(L, 2);
  if (lua_isnil(L, 2)) {
    lua_pushboolean(L, 1);
    lua_replace(L, 2);
  }
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, 2, 0);
  return 0;
}

static void wrap_exit(lua_State *L) {
  lua_getglobal(L, "os");
  lua_getfield(L, -1, "exit");
  lua_pushcclosure(L, exit_closing, 1);
  lua_setfield(L, -2, "exit");
  lua_pop(L, 1);
}

void state_open(lua_State *L) {
  luaL_openlibs(L);
  add_searcher(L);
  wrap_exit(L);
}

int state_traceback(lua_State *L) {
  const char *message = lua_tostring(L, 1);
  if (!message) message = luaL_tolstring(L, 1, NULL);
  luaL_traceback(L, L, message, 1);
  return 1;
}
