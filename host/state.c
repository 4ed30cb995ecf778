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

void state_open(lua_State *L) {
  luaL_openlibs(L);
  add_searcher(L);
}

int state_traceback(lua_State *L) {
  const char *message = lua_tostring(L, 1);
  if (!message) message = luaL_tolstring(L, 1, NULL);
  luaL_traceback(L, L, message, 1);
  return 1;
}
