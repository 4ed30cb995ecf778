#include "host/repl.h"

#include "host/script.h"

#include <lauxlib.h>

void repl_run(lua_State *L) {
  lua_settop(L, 0);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "nclua.prompt");
  int rc = lua_pcall(L, 1, 1, 0);
  if (!rc) {
    lua_getfield(L, -1, "run");
    rc = lua_pcall(L, 0, 0, 0);
  }
  if (rc) script_report(L);
  lua_settop(L, 0);
}
