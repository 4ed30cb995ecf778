#include "bindings/nccl.h"

#include "bindings/bind.h"
#include "host/forkable.h"
#include "host/recorder.h"

/* Registry key: its address is what matters. */
static const char SESSION = 0;

/* Made without a backend: asking for functions must leave the process able to fork. */
static struct nccl *session(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &SESSION) == LUA_TNIL) {
    lua_pop(L, 1);
    struct nccl *n = lua_newuserdatauv(L, sizeof *n, 0);
    *n = (struct nccl){0};
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &SESSION);
  }
  struct nccl *n = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return n;
}

struct nccl *nccl_open(lua_State *L, struct err *e) {
  struct nccl *n = session(L);
  if (n->api) return n;
  n->cuda = cuda_open(L, e);
  const struct coll_api *api = n->cuda ? backend_coll(e) : NULL;
  if (!api) return NULL;
  const ncclResult_t rc = api->get_version(&n->version);
  if (rc) {
    err_set(e, "ncclSystemError", "ncclGetVersion: %s", api->get_error_string(rc));
    return NULL;
  }
  /* Before the first communicator, whichever table it comes from. */
  cuda_coll.completed = cpu_coll.completed = recorder_complete;
  n->api = api;
  return n;
}

static const char *push_symbol(lua_State *L, ncclResult_t rc) {
  const char *name = comms_result_name(rc);
  return name ? lua_pushstring(L, name) : lua_pushfstring(L, "ncclResult %d", (int)rc);
}

int nccl_push_result(lua_State *L, ncclResult_t rc) {
  push_symbol(L, rc);
  return 1;
}

/* NCCL's last error says more than its error string, but is often empty. */
static const char *push_message(lua_State *L, const struct coll_api *api, ncclComm_t comm,
                                const char *what, ncclResult_t rc) {
  const char *why = api->get_last_error ? api->get_last_error(comm) : NULL;
  if (!why || !*why) why = api->get_error_string(rc);
  const char *symbol = push_symbol(L, rc);
  lua_pushfstring(L, "%s: %s: %s", what, symbol, why);
  lua_remove(L, -2);
  return lua_tostring(L, -1);
}

int nccl_fail(lua_State *L, const struct nccl *n, const char *what, ncclResult_t rc) {
  luaL_pushfail(L);
  push_message(L, n->api, NULL, what, rc);
  push_symbol(L, rc);
  return 3;
}

int nccl_raise(lua_State *L, const struct nccl *n, const char *what, ncclResult_t rc) {
  return luaL_error(L, "%s", push_message(L, n->api, NULL, what, rc));
}

int nccl_raise_of(lua_State *L, const struct comm *c, const char *what, ncclResult_t rc) {
  return luaL_error(L, "%s", push_message(L, c->api, c->slot, what, rc));
}

/* NCCL's number: 2804 is 2.8.4, from 2.9 on 22803 is 2.28.3. */
static const char *push_version(lua_State *L, int code) {
  const int scale = code < 10000 ? 1000 : 10000;
  const int major = code / scale, minor = code % scale / 100, patch = code % 100;
  return lua_pushfstring(L, "%d.%d.%d", major, minor, patch);
}

int nccl_unsupported(lua_State *L, const struct nccl *n, const char *what) {
  luaL_pushfail(L);
  lua_pushfstring(L, "%s: not supported by NCCL %s", what, push_version(L, n->version));
  lua_remove(L, -2);
  lua_pushliteral(L, "ENOTSUP");
  return 3;
}

static int version(lua_State *L) {
  struct err e;
  const struct nccl *n = nccl_open(L, &e);
  if (!n) return bind_fail(L, &e);
  push_version(L, n->version);
  return 1;
}

static void set_string(lua_State *L, const char *key, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

/* By which figures the backend chooses, where they are its own. */
static void set_calibration(lua_State *L, const struct coll_api *api) {
  struct coll_calibration c;
  if (!api->calibration) return;
  api->calibration(&c);
  if (*c.file) set_string(L, "calibration_file", c.file);
  set_string(L, "calibration_date", *c.date ? c.date : "shipped");
}

static int info(lua_State *L) {
  struct err e;
  const struct nccl *n = nccl_open(L, &e);
  if (!n) return bind_fail(L, &e);
  int driver = 0;
  const CUresult rc = n->cuda->api->driver_get_version(&driver);
  if (rc) return cuda_fail(L, n->cuda, "info", rc);
  lua_createtable(L, 0, 5);
  push_version(L, n->version);
  lua_setfield(L, -2, "version");
  lua_pushinteger(L, n->version);
  lua_setfield(L, -2, "code");
  set_string(L, "library", n->api->library_path());
  set_string(L, "backend", n->cuda->api->name);
  lua_pushfstring(L, "%d.%d", driver / 1000, driver % 1000 / 10);
  lua_setfield(L, -2, "driver");
  set_calibration(L, n->api);
  return 1;
}

static int unique_id(lua_State *L) {
  struct err e;
  struct nccl *n = nccl_open(L, &e);
  if (!n) return bind_fail(L, &e);
  ncclUniqueId id;
  const ncclResult_t rc = n->api->get_unique_id(&id);
  if (rc) return nccl_fail(L, n, "unique_id", rc);
  if (!n->holds_thread)
    forkable_hold("an NCCL bootstrap thread (make unique ids in a rank)");
  n->holds_thread = true;
  lua_pushlstring(L, id.internal, sizeof id.internal);
  return 1;
}

static const luaL_Reg functions[] = {
  {"comm", nccl_comm_new},
  {"group", nccl_group},
  {"info", info},
  {"init_all", nccl_init_all},
  {"unique_id", unique_id},
  {"version", version},
  {NULL, NULL},
};

static const luaL_Reg methods[] = {
  {"abort", nccl_comm_abort},
  {"all_gather", nccl_all_gather},
  {"all_reduce", nccl_all_reduce},
  {"all_to_all", nccl_all_to_all},
  {"async_error", nccl_comm_async_error},
  {"broadcast", nccl_broadcast},
  {"burst", nccl_burst},
  {"close", nccl_comm_close},
  {"finalize", nccl_comm_finalize},
  {"gather", nccl_gather},
  {"last_choice", nccl_last_choice},
  {"pre_mul_sum", nccl_pre_mul_sum},
  {"ready", nccl_comm_ready},
  {"recv", nccl_recv},
  {"reduce", nccl_reduce},
  {"reduce_scatter", nccl_reduce_scatter},
  {"register", nccl_register},
  {"scatter", nccl_scatter},
  {"send", nccl_send},
  {"shrink", nccl_comm_shrink},
  {"split", nccl_comm_split},
  {"window", nccl_window},
  {NULL, NULL},
};

int luaopen_nclua_nccl(lua_State *L) {
  luaL_checkversion(L);
  luaL_requiref(L, "nclua.cuda", luaopen_nclua_cuda, 0);
  lua_pop(L, 1);
  nccl_comm_type(L, methods);
  nccl_op_type(L);
  nccl_burst_type(L);
  nccl_register_types(L);
  luaL_newlib(L, functions);
  luaL_setfuncs(L, methods, 0);
  return 1;
}
