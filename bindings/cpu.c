#include "bindings/bind.h"
#include "bindings/nccl.h"
#include "bindings/open.h"

#include "host/backend.h"

#include <limits.h>

/* What only the CPU backend can do: show the steps inside a collective, and delay them. */

static const char *const collectives[] = {
  "broadcast",
  "reduce",
  "all_gather",
  "reduce_scatter",
  "all_reduce",
  "",
  "send",
  "recv",
  "all_to_all",
  "scatter",
  "gather",
};
static const char *const algorithms[] = {
  "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
static const char *const protocols[] = {"LL", "LL128", "Simple"};

static int fail_unsupported(lua_State *L, const struct err *loading) {
  struct err e;
  if (loading) return bind_fail(L, loading);
  err_set(
    &e, "ENOTSUP", "the steps inside a collective can be seen on the CPU backend only");
  return bind_fail(L, &e);
}

/* NULL: what is to be returned has been pushed, and *pushed is how much. */
static const struct coll_steps *open_steps(lua_State *L, int *pushed) {
  struct err e;
  const struct coll_api *api = backend_coll(&e);
  if (api && api->steps) return api->steps;
  *pushed = fail_unsupported(L, api ? NULL : &e);
  return NULL;
}

static void set_integer(lua_State *L, const char *key, int64_t value) {
  lua_pushinteger(L, (lua_Integer)value);
  lua_setfield(L, -2, key);
}

static void set_name(lua_State *L, const char *key, const char *const names[], size_t count,
                     int number) {
  if (number < 0 || (size_t)number >= count) return;
  lua_pushstring(L, names[number]);
  lua_setfield(L, -2, key);
}

static void set_ranks(lua_State *L, const char *key, const int *ranks, int count) {
  lua_createtable(L, count, 0);
  for (int i = 0; i < count; i++) {
    lua_pushinteger(L, ranks[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, key);
}

/* In NCCL's words: "recv_reduce_copy_send". */
static void set_kind(lua_State *L, unsigned verbs) {
  static const char *const words[] = {"recv", "reduce", "copy", "send"};
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  bool is_first = true;
  for (size_t i = 0; i < COUNT(words); i++) {
    if (!(verbs >> i & 1)) continue;
    if (!is_first) luaL_addchar(&b, '_');
    luaL_addstring(&b, words[i]);
    is_first = false;
  }
  luaL_pushresult(&b);
  lua_setfield(L, -2, "kind");
}

/* The places of a chunk that is several. */
static void set_offsets(lua_State *L, const struct coll_step *s) {
  if (s->offset == COLL_NOWHERE) return;
  set_integer(L, "offset", s->offset);
  if (s->pieces < 2) return;
  lua_createtable(L, s->pieces, 0);
  for (int i = 0; i < s->pieces; i++) {
    int64_t at = (s->offset + i * s->stride) % s->wrap;
    lua_pushinteger(L, (lua_Integer)(at < 0 ? at + s->wrap : at));
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "offsets");
}

static void push_step(lua_State *L, const struct coll_step *s) {
  lua_createtable(L, 0, 17);
  set_integer(L, "rank", s->rank);
  set_integer(L, "channel", s->channel);
  set_integer(L, "step", s->step);
  set_integer(L, "call", (int64_t)s->call);
  set_kind(L, s->verbs);
  set_name(L, "collective", collectives, COUNT(collectives), s->function);
  set_name(L, "algorithm", algorithms, COUNT(algorithms), s->algorithm);
  set_name(L, "protocol", protocols, COUNT(protocols), s->protocol);
  set_ranks(L, "from", s->from, s->nfrom);
  set_ranks(L, "to", s->to, s->nto);
  set_offsets(L, s);
  set_integer(L, "bytes", (int64_t)s->bytes);
  set_integer(L, "begin_ns", s->begin_ns);
  set_integer(L, "end_ns", s->end_ns);
  set_integer(L, "wait_ns", s->wait_ns);
  set_integer(L, "delay_ns", s->delay_ns);
}

static int push_steps(lua_State *L, const struct coll_steps *api) {
  const struct coll_step *steps;
  size_t lost, count = api->stop(&steps, &lost);
  lua_createtable(L, count < INT_MAX ? (int)count : 0, 1);
  for (size_t i = 0; i < count; i++) {
    push_step(L, &steps[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  set_integer(L, "lost", (int64_t)lost);
  return 1;
}

struct limit {
  size_t limit;
};

static size_t read_limit(lua_State *L, int arg) {
  static const struct bind_field fields[] = {
    {"limit", BIND_SIZE, offsetof(struct limit, limit), .min = 1, .max = 1 << 24},
    {NULL},
  };
  struct limit l = {1 << 16};
  bind_fields(L, arg, fields, &l);
  return l.limit;
}

static int start(lua_State *L) {
  struct err e;
  int pushed = 0;
  size_t limit = read_limit(L, 1);
  const struct coll_steps *api = open_steps(L, &pushed);
  if (!api) return pushed;
  if (api->start(limit, &e)) return bind_fail(L, &e);
  lua_pushboolean(L, true);
  return 1;
}

static int stop(lua_State *L) {
  int pushed = 0;
  const struct coll_steps *api = open_steps(L, &pushed);
  return api ? push_steps(L, api) : pushed;
}

/* cpu.trace(fn [, options]): whatever fn does, the recording ends. */
static int trace(lua_State *L) {
  struct err e;
  int pushed = 0;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  size_t limit = read_limit(L, 2);
  const struct coll_steps *api = open_steps(L, &pushed);
  if (!api) return pushed;
  if (api->start(limit, &e)) return bind_fail(L, &e);
  lua_settop(L, 1);
  if (lua_pcall(L, 0, 0, 0)) {
    const struct coll_step *steps;
    size_t lost;
    api->stop(&steps, &lost);
    return lua_error(L);
  }
  return push_steps(L, api);
}

/* cpu.delay{{rank=1, step=0, us=500}, ...}; none: no delays any more. */
static int delay(lua_State *L) {
  static const struct bind_field fields[] = {
    {"rank", BIND_INT, offsetof(struct coll_delay, rank), .max = INT_MAX},
    {"step", BIND_INT, offsetof(struct coll_delay, step), .max = INT_MAX},
    {"us", BIND_INT, offsetof(struct coll_delay, us), .required = true, .max = 1e9},
    {"channel", BIND_INT, offsetof(struct coll_delay, channel), .max = INT_MAX},
    {"call", BIND_INT, offsetof(struct coll_delay, call), .max = INT_MAX},
    {NULL},
  };
  struct err e;
  int pushed = 0;
  if (!lua_isnoneornil(L, 1)) luaL_checktype(L, 1, LUA_TTABLE);
  size_t count = lua_isnoneornil(L, 1) ? 0 : lua_rawlen(L, 1);
  struct coll_delay *list = lua_newuserdatauv(L, (count + 1) * sizeof *list, 0);
  for (size_t i = 0; i < count; i++) {
    list[i] = (struct coll_delay){-1, -1, 0, -1, -1};
    lua_rawgeti(L, 1, (lua_Integer)i + 1);
    bind_fields(L, lua_gettop(L), fields, &list[i]);
    lua_pop(L, 1);
  }
  const struct coll_steps *api = open_steps(L, &pushed);
  if (!api) return pushed;
  if (api->delay(list, count, &e)) return bind_fail(L, &e);
  lua_pushboolean(L, true);
  return 1;
}

static int counters(lua_State *L) {
  int pushed = 0;
  const struct comm *comm = nccl_checkcomm(L, 1);
  const struct coll_steps *api = open_steps(L, &pushed);
  if (!api) return pushed;
  struct coll_counters c;
  const ncclResult_t rc = api->count(comm->handle, &c);
  if (rc) return nccl_fail(L, comm->nccl, "counters", rc);
  lua_createtable(L, 0, 6);
  set_integer(L, "bytes_sent", (int64_t)c.bytes_sent);
  set_integer(L, "bytes_received", (int64_t)c.bytes_received);
  set_integer(L, "bytes_reduced", (int64_t)c.bytes_reduced);
  set_integer(L, "wire_sent", (int64_t)c.wire_sent);
  set_integer(L, "slots_sent", (int64_t)c.slots_sent);
  set_integer(L, "slots_received", (int64_t)c.slots_received);
  return 1;
}

static const luaL_Reg functions[] = {
  {"counters", counters},
  {"delay", delay},
  {"start", start},
  {"stop", stop},
  {"trace", trace},
  {NULL, NULL},
};

int luaopen_nclua_cpu(lua_State *L) {
  luaL_newlib(L, functions);
  return 1;
}
