/* Groups: several calls become one. What is closed meanwhile ends with the group. */

#include "bindings/bind.h"
#include "bindings/nccl.h"
#include "host/recorder.h"

/* Registry key of the list of members: its address is what matters. */
static const char MEMBERS = 0;

static void push_members(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &MEMBERS) == LUA_TTABLE) return;
  lua_pop(L, 1);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &MEMBERS);
}

void nccl_join_group(lua_State *L, int arg, struct comm *c) {
  if (c->is_member) return;
  arg = lua_absindex(L, arg);
  push_members(L);
  lua_pushvalue(L, arg);
  lua_rawseti(L, -2, c->nccl->members + 1);
  lua_pop(L, 1);
  c->nccl->members++;
  c->is_member = true;
}

/* The list is on top of the stack; so is what is in it alive. */
static struct comm *member(lua_State *L, int i) {
  lua_rawgeti(L, -1, i);
  struct comm *c = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return c;
}

/* Non-blocking members go on enqueueing in a thread of NCCL's. Memory that was closed may
   go only after that, so a script need not know. */
static ncclResult_t settle_members(lua_State *L, const struct nccl *n, ncclResult_t rc) {
  for (int i = 1; i <= n->members && rc == ncclInProgress; i++) {
    const struct comm *c = member(L, i);
    const ncclResult_t mine = c->state == NCCL_OPEN ? nccl_settle(c, rc) : rc;
    if (mine && mine != ncclInProgress) return mine;
  }
  return rc;
}

static void mark_local(lua_State *L, const struct nccl *n, struct comm *born) {
  for (int i = 1; i <= n->members; i++) {
    struct comm *c = member(L, i);
    if (c != born && c->clique == born->clique) c->is_local = born->is_local = true;
  }
}

static ncclResult_t bear_members(lua_State *L, const struct nccl *n, ncclResult_t rc) {
  ncclResult_t first = rc == ncclInProgress ? ncclSuccess : rc;
  for (int i = 1; i <= n->members; i++) {
    struct comm *c = member(L, i);
    if (c->state != NCCL_UNBORN) continue;
    mark_local(L, n, c);
    const ncclResult_t mine = nccl_comm_adopt(c, rc);
    if (c->is_doomed) c->handle = NULL;
    if (!first) first = mine;
  }
  return first;
}

/* Empties the list, ending what was closed while the group ran. */
static ncclResult_t dismiss_members(lua_State *L, struct nccl *n) {
  ncclResult_t rc = ncclSuccess;
  const int count = n->members;
  n->members = 0;
  for (int i = 1; i <= count; i++) {
    lua_rawgeti(L, -1, i);
    lua_pushnil(L);
    lua_rawseti(L, -3, i);
    struct comm *c = lua_touserdata(L, -1);
    const bool is_doomed = c->is_doomed;
    c->is_member = c->is_doomed = false;
    const ncclResult_t mine = is_doomed ? nccl_comm_end(L, -1, c, c->drains) : ncclSuccess;
    if (!rc) rc = mine;
    lua_pop(L, 1);
  }
  return rc;
}

/* Calls that are pending on communicators which the watchdog has ended must stay so. */
static ncclResult_t end_in_backend(const struct nccl *n) {
  if (comms_is_aborted()) return ncclRemoteError;
  recorder_wait("nccl.group");
  const ncclResult_t rc = n->api->group_end();
  recorder_wait(NULL);
  cuda_forget_current(n->cuda); /* it went through the devices of all members */
  return rc;
}

static ncclResult_t end_group(lua_State *L, struct nccl *n) {
  ncclResult_t rc = end_in_backend(n);
  if (--n->group_depth) {
    cuda_unhold(n->cuda);
    return rc;
  }
  push_members(L);
  rc = bear_members(L, n, settle_members(L, n, rc));
  cuda_enqueued(n->cuda, -1);
  cuda_unhold(n->cuda);
  const ncclResult_t ended = dismiss_members(L, n);
  lua_pop(L, 1);
  return rc ? rc : ended;
}

int nccl_group(lua_State *L) {
  struct err e;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  struct nccl *n = nccl_open(L, &e);
  if (!n) return luaL_error(L, "group: %s", e.text);
  if (n->burst)
    return luaL_error(L, "group: not inside a burst, which has an option group");
  ncclResult_t rc = n->api->group_start();
  if (rc) return nccl_raise(L, n, "group", rc);
  cuda_hold(n->cuda);
  n->group_depth++;
  const int status = lua_pcall(L, 0, LUA_MULTRET, 0);
  luaL_checkstack(L, 8, "group");
  rc = end_group(L, n);
  if (status) return lua_error(L);
  return rc ? nccl_raise(L, n, "group", rc) : lua_gettop(L);
}
