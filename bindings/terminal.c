#include "bindings/bind.h"
#include "bindings/open.h"

#include <sys/ioctl.h>
#include <unistd.h>

static int check_stream(lua_State *L, int arg) {
  static const char *const names[] = {"stdin", "stdout", "stderr", NULL};
  return bind_checkname(L, arg, names); /* the index is the descriptor's number */
}

/* terminal.is_terminal("stdin"|"stdout"|"stderr") */
static int terminal_is_terminal(lua_State *L) {
  lua_pushboolean(L, isatty(check_stream(L, 1)));
  return 1;
}

/* terminal.columns("stdin"|"stdout"|"stderr"): nil if that is no terminal. */
static int terminal_columns(lua_State *L) {
  struct winsize size = {0};
  const int fd = check_stream(L, 1);
  if (ioctl(fd, TIOCGWINSZ, &size) || size.ws_col == 0)
    luaL_pushfail(L);
  else
    lua_pushinteger(L, size.ws_col);
  return 1;
}

static const luaL_Reg functions[] = {
  {"is_terminal", terminal_is_terminal},
  {"columns", terminal_columns},
  {NULL, NULL},
};

int luaopen_nclua_terminal(lua_State *L) {
  luaL_checkversion(L);
  luaL_newlib(L, functions);
  return 1;
}
