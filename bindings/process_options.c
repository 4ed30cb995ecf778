#include "bindings/process.h"

#include "bindings/bind.h"
#include "host/trace.h"
#include "host/trace_plugin.h"

#include <fnmatch.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

struct options {
  bool clean;
  const char *cwd, *trace;
  double timeout_s, grace_s;
  int env, unset, affinity, on_line, input, sink[2]; /* stack indices, 0: not given */
};

static const struct bind_field fields[] = {
  {"env", BIND_TABLE, offsetof(struct options, env)},
  {"unset", BIND_TABLE, offsetof(struct options, unset)},
  {"clean", BIND_BOOL, offsetof(struct options, clean)},
  {"cwd", BIND_STRING, offsetof(struct options, cwd)},
  {"stdin", BIND_ANY, offsetof(struct options, input)},
  {"stdout", BIND_ANY, offsetof(struct options, sink[0])},
  {"stderr", BIND_ANY, offsetof(struct options, sink[1])},
  {"on_line", BIND_FUNCTION, offsetof(struct options, on_line)},
  {"timeout_s",
   BIND_NUMBER,
   offsetof(struct options, timeout_s),
   .min = 1e-3,
   .max = PROCESS_LONGEST_S},
  {"grace_s",
   BIND_NUMBER,
   offsetof(struct options, grace_s),
   .min = 0,
   .max = PROCESS_LONGEST_S},
  {"affinity", BIND_TABLE, offsetof(struct options, affinity)},
  {"trace", BIND_STRING, offsetof(struct options, trace)},
  {NULL},
};

/* In the order of enum process_sink, where a file is a table and merge only for stderr. */
static const char *const sink_words[] = {"capture", "inherit", "null", "", "merge"};

/* The value on top of the stack, an element of a list: replaced by a string for C. */
static const char *to_word(lua_State *L, const char *what) {
  size_t length = 0;
  bool is_word = lua_type(L, -1) == LUA_TSTRING || lua_type(L, -1) == LUA_TNUMBER;
  if (!is_word) {
    luaL_error(L, "%s: expected a string or a number, got %s", what, luaL_typename(L, -1));
  }
  const char *word = lua_tolstring(L, -1, &length);
  if (strlen(word) != length) luaL_error(L, "%s: a NUL byte cannot be passed on", what);
  return word;
}

/* An array of C strings from the list on top of the stack, which keeps them alive and is
   replaced by table and array. */
static char **to_array(lua_State *L) {
  size_t count = lua_rawlen(L, -1);
  char **array = lua_newuserdatauv(L, (count + 1) * sizeof *array, 0);
  for (size_t i = 0; i < count; i++) {
    lua_rawgeti(L, -2, (lua_Integer)i + 1);
    array[i] = (char *)lua_tostring(L, -1); /* execve's argv is not const */
    lua_pop(L, 1);
  }
  array[count] = NULL;
  return array;
}

static char **read_argv(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_Integer count = (lua_Integer)lua_rawlen(L, 1);
  luaL_argcheck(L, count > 0, 1, "the command is empty");
  lua_newtable(L);
  for (lua_Integer i = 1; i <= count; i++) {
    lua_rawgeti(L, 1, i);
    const char *word = to_word(L, "command");
    if (i == 1 && !*word) luaL_argerror(L, 1, "the program's name is empty");
    lua_rawseti(L, -2, i);
  }
  return to_array(L);
}

static bool is_unset(lua_State *L, int unset, const char *name) {
  bool found = false;
  for (lua_Integer i = 1; unset && !found; i++) {
    if (lua_rawgeti(L, unset, i) == LUA_TNIL) {
      lua_pop(L, 1);
      return false;
    }
    found = fnmatch(to_word(L, "option 'unset'"), name, 0) == 0;
    lua_pop(L, 1);
  }
  return found;
}

static bool is_set(lua_State *L, int env, const char *name) {
  if (!env) return false;
  lua_pushstring(L, name);
  bool found = lua_rawget(L, env) != LUA_TNIL;
  lua_pop(L, 1);
  return found;
}

static void append(lua_State *L, int list) {
  lua_rawseti(L, list, (lua_Integer)lua_rawlen(L, list) + 1);
}

/* What makes a child, and its children, write their parts of a trace. */
static const char *const trace_variables[] = {
  "NCLUA_TRACE_FILE", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"};

static bool is_of_trace(const char *name) {
  for (size_t i = 0; i < COUNT(trace_variables); i++) {
    if (strcmp(trace_variables[i], name) == 0) return true;
  }
  return false;
}

static void add_trace(lua_State *L, const char *path, const char *plugin, int list) {
  for (size_t i = 0; i < COUNT(trace_variables); i++) {
    if (i == 0)
      lua_pushfstring(L, "%s=%s.%%p", trace_variables[i], path);
    else
      lua_pushfstring(L, "%s=%s", trace_variables[i], plugin);
    append(L, list);
  }
}

/* The file's absolute name, since the child may run elsewhere; pushed. */
static int read_trace(lua_State *L, struct process_request *r, const char *path,
                      struct err *e) {
  char folder[PATH_MAX] = "";
  if (*path != '/' && !getcwd(folder, sizeof folder)) return err_errno(e, "getcwd");
  lua_pushfstring(L, "%s%s%s", folder, *path == '/' ? "" : "/", path);
  r->trace = lua_gettop(L);
  return trace_prepare(lua_tostring(L, r->trace), e);
}

static void add_inherited(lua_State *L, const struct options *o, int list) {
  for (char **entry = environ; entry && *entry; entry++) {
    const char *equals = strchr(*entry, '=');
    if (!equals) continue;
    lua_pushlstring(L, *entry, (size_t)(equals - *entry));
    const char *name = lua_tostring(L, -1);
    const bool is_ours = o->trace && is_of_trace(name);
    if (!is_ours && !is_unset(L, o->unset, name) && !is_set(L, o->env, name)) {
      lua_pushstring(L, *entry);
      append(L, list);
    }
    lua_pop(L, 1);
  }
}

static void add_given(lua_State *L, int env, int list) {
  lua_pushnil(L);
  while (lua_next(L, env)) {
    if (lua_type(L, -2) != LUA_TSTRING) luaL_error(L, "option 'env': a name is no string");
    lua_pushvalue(L, -2);
    const char *name = to_word(L, "option 'env'");
    if (!*name || strchr(name, '=')) {
      luaL_error(L, "option 'env': '%s' cannot be the name of a variable", name);
    }
    const char *what = lua_pushfstring(L, "option 'env': %s", name);
    lua_pushvalue(L, -3);
    lua_pushfstring(L, "%s=%s", name, to_word(L, what));
    append(L, list);
    lua_pop(L, 4);
  }
}

static char **read_env(lua_State *L, const struct options *o, const char *trace,
                       const char *plugin) {
  lua_newtable(L);
  int list = lua_gettop(L);
  if (trace) add_trace(L, trace, plugin, list);
  if (!o->clean) add_inherited(L, o, list);
  if (o->env) add_given(L, o->env, list);
  return to_array(L);
}

static void read_file_sink(lua_State *L, struct process_spec *s, int i, int at) {
  lua_pushliteral(L, "file");
  lua_rawget(L, at);
  s->file[i] = to_word(L, i ? "option 'stderr.file'" : "option 'stdout.file'");
  s->sink[i] = PROCESS_FILE; /* the string stays alive in the table */
}

static void read_sink(lua_State *L, struct process_spec *s, int i, int at) {
  const char *expected = i ? "option 'stderr': expected 'capture', 'inherit', 'null', "
                             "'merge' or {file=PATH}"
                           : "option 'stdout': expected 'capture', 'inherit', 'null' or "
                             "{file=PATH}";
  if (!at) return;
  if (lua_type(L, at) == LUA_TTABLE) {
    read_file_sink(L, s, i, at);
    return;
  }
  const char *word = lua_type(L, at) == LUA_TSTRING ? lua_tostring(L, at) : "";
  for (int sink = 0; *word && sink <= (i ? PROCESS_MERGE : PROCESS_NULL); sink++) {
    if (strcmp(word, sink_words[sink]) == 0) {
      s->sink[i] = (enum process_sink)sink;
      return;
    }
  }
  luaL_argerror(
    L, 2, lua_pushfstring(L, "%s, got %s", expected, luaL_tolstring(L, at, NULL)));
}

static int read_affinity(lua_State *L, struct process_request *r, int at, struct err *e) {
  size_t count = lua_rawlen(L, at);
  luaL_argcheck(L, count > 0, 2, "option 'affinity': expected a list of CPUs");
  int *cpus = lua_newuserdatauv(L, count * sizeof *cpus, 0);
  for (size_t i = 0; i < count; i++) {
    int is_integer = 0;
    lua_rawgeti(L, at, (lua_Integer)i + 1);
    lua_Integer cpu = lua_tointegerx(L, -1, &is_integer);
    lua_pop(L, 1);
    luaL_argcheck(L,
                  is_integer && cpu >= 0 && cpu < INT_MAX,
                  2,
                  "option 'affinity': expected a list of CPU numbers");
    cpus[i] = (int)cpu;
  }
  r->spec.cpus = &r->cpus;
  return process_cpus(&r->cpus, cpus, count, e);
}

static void read_input(lua_State *L, struct process_request *r, int at) {
  luaL_argcheck(L, lua_type(L, at) == LUA_TSTRING, 2, "option 'stdin': expected a string");
  r->input = at;
  r->spec.input = lua_tolstring(L, at, &r->spec.input_bytes);
}

int process_read_request(lua_State *L, struct process_request *r, struct err *e) {
  struct options o = {.grace_s = 2};
  lua_settop(L, 2);
  *r = (struct process_request){0};
  r->spec.argv = read_argv(L);
  bind_fields(L, 2, fields, &o);
  luaL_checkstack(L, 16, NULL);
  char plugin[PATH_MAX];
  if (o.trace && trace_plugin_path(plugin, sizeof plugin, e)) return -1;
  if (o.trace && read_trace(L, r, o.trace, e)) return -1;
  r->spec.envp = read_env(L, &o, r->trace ? lua_tostring(L, r->trace) : NULL, plugin);
  r->spec.cwd = o.cwd;
  r->spec.timeout_s = o.timeout_s;
  r->spec.grace_s = o.grace_s;
  r->on_line = o.on_line;
  if (o.input) read_input(L, r, o.input);
  read_sink(L, &r->spec, 0, o.sink[0]);
  read_sink(L, &r->spec, 1, o.sink[1]);
  bool has_lines = r->spec.sink[0] == PROCESS_CAPTURE || r->spec.sink[1] == PROCESS_CAPTURE;
  luaL_argcheck(L,
                !o.on_line || has_lines,
                2,
                "option 'on_line': neither stdout nor stderr is captured");
  return o.affinity ? read_affinity(L, r, o.affinity, e) : 0;
}
