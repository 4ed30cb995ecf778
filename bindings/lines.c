/* What a prompt needs of the host: lines that are edited, a private file, and calls that
   Ctrl-C interrupts. */
#include "bindings/bind.h"
#include "bindings/open.h"
#include "host/interrupt.h"
#include "host/line.h"
#include "host/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EDITOR "lines.editor"

struct editor {
  struct line *line; /* NULL: closed */
  bool is_reading;
};

enum { ON_TAB = 1 }; /* the user value */

static struct editor *check_editor(lua_State *L, int arg) {
  struct editor *e = luaL_checkudata(L, arg, EDITOR);
  bind_checkopen(L, e->line != NULL, "editor");
  return e;
}

static int editor_new(lua_State *L) {
  struct err e;
  struct editor *editor = lua_newuserdatauv(L, sizeof *editor, 1);
  *editor = (struct editor){.line = NULL};
  luaL_setmetatable(L, EDITOR);
  editor->line = line_open(&e);
  return editor->line ? 1 : bind_fail(L, &e);
}

/* Asks the script: fn(text) returns what to insert and what to show, each may be nil. */
static int ask_script(lua_State *L) {
  struct line *l = lua_touserdata(L, 1);
  lua_pushvalue(L, 2);
  lua_pushvalue(L, 3);
  lua_call(L, 1, 2);
  const char *inserted = luaL_optstring(L, -2, ""), *shown = luaL_optstring(L, -1, NULL);
  line_insert(l, inserted);
  if (shown) line_show(l, shown);
  return 0;
}

/* An error must not jump over libedit, and would only disturb who is typing. */
static void on_tab(void *data, struct line *l, const char *text, size_t length) {
  lua_State *L = data;
  lua_pushcfunction(L, ask_script);
  lua_pushlightuserdata(L, l);
  lua_getiuservalue(L, 1, ON_TAB);
  lua_pushlstring(L, text, length);
  if (lua_pcall(L, 3, 0, 0)) lua_pop(L, 1);
}

static int editor_read(lua_State *L) {
  struct editor *e = check_editor(L, 1);
  const char *prompt = luaL_checkstring(L, 2);
  luaL_argcheck(L, !e->is_reading, 1, "the editor is reading a line");
  lua_settop(L, 2);
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  const struct line_tab tab = {.pressed = on_tab, .data = L};
  const char *text = NULL;
  e->is_reading = true;
  const enum line_end end = line_read(e->line, prompt, &tab, &text);
  e->is_reading = false;
  if (end == LINE_READ)
    lua_pushstring(L, text);
  else if (end == LINE_CANCELLED)
    lua_pushboolean(L, 0);
  else
    luaL_pushfail(L);
  return 1;
}

static int editor_on_tab(lua_State *L) {
  check_editor(L, 1);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  lua_setiuservalue(L, 1, ON_TAB);
  return 1;
}

static int editor_remember(lua_State *L) {
  const struct editor *e = check_editor(L, 1);
  line_remember(e->line, luaL_checkstring(L, 2));
  lua_settop(L, 1);
  return 1;
}

static int editor_close(lua_State *L) {
  struct editor *e = luaL_checkudata(L, 1, EDITOR);
  luaL_argcheck(L, !e->is_reading, 1, "the editor is reading a line");
  struct line *line = e->line;
  e->line = NULL;
  line_close(line);
  return 0;
}

static int editor_tostring(lua_State *L) {
  const struct editor *e = luaL_checkudata(L, 1, EDITOR);
  lua_pushstring(L, e->line ? EDITOR : EDITOR " (closed)");
  return 1;
}

/* lines.read(): a line of standard input, as it comes; nil at its end. */
static int lines_read(lua_State *L) {
  char *line = NULL;
  size_t size = 0;
  const ssize_t length = getline(&line, &size, stdin);
  if (length >= 0) {
    const bool has_newline = length > 0 && line[length - 1] == '\n';
    lua_pushlstring(L, line, (size_t)length - has_newline);
  } else {
    luaL_pushfail(L);
  }
  free(line); /* running out of memory above ends the program: no leak */
  return 1;
}

static int append(const char *path, const char *text, size_t length, struct err *e) {
  const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  if (sandbox_check_path(path, true, e)) return -1;
  const int fd = open(path, flags, 0600);
  if (fd < 0) return err_errno(e, "'%s'", path);
  int rc = 0;
  if (write(fd, text, length) != (ssize_t)length) rc = err_errno(e, "'%s'", path);
  if (close(fd) && !rc) rc = err_errno(e, "'%s'", path);
  return rc;
}

/* lines.append(path, text): to a file that only its owner may read. */
static int lines_append(lua_State *L) {
  struct err e;
  size_t length;
  const char *path = luaL_checkstring(L, 1), *text = luaL_checklstring(L, 2, &length);
  if (append(path, text, length, &e)) return bind_fail(L, &e);
  lua_pushboolean(L, 1);
  return 1;
}

/* lines.call(handler, fn, ...): as xpcall, and Ctrl-C interrupts it. */
static int lines_call(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  luaL_checkany(L, 2);
  struct interrupt interrupt;
  interrupt_begin(&interrupt, L, true);
  const int rc = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 1);
  interrupt_end(&interrupt);
  lua_pushboolean(L, rc == LUA_OK);
  lua_replace(L, 1);
  return lua_gettop(L);
}

static const luaL_Reg editor_meta[] = {
  {"__gc", editor_close},
  {"__close", editor_close},
  {"__tostring", editor_tostring},
  {NULL, NULL},
};

static const luaL_Reg editor_methods[] = {
  {"close", editor_close},
  {"on_tab", editor_on_tab},
  {"read", editor_read},
  {"remember", editor_remember},
  {NULL, NULL},
};

static const luaL_Reg functions[] = {
  {"append", lines_append},
  {"call", lines_call},
  {"editor", editor_new},
  {"read", lines_read},
  {NULL, NULL},
};

int luaopen_nclua_lines(lua_State *L) {
  luaL_checkversion(L);
  bind_type(L, EDITOR, editor_meta, editor_methods);
  luaL_newlib(L, functions);
  return 1;
}
