/* How communicators are born: comm, init_all. */

#include "bindings/nccl_init.h"
#include "bindings/bind.h"
#include "host/recorder.h"

#include <limits.h>
#include <string.h>

/* An id holds NUL bytes, so it is no BIND_STRING. */
static void check_id(lua_State *L, int at, ncclUniqueId *id) {
  size_t bytes = 0;
  const char *text = lua_type(L, at) == LUA_TSTRING ? lua_tolstring(L, at, &bytes) : NULL;
  if (bytes != sizeof id->internal) {
    luaL_argerror(L, 1, "option 'id': expected the 128 bytes of nccl.unique_id()");
    return;
  }
  memcpy(id->internal, text, sizeof id->internal);
}

/* FNV-1a */
uint64_t nccl_clique(uint64_t seed, const void *data, size_t bytes) {
  const unsigned char *at = data;
  uint64_t h = 14695981039346656037u ^ seed;
  for (size_t i = 0; i < bytes; i++) h = (h ^ at[i]) * 1099511628211u;
  return h;
}

int nccl_born(lua_State *L, struct comm *c, const char *what, ncclResult_t rc) {
  if (c->is_member && (!rc || rc == ncclInProgress)) return 1;
  cuda_forget_current(c->cuda);
  rc = nccl_comm_adopt(c, rc);
  return rc ? nccl_fail(L, c->nccl, what, rc) : 1;
}

static int no_device(lua_State *L, const char *what, int device, int count) {
  luaL_pushfail(L);
  lua_pushfstring(L, "%s: no device %d: there are %d", what, device, count);
  lua_pushliteral(L, "CUDA_ERROR_INVALID_DEVICE");
  return 3;
}

int nccl_comm_new(lua_State *L) {
  ncclUniqueId id;
  struct err e;
  luaL_checktype(L, 1, LUA_TTABLE);
  const struct nccl_options o = nccl_comm_options(L, 1);
  check_id(L, o.id, &id);
  luaL_argcheck(L, o.rank < o.count, 1, "option 'rank': expected less than 'count'");
  struct nccl *n = nccl_open(L, &e);
  if (!n) return bind_fail(L, &e);
  cuda_check_may_wait(L, n->cuda, "comm");
  const int device = o.device < 0 ? n->cuda->chosen : o.device;
  if (device >= n->cuda->count) return no_device(L, "comm", device, n->cuda->count);
  const CUresult used = cuda_use(n->cuda, device);
  if (used) return cuda_fail(L, n->cuda, "comm", used);

  struct comm *c = nccl_comm_push(L, n, o.name);
  c->state = NCCL_UNBORN;
  c->rank = o.rank;
  c->count = o.count;
  c->device = device;
  c->clique = nccl_clique(0, id.internal, sizeof id.internal);
  if (n->group_depth) nccl_join_group(L, -1, c); /* which then writes to its slot */
  ncclConfig_t config = nccl_config(&o, c);
  recorder_wait("nccl.comm");
  const ncclResult_t rc =
    n->api->comm_init_rank_config(&c->slot, c->count, id, c->rank, &config);
  recorder_wait(NULL);
  return nccl_born(L, c, "comm", rc);
}

/* Either a list of different devices, or how many of the first ones. */
static int check_devices(lua_State *L, int devices[CUDA_MOST_DEVICES]) {
  if (lua_isinteger(L, 1)) {
    const int count = (int)bind_checkrange(L, 1, 1, CUDA_MOST_DEVICES);
    for (int i = 0; i < count; i++) devices[i] = i;
    return count;
  }
  luaL_argexpected(L, lua_istable(L, 1), 1, "number of devices or list of devices");
  const lua_Unsigned count = lua_rawlen(L, 1);
  luaL_argcheck(L, count >= 1 && count <= CUDA_MOST_DEVICES, 1, "expected 1 to 64 devices");
  for (int i = 0; i < (int)count; i++) {
    int is_integer = 0;
    lua_rawgeti(L, 1, i + 1);
    const lua_Integer device = lua_tointegerx(L, -1, &is_integer);
    luaL_argcheck(
      L, is_integer && device >= 0 && device <= INT_MAX, 1, "expected device indices");
    lua_pop(L, 1);
    devices[i] = (int)device;
    for (int j = 0; j < i; j++) {
      luaL_argcheck(L, devices[j] != devices[i], 1, "a device stands in the list twice");
    }
  }
  return (int)count;
}

/* Fills the list on top of the stack; the first failure ends all. */
static int adopt_all(lua_State *L, struct nccl *n, ncclComm_t *comms, int count) {
  ncclResult_t rc = ncclSuccess;
  n->cliques++;
  for (int i = 0; i < count; i++) {
    lua_rawgeti(L, -1, i + 1);
    struct comm *c = lua_touserdata(L, -1);
    lua_pop(L, 1);
    c->slot = comms[i];
    c->clique = n->cliques;
    c->is_local = count > 1;
    const ncclResult_t mine = nccl_comm_adopt(c, ncclSuccess);
    if (!rc) rc = mine;
  }
  return rc ? nccl_fail(L, n, "init_all", rc) : 1;
}

int nccl_init_all(lua_State *L) {
  struct err e;
  int devices[CUDA_MOST_DEVICES];
  const int count = check_devices(L, devices);
  struct nccl *n = nccl_open(L, &e);
  if (!n) return bind_fail(L, &e);
  if (n->group_depth) return luaL_error(L, "init_all: not inside nccl.group");
  cuda_check_may_wait(L, n->cuda, "init_all");
  for (int i = 0; i < count; i++) {
    if (devices[i] >= n->cuda->count) {
      return no_device(L, "init_all", devices[i], n->cuda->count);
    }
    const CUresult used = cuda_use(n->cuda, devices[i]);
    if (used) return cuda_fail(L, n->cuda, "init_all", used);
  }
  lua_createtable(L, count, 0);
  for (int i = 0; i < count; i++) { /* closed ones, so that nothing can fail afterwards */
    nccl_comm_push(L, n, NULL);
    lua_rawseti(L, -2, i + 1);
  }
  ncclComm_t comms[CUDA_MOST_DEVICES] = {NULL};
  recorder_wait("nccl.init_all");
  const ncclResult_t rc = n->api->comm_init_all(comms, count, devices);
  recorder_wait(NULL);
  cuda_forget_current(n->cuda);
  return rc ? nccl_fail(L, n, "init_all", rc) : adopt_all(L, n, comms, count);
}
