/* The Lua files inside the binary, as text: what a chapter's checksum and its help are made
   from when the chapter is not a file on disk. */
#include "bindings/bind.h"
#include "bindings/open.h"
#include "host/embed.h"

/* embedded.names() */
static int embedded_names(lua_State *L) {
  lua_newtable(L);
  for (const struct embedded *f = embedded_files; f->name; f++) {
    lua_pushstring(L, f->name);
    lua_rawseti(L, -2, (lua_Integer)(f - embedded_files) + 1);
  }
  return 1;
}

/* embedded.source(name): text, path; or nil if there is no such file. */
static int embedded_source(lua_State *L) {
  const struct embedded *f = embed_find(luaL_checkstring(L, 1));
  if (!f) {
    luaL_pushfail(L);
    return 1;
  }
  lua_pushlstring(L, f->begin, (size_t)(f->end - f->begin));
  lua_pushstring(L, f->path);
  return 2;
}

static const luaL_Reg functions[] = {
  {"names", embedded_names},
  {"source", embedded_source},
  {NULL, NULL},
};

int luaopen_nclua_embedded(lua_State *L) {
  luaL_checkversion(L);
  luaL_newlib(L, functions);
  return 1;
}
