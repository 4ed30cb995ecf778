#include "host/repl.h"

#include "host/script.h"

#include <lauxlib.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

/* An impatient second Ctrl-C, when the first has brought the prompt back, ends nothing. */
static int run(lua_State *L) {
  const bool is_terminal = isatty(STDIN_FILENO);
  void (*before)(int) = is_terminal ? signal(SIGINT, SIG_IGN) : NULL;
  const int rc = lua_pcall(L, 0, 0, 0);
  if (is_terminal) signal(SIGINT, before);
  return rc;
}

void repl_run(lua_State *L) {
  lua_settop(L, 0);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "nclua.prompt");
  int rc = lua_pcall(L, 1, 1, 0);
  if (!rc) {
    lua_getfield(L, -1, "run");
    rc = run(L);
  }
  if (rc) script_report(L);
  lua_settop(L, 0);
}
