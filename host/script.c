#include "host/script.h"

#include "host/embed.h"
#include "host/interrupt.h"
#include "host/needs.h"
#include "host/state.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char TRACEBACK[] = "nclua.traceback";

void script_traceback(lua_State *L, bool on) {
  lua_pushboolean(L, on);
  lua_setfield(L, LUA_REGISTRYINDEX, TRACEBACK);
}

/* Every error becomes text; the stack is collected always and shown on request. */
static int message_handler(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, TRACEBACK);
  bool show = lua_toboolean(L, -1);
  lua_settop(L, 1);
  if (show) return state_traceback(L);
  luaL_tolstring(L, 1, NULL);
  return 1;
}

void script_report(lua_State *L) {
  const char *message = lua_tostring(L, -1);
  fflush(stdout); /* what the script printed comes first */
  fprintf(stderr, "nclua: %s\n", message ? message : "(error object is not a string)");
  lua_pop(L, 1);
}

int script_call(lua_State *L, int n) {
  int base = lua_gettop(L) - n;
  lua_pushcfunction(L, message_handler);
  lua_insert(L, base);
  struct interrupt interrupt;
  interrupt_begin(&interrupt, L, false);
  int rc = lua_pcall(L, n, LUA_MULTRET, base);
  interrupt_end(&interrupt);
  lua_remove(L, base);
  return rc;
}

static int finish(lua_State *L, int rc) {
  if (rc != LUA_OK) script_report(L);
  return rc;
}

int script_string(lua_State *L, const char *code, const char *name) {
  int rc = luaL_loadbufferx(L, code, strlen(code), name, "t");
  if (rc == LUA_OK) rc = script_call(L, 0);
  if (rc == LUA_OK) lua_settop(L, 0);
  return finish(L, rc);
}

/* "name=module" or "module": require, then set the global. */
int script_library(lua_State *L, const char *spec) {
  const char *equals = strchr(spec, '=');
  const char *module = equals ? equals + 1 : spec;
  lua_getglobal(L, "require");
  lua_pushstring(L, module);
  int rc = script_call(L, 1);
  if (rc != LUA_OK) return finish(L, rc);
  lua_settop(L, 1); /* require also returns where it found the module */
  lua_pushglobaltable(L);
  lua_insert(L, 1);
  if (equals)
    lua_pushlstring(L, spec, (size_t)(equals - spec));
  else
    lua_pushstring(L, module);
  lua_insert(L, 2);
  lua_rawset(L, 1);
  lua_settop(L, 0);
  return LUA_OK;
}

static bool is_file(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* A searcher with the script's folder as its upvalue: what lies beside a script comes
   before what is in the binary, so that a copy of a chapter runs as it was edited. nclua's
   own modules cannot be replaced that way. */
static int search_beside(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  if (strncmp(name, "nclua.", strlen("nclua.")) == 0) return 0;
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchpath");
  lua_pushvalue(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_call(L, 2, 2);
  if (lua_isnil(L, -2)) return 1; /* where it was looked for */
  const char *path = lua_tostring(L, -2);
  if (luaL_loadfilex(L, path, "t") != LUA_OK) return lua_error(L);
  lua_pushstring(L, path);
  return 2;
}

/* With the folder's pattern on top of the stack: before the searcher of embedded files. */
static void add_searcher(lua_State *L) {
  lua_pushcclosure(L, search_beside, 1);
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchers");
  for (lua_Integer i = (lua_Integer)lua_rawlen(L, -1); i >= 2; i--) {
    lua_rawgeti(L, -1, i);
    lua_rawseti(L, -2, i + 1);
  }
  lua_rotate(L, -3, -1);
  lua_rawseti(L, -2, 2);
  lua_pop(L, 2);
}

/* A module beside the script is found wherever the script is started from. */
static void prepend_folder(lua_State *L, const char *script) {
  const char *slash = strrchr(script, '/');
  lua_getglobal(L, "package");
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  if (slash)
    luaL_addlstring(&b, script, (size_t)(slash - script));
  else
    luaL_addchar(&b, '.');
  luaL_addstring(&b, "/?.lua");
  luaL_pushresult(&b);
  lua_pushvalue(L, -1);
  add_searcher(L);
  lua_pushliteral(L, ";");
  lua_getfield(L, -3, "path");
  lua_concat(L, 3);
  lua_setfield(L, -2, "path");
  lua_pop(L, 1);
}

/* Nearly right names are told. */
static int refuse(lua_State *L, const char *name) {
  if (state_load_embedded(L, "nclua.unknown") || lua_pcall(L, 0, 1, 0)) return LUA_ERRRUN;
  lua_pushstring(L, name);
  const int rc = lua_pcall(L, 1, 1, 0);
  return rc ? rc : LUA_ERRFILE;
}

static int load_named(lua_State *L, const char *name) {
  static const char *const prefixes[] = {"chapter:", "nclua.cli."};
  for (int i = 0; i < 2; i++) {
    const char *embedded = lua_pushfstring(L, "%s%s", prefixes[i], name);
    if (embed_find(embedded)) return state_load_embedded(L, embedded);
    lua_pop(L, 1);
  }
  return refuse(L, name);
}

static int load_script(lua_State *L, const char *name, bool from_stdin) {
  if (from_stdin) return luaL_loadfilex(L, NULL, "t");
  if (!is_file(name)) return load_named(L, name);
  struct err e;
  if (needs_check(name, &e)) {
    lua_pushfstring(L, "%s: %s", name, e.text);
    return LUA_ERRFILE;
  }
  prepend_folder(L, name);
  return luaL_loadfilex(L, name, "t"); /* crafted bytecode can crash the host */
}

/* arg[0] is the script, arg[1...] its arguments, arg[-1...] what came before: as in lua. */
static void set_arg(lua_State *L, char **argv, int script) {
  int count = 0;
  while (argv[count]) count++;
  lua_createtable(L, count, script + 1);
  for (int i = 0; i < count; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - script);
  }
  lua_setglobal(L, "arg");
}

int script_run(lua_State *L, char **argv, int script, bool from_stdin) {
  set_arg(L, argv, argv[script] ? script : 0);
  if (!argv[script]) return LUA_OK;
  int rc = load_script(L, argv[script], from_stdin);
  if (rc == LUA_OK) {
    int n = 0;
    while (argv[script + 1 + n]) n++;
    luaL_checkstack(L, n + 2, "too many arguments to script");
    for (int i = 1; i <= n; i++) lua_pushstring(L, argv[script + i]);
    rc = script_call(L, n);
  }
  if (rc == LUA_OK) lua_settop(L, 0);
  return finish(L, rc);
}
