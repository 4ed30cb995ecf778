/* Communicators from a communicator: split and shrink. They outlive their parent. */

#include "bindings/bind.h"
#include "bindings/nccl_init.h"
#include "host/recorder.h"

#include <limits.h>

/* The allocations may run a finalizer that closes the parent: check it again. */
static struct comm *push_unborn(lua_State *L, struct comm *parent, const char *name) {
  struct comm *c = nccl_comm_push(L, parent->nccl, name);
  c->state = NCCL_UNBORN;
  c->device = parent->device;
  if (parent->nccl->group_depth) {
    nccl_join_group(L, 1, parent);
    nccl_join_group(L, -1, c); /* the group's end writes to its slot */
  }
  nccl_checkcomm(L, 1);
  return c;
}

static struct comm *check_parent(lua_State *L, const char *what) {
  struct comm *c = nccl_checkcomm(L, 1);
  nccl_check_local(L, c, what);
  cuda_check_may_wait(L, c->cuda, what);
  const CUresult rc = cuda_use(c->cuda, c->device);
  if (rc) cuda_raise(L, c->cuda, what, rc);
  return c;
}

static int no_color(lua_State *L) {
  luaL_pushfail(L);
  lua_pushliteral(L, "split: this rank has no color, so no communicator");
  lua_pushliteral(L, "NCCL_SPLIT_NOCOLOR");
  return 3;
}

/* The child is on top of the stack. */
static int split_off(lua_State *L, struct comm *parent, struct comm *child,
                     const char *what, ncclResult_t rc) {
  /* While a parent that does not block makes it, the child is not there yet. */
  if (!child->is_member) rc = nccl_settle(parent, rc);
  return nccl_born(L, child, what, rc);
}

int nccl_comm_split(lua_State *L) {
  struct comm *c = check_parent(L, "split");
  const bool has_color = !lua_isnoneornil(L, 2);
  const int color = has_color ? (int)bind_checkrange(L, 2, 0, INT_MAX) : NCCL_SPLIT_NOCOLOR;
  const int key = (int)bind_checkrange(L, 3, INT_MIN, INT_MAX);
  const struct nccl_options o = nccl_split_options(L, 4);
  if (!c->api->comm_split) return nccl_unsupported(L, c->nccl, "split");
  struct comm *child = push_unborn(L, c, o.name);
  ncclConfig_t config = nccl_config(&o, child);
  child->clique = nccl_clique(c->clique, &color, sizeof color);
  recorder_wait("nccl.split");
  /* Without options the child inherits its parent's. */
  const ncclResult_t rc = c->api->comm_split(
    c->handle, color, key, &child->slot, lua_isnoneornil(L, 4) ? NULL : &config);
  recorder_wait(NULL);
  const int results = split_off(L, c, child, "split", rc);
  return has_color || results != 1 ? results : no_color(L);
}

/* The ranks of the list at `arg`, as an array in a userdata on top of the stack. */
static int *check_ranks(lua_State *L, int arg, const struct comm *c, int *count) {
  luaL_checktype(L, arg, LUA_TTABLE);
  const lua_Unsigned length = lua_rawlen(L, arg);
  if (length < 1 || length >= (lua_Unsigned)c->count) {
    luaL_argerror(
      L, arg, lua_pushfstring(L, "expected 1 to %d ranks to leave out", c->count - 1));
  }
  int *ranks = lua_newuserdatauv(L, sizeof(int) * (size_t)length, 0);
  for (int i = 0; i < (int)length; i++) {
    int is_integer = 0;
    lua_rawgeti(L, arg, i + 1);
    const lua_Integer rank = lua_tointegerx(L, -1, &is_integer);
    lua_pop(L, 1);
    if (!is_integer || rank < 0 || rank >= c->count || rank == c->rank) {
      luaL_argerror(L, arg, "expected ranks other than the caller's own");
    }
    ranks[i] = (int)rank;
    for (int j = 0; j < i; j++) {
      luaL_argcheck(L, ranks[j] != ranks[i], arg, "a rank stands in the list twice");
    }
  }
  *count = (int)length;
  return ranks;
}

int nccl_comm_shrink(lua_State *L) {
  struct comm *c = check_parent(L, "shrink");
  int count = 0;
  lua_settop(L, 3);
  int *ranks = check_ranks(L, 2, c, &count);
  const struct nccl_options o = nccl_shrink_options(L, 3);
  if (!c->api->comm_shrink) return nccl_unsupported(L, c->nccl, "shrink");
  struct comm *child = push_unborn(L, c, o.name);
  ncclConfig_t config = nccl_config(&o, child);
  child->clique = nccl_clique(c->clique, ranks, sizeof *ranks * (size_t)count);
  recorder_wait("nccl.shrink");
  const ncclResult_t rc =
    c->api->comm_shrink(c->handle,
                        ranks,
                        count,
                        &child->slot,
                        lua_isnil(L, 3) ? NULL : &config,
                        o.abort ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT);
  recorder_wait(NULL);
  return split_off(L, c, child, "shrink", rc);
}
