#include "host/repl.h"

#include "host/script.h"

#include <editline/readline.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Pushes the next line without its newline; false at the end of the input. */
static bool push_line(lua_State *L, const char *prompt) {
  char *line = NULL;
  if (isatty(STDIN_FILENO)) {
    line = readline(prompt);
  } else {
    size_t size = 0;
    ssize_t length = getline(&line, &size, stdin);
    if (length < 0) {
      free(line);
      line = NULL;
    } else if (length > 0 && line[length - 1] == '\n') {
      line[length - 1] = '\0';
    }
  }
  if (!line) return false;
  lua_pushstring(L, line); /* running out of memory here ends the program: no leak */
  free(line);
  return true;
}

/* Does the error on top of the stack say that the chunk only needs more lines? */
static bool is_incomplete(lua_State *L, int rc) {
  if (rc != LUA_ERRSYNTAX) return false;
  size_t length;
  const char *message = lua_tolstring(L, -1, &length);
  static const char mark[] = "<eof>";
  size_t tail = sizeof mark - 1;
  return length >= tail && strcmp(message + length - tail, mark) == 0;
}

/* The text at index 1 as "return TEXT", else as it is, else with more lines: leaves the
   function, or the error message, on top. */
static int load_entry(lua_State *L) {
  const char *text = lua_tostring(L, 1);
  if (text[0] == '=') text++;
  const char *expression = lua_pushfstring(L, "return %s", text);
  int rc = luaL_loadbufferx(L, expression, strlen(expression), "=stdin", "t");
  lua_remove(L, 2);
  if (rc == LUA_OK) return rc;
  lua_pop(L, 1);
  for (;;) {
    const char *chunk = lua_tostring(L, 1);
    rc = luaL_loadbufferx(L, chunk, strlen(chunk), "=stdin", "t");
    if (!is_incomplete(L, rc)) return rc;
    if (!push_line(L, ">> ")) return rc;
    lua_remove(L, 2); /* the error */
    lua_pushliteral(L, "\n");
    lua_insert(L, 2);
    lua_concat(L, 3);
  }
}

static void print_results(lua_State *L) {
  int n = lua_gettop(L);
  if (n == 0) return;
  luaL_checkstack(L, LUA_MINSTACK, "too many results to print");
  lua_getglobal(L, "print");
  lua_insert(L, 1);
  if (lua_pcall(L, n, 0, 0) != LUA_OK) script_report(L);
}

static bool is_quiet(void) {
  return !isatty(STDIN_FILENO);
}

void repl_run(lua_State *L) {
  rl_readline_name = "nclua";
  lua_settop(L, 0);
  while (push_line(L, "> ")) {
    int rc = load_entry(L);
    if (!is_quiet()) add_history(lua_tostring(L, 1));
    lua_remove(L, 1);
    if (rc == LUA_OK) rc = script_call(L, 0);
    if (rc == LUA_OK)
      print_results(L);
    else
      script_report(L);
    lua_settop(L, 0);
  }
  if (!is_quiet()) putchar('\n');
}
