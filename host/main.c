#include "bindings/open.h"
#include "host/state.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  lua_State *L = luaL_newstate();
  state_open(L);
  open_modules(L);
  lua_createtable(L, argc, 0);
  for (int i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - 1);
  }
  lua_setglobal(L, "arg");
  lua_pushcfunction(L, state_traceback);
  int rc = argc > 1 ? luaL_loadfile(L, argv[1]) : luaL_loadfile(L, NULL);
  if (!rc) rc = lua_pcall(L, 0, 0, 1);
  if (rc) fprintf(stderr, "nclua: %s\n", lua_tostring(L, -1));
  lua_close(L);
  return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
