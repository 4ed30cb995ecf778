/* nclua.trace: recording what runs, and putting recordings together. */
#include "host/trace.h"
#include "host/trace_plugin.h"

#include "bindings/bind.h"
#include "bindings/open.h"

#include <stddef.h>

static int start(lua_State *L) {
  static const struct bind_field fields[] = {
    {"file", BIND_STRING, offsetof(struct trace_options, path), .required = true},
    {"collectives", BIND_BOOL, offsetof(struct trace_options, has_collectives)},
    {NULL}};
  struct trace_options o = {.path = NULL};
  struct err e;
  bind_fields(L, 1, fields, &o);
  if (trace_start(&o, &e)) return bind_fail(L, &e);
  lua_pushboolean(L, 1);
  return 1;
}

/* The file, or nil where none ran. */
static int stop(lua_State *L) {
  struct err e;
  lua_pushstring(L, trace_path()); /* nil for NULL */
  if (trace_stop(&e)) return bind_fail(L, &e);
  return 1;
}

static int file(lua_State *L) {
  lua_pushstring(L, trace_path());
  return 1;
}

static int merge(lua_State *L) {
  struct err e;
  const char *into = luaL_checkstring(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  const lua_Integer count = luaL_len(L, 2);
  for (lua_Integer i = 1; i <= count; i++) {
    luaL_argcheck(L, lua_geti(L, 2, i) == LUA_TSTRING, 2, "expected a list of file names");
    lua_pop(L, 1);
  }
  for (lua_Integer i = 1; i <= count; i++) {
    lua_geti(L, 2, i);
    if (trace_merge(into, luaL_checkstring(L, -1), &e)) return bind_fail(L, &e);
    lua_pop(L, 1);
  }
  lua_pushvalue(L, 1);
  return 1;
}

static int plugin(lua_State *L) {
  struct err e;
  char path[4096];
  if (trace_plugin_path(path, sizeof path, &e)) return bind_fail(L, &e);
  lua_pushstring(L, path);
  return 1;
}

static const luaL_Reg functions[] = {
  {"file", file},
  {"merge", merge},
  {"plugin", plugin},
  {"start", start},
  {"stop", stop},
  {NULL, NULL},
};

int luaopen_nclua_trace(lua_State *L) {
  luaL_newlib(L, functions);
  return 1;
}
