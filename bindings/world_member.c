#include "bindings/world.h"

#include "bindings/bind.h"

#include "host/forkable.h"

#include <unistd.h>

#define MEMBER "world.member"
#define HELD "a running world of ranks (wait for its end)"

struct member {
  struct rendezvous r;
  bool is_open;
};

static struct member *check_member(lua_State *L) {
  struct member *m = luaL_checkudata(L, 1, MEMBER);
  bind_checkopen(L, m->is_open, "world");
  return m;
}

static int member_close(lua_State *L) {
  struct member *m = luaL_checkudata(L, 1, MEMBER);
  if (!m->is_open) return 0;
  m->is_open = false;
  if (m->r.l.owner == getpid()) forkable_release(HELD);
  rendezvous_close(&m->r);
  return 0;
}

static int nothing(lua_State *L) {
  (void)L;
  return 0;
}

/* nil, or how the world ended. */
static int member_step(lua_State *L) {
  struct member *m = check_member(L);
  int timeout_ms = (int)bind_checkrange(L, 2, 0, 1000000);
  struct err e;
  lua_pushcfunction(L, nothing); /* Ctrl-C sets a hook that raises at the next call */
  lua_call(L, 0, 0);
  if (rendezvous_attend(&m->r, timeout_ms, &e)) return luaL_error(L, "%s", e.text);
  if (!m->r.is_over) {
    lua_pushnil(L);
  } else {
    lua_pushstring(L, m->r.is_good ? "good" : "failed");
  }
  return 1;
}

static int member_tostring(lua_State *L) {
  const struct member *m = luaL_checkudata(L, 1, MEMBER);
  lua_pushstring(L, m->is_open ? MEMBER : MEMBER " (closed)");
  return 1;
}

int world_join_launcher(lua_State *L) {
  struct launch_seat seat;
  struct world_request r;
  struct err e;
  if (world_read_request(L, &r, &e)) return bind_fail(L, &e);
  luaL_argcheck(L, r.launcher.name, 1, "option 'launcher' must be true");
  struct member *m = lua_newuserdatauv(L, sizeof *m, 0);
  *m = (struct member){.is_open = false};
  luaL_setmetatable(L, MEMBER);
  if (rendezvous_follow(&m->r, &r.spec, &r.launcher, r.turn, &seat, &e)) {
    return bind_fail(L, &e);
  }
  if (seat.index >= 0) {
    lua_pushvalue(L, 2);
    world_rank_run(L, &seat);
  }
  m->is_open = true;
  forkable_hold(HELD);
  return 1;
}

int world_find_launcher(lua_State *L) {
  struct launcher l;
  struct err e;
  if (launcher_find(&l, &e)) return bind_fail(L, &e);
  if (!l.name) return 0;
  lua_pushstring(L, l.name);
  lua_pushinteger(L, l.index);
  lua_pushinteger(L, l.count);
  return 3;
}

static const luaL_Reg member_meta[] = {
  {"__gc", member_close},
  {"__close", member_close},
  {"__tostring", member_tostring},
  {NULL, NULL},
};

static const luaL_Reg member_methods[] = {
  {"close", member_close},
  {"step", member_step},
  {NULL, NULL},
};

void world_member_type(lua_State *L) {
  bind_type(L, MEMBER, member_meta, member_methods);
}
