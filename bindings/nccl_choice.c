/* What carried a collective: only a backend that chooses itself can tell. */

#include "bindings/bind.h"
#include "bindings/nccl.h"

/* NCCL's numbers, as nclua spells them. */
static const char *const collectives[] = {
  "broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce"};
static const char *const algorithms[] = {
  "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
static const char *const protocols[] = {"LL", "LL128", "Simple"};

static void set_name(lua_State *L, const char *key, const char *name) {
  lua_pushstring(L, name);
  lua_setfield(L, -2, key);
}

static void set_number(lua_State *L, const char *key, lua_Integer value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, key);
}

/* comm:last_choice(): a table; nil if nothing had to be chosen yet. */
int nccl_last_choice(lua_State *L) {
  const struct comm *c = nccl_checkcomm(L, 1);
  struct coll_choice choice;
  if (!c->api->last_choice) return nccl_unsupported(L, c->nccl, "last_choice");
  const ncclResult_t rc = c->api->last_choice(c->handle, &choice);
  if (rc) return nccl_raise_of(L, c, "last_choice", rc);
  lua_settop(L, 1);
  if (choice.channels == 0) {
    lua_pushnil(L);
    return 1;
  }
  lua_createtable(L, 0, 6);
  set_name(L, "collective", collectives[choice.function]);
  set_name(L, "algorithm", algorithms[choice.algorithm]);
  set_name(L, "protocol", protocols[choice.protocol]);
  set_number(L, "channels", choice.channels);
  set_number(L, "bytes", (lua_Integer)choice.bytes);
  lua_pushfstring(L, "%s backend", c->api->name);
  lua_setfield(L, -2, "source");
  return 1;
}
