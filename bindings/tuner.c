/* nclua.tuner: tuner plugins, asked without a GPU or steered while NCCL uses them. */
#include "host/tuner.h"
#include "bindings/bind.h"
#include "bindings/open.h"

#include <math.h>

#define PLUGIN "tuner.plugin"
#define CONTEXT "tuner.context"

static const char *const collectives[] = {
  "broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce", NULL};
static const char *const algorithms[] = {
  "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT", NULL};
static const char *const protocols[] = {"LL", "LL128", "Simple", NULL};

struct plugin {
  struct tuner *tuner;
};

struct context {
  struct tuner_context *handle;
};

static struct plugin *check_plugin(lua_State *L, int arg) {
  struct plugin *p = luaL_checkudata(L, arg, PLUGIN);
  bind_checkopen(L, p->tuner != NULL, "plugin");
  return p;
}

static struct context *check_context(lua_State *L, int arg) {
  struct context *c = luaL_checkudata(L, arg, CONTEXT);
  bind_checkopen(L, c->handle != NULL, "tuner context");
  return c;
}

static int tuner_open_lua(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  struct err e;
  struct plugin *p = lua_newuserdatauv(L, sizeof *p, 0);
  *p = (struct plugin){NULL};
  luaL_setmetatable(L, PLUGIN);
  p->tuner = tuner_open(path, &e);
  return p->tuner ? 1 : bind_fail(L, &e);
}

static int plugin_close(lua_State *L) {
  struct plugin *p = luaL_checkudata(L, 1, PLUGIN);
  struct tuner *t = p->tuner;
  p->tuner = NULL;
  tuner_close(t);
  return 0;
}

static int plugin_tostring(lua_State *L) {
  struct plugin *p = luaL_checkudata(L, 1, PLUGIN);
  if (!p->tuner)
    lua_pushliteral(L, PLUGIN " (closed)");
  else
    lua_pushfstring(L, PLUGIN " '%s'", tuner_name(p->tuner));
  return 1;
}

static int plugin_name(lua_State *L) {
  lua_pushstring(L, tuner_name(check_plugin(L, 1)->tuner));
  return 1;
}

static int plugin_version(lua_State *L) {
  lua_pushinteger(L, tuner_version(check_plugin(L, 1)->tuner));
  return 1;
}

struct choice {
  int collective, algorithm, protocol;
  size_t channels;
};

/* plugin:force{collective=, algorithm=, protocol=, channels=}; no collective: all. */
static int plugin_force(lua_State *L) {
  static const struct bind_field fields[] = {
    {"collective", BIND_NAME, offsetof(struct choice, collective), .names = collectives},
    {"algorithm",
     BIND_NAME,
     offsetof(struct choice, algorithm),
     .required = true,
     .names = algorithms},
    {"protocol",
     BIND_NAME,
     offsetof(struct choice, protocol),
     .required = true,
     .names = protocols},
    {"channels", BIND_SIZE, offsetof(struct choice, channels), .max = 1024},
    {NULL},
  };
  struct err e;
  struct plugin *p = check_plugin(L, 1);
  struct choice c = {.collective = -1};
  bind_fields(L, 2, fields, &c);
  int rc =
    tuner_force(p->tuner, c.collective, c.algorithm, c.protocol, (int)c.channels, &e);
  if (rc) return luaL_error(L, "force: %s", e.text);
  lua_settop(L, 1);
  return 1;
}

static int plugin_unforce(lua_State *L, const char *name, int how) {
  struct err e;
  struct plugin *p = check_plugin(L, 1);
  int collective = bind_optname(L, 2, collectives, -1);
  if (tuner_force(p->tuner, collective, how, 0, 0, &e)) {
    return luaL_error(L, "%s: %s", name, e.text);
  }
  lua_settop(L, 1);
  return 1;
}

static int plugin_release(lua_State *L) {
  return plugin_unforce(L, "release", TUNER_RELEASE);
}

static int plugin_keep(lua_State *L) {
  return plugin_unforce(L, "keep", TUNER_KEEP);
}

static int plugin_report(lua_State *L) {
  struct err e;
  struct tuner_counts counts;
  if (tuner_report(check_plugin(L, 1)->tuner, &counts, &e)) {
    return luaL_error(L, "report: %s", e.text);
  }
  lua_createtable(L, 0, 3);
  lua_pushinteger(L, (lua_Integer)counts.calls);
  lua_setfield(L, -2, "calls");
  lua_pushinteger(L, (lua_Integer)counts.forced);
  lua_setfield(L, -2, "forced");
  lua_pushinteger(L, (lua_Integer)counts.unavailable);
  lua_setfield(L, -2, "unavailable");
  return 1;
}

static int plugin_flush(lua_State *L) {
  struct err e;
  if (tuner_flush(check_plugin(L, 1)->tuner, &e)) return luaL_error(L, "flush: %s", e.text);
  lua_settop(L, 1);
  return 1;
}

struct world {
  size_t ranks, nodes;
};

/* plugin:context{ranks=, nodes=}: what a communicator would be to the plugin. */
static int plugin_context(lua_State *L) {
  static const struct bind_field fields[] = {
    {"ranks",
     BIND_SIZE,
     offsetof(struct world, ranks),
     .required = true,
     .min = 1,
     .max = 1 << 24},
    {"nodes", BIND_SIZE, offsetof(struct world, nodes), .min = 1, .max = 1 << 24},
    {NULL},
  };
  struct err e;
  struct plugin *p = check_plugin(L, 1);
  struct world w = {.nodes = 1};
  bind_fields(L, 2, fields, &w);
  struct context *c = lua_newuserdatauv(L, sizeof *c, 1);
  *c = (struct context){NULL};
  luaL_setmetatable(L, CONTEXT);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1); /* the plugin outlives its contexts */
  c->handle = tuner_start(p->tuner, w.ranks, w.nodes, NULL, &e);
  return c->handle ? 1 : bind_fail(L, &e);
}

static int context_close(lua_State *L) {
  struct context *c = luaL_checkudata(L, 1, CONTEXT);
  struct tuner_context *handle = c->handle;
  c->handle = NULL;
  tuner_stop(handle);
  return 0;
}

static int context_tostring(lua_State *L) {
  const struct context *c = luaL_checkudata(L, 1, CONTEXT);
  lua_pushstring(L, c->handle ? CONTEXT : CONTEXT " (closed)");
  return 1;
}

/* costs[algorithm][protocol] at index `arg` to the flat table; missing cells are -1. */
static void read_costs(lua_State *L, int arg, float costs[TUNER_CELLS]) {
  luaL_checktype(L, arg, LUA_TTABLE);
  for (int a = 0; a < TUNER_ALGORITHMS; a++) {
    bool has_row = lua_getfield(L, arg, algorithms[a]) == LUA_TTABLE;
    for (int p = 0; p < TUNER_PROTOCOLS; p++) {
      float *cell = &costs[a * TUNER_PROTOCOLS + p];
      *cell = -1;
      if (!has_row) continue;
      if (lua_getfield(L, -1, protocols[p]) == LUA_TNUMBER) {
        *cell = (float)lua_tonumber(L, -1);
      }
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
}

static void push_costs(lua_State *L, const float costs[TUNER_CELLS]) {
  lua_createtable(L, 0, TUNER_ALGORITHMS);
  for (int a = 0; a < TUNER_ALGORITHMS; a++) {
    lua_createtable(L, 0, TUNER_PROTOCOLS);
    for (int p = 0; p < TUNER_PROTOCOLS; p++) {
      lua_pushnumber(L, (double)costs[a * TUNER_PROTOCOLS + p]);
      lua_setfield(L, -2, protocols[p]);
    }
    lua_setfield(L, -2, algorithms[a]);
  }
}

/* context:ask(collective, bytes, costs [, {ops=, registered=}]): costs, channels. */
static int context_ask(lua_State *L) {
  static const struct bind_field fields[] = {
    {"ops", BIND_INT, offsetof(struct tuner_question, ops), .min = 1, .max = 1 << 20},
    {"registered", BIND_INT, offsetof(struct tuner_question, registered), .max = 1},
    {NULL},
  };
  struct err e;
  struct context *c = check_context(L, 1);
  lua_settop(L, 5);
  lua_getiuservalue(L, 1, 1);
  check_plugin(L, -1);
  struct tuner_question q = {.ops = 1};
  q.func = bind_checkname(L, 2, collectives);
  q.bytes = (uint64_t)bind_checksize(L, 3, 0, SIZE_MAX);
  read_costs(L, 4, q.costs);
  bind_fields(L, 5, fields, &q);
  if (tuner_ask(c->handle, &q, &e)) return bind_fail(L, &e);
  push_costs(L, q.costs);
  lua_pushinteger(L, q.channels);
  return 2;
}

static const luaL_Reg plugin_meta[] = {
  {"__gc", plugin_close},
  {"__close", plugin_close},
  {"__tostring", plugin_tostring},
  {NULL, NULL},
};
static const luaL_Reg plugin_methods[] = {
  {"close", plugin_close},
  {"context", plugin_context},
  {"flush", plugin_flush},
  {"force", plugin_force},
  {"keep", plugin_keep},
  {"release", plugin_release},
  {"report", plugin_report},
  {NULL, NULL},
};
static const luaL_Reg plugin_fields[] = {
  {"abi_version", plugin_version},
  {"name", plugin_name},
  {NULL, NULL},
};
static const luaL_Reg context_meta[] = {
  {"__gc", context_close},
  {"__close", context_close},
  {"__tostring", context_tostring},
  {NULL, NULL},
};
static const luaL_Reg context_methods[] = {
  {"ask", context_ask},
  {"close", context_close},
  {NULL, NULL},
};
static const luaL_Reg functions[] = {{"open", tuner_open_lua}, {NULL, NULL}};

int luaopen_nclua_tuner(lua_State *L) {
  bind_type_fields(L, PLUGIN, plugin_meta, plugin_methods, plugin_fields);
  bind_type(L, CONTEXT, context_meta, context_methods);
  luaL_newlib(L, functions);
  return 1;
}
