#include "bindings/world.h"

#include "bindings/bind.h"
#include "bindings/frame.h"
#include "bindings/open.h"

#include "host/backend.h"
#include "host/forkable.h"
#include "host/recorder.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORLD "world.world"
#define HELD "a running world of ranks (wait for its end)"

struct handle {
  struct launch l;
  bool is_open;
};

static struct handle *check_handle(lua_State *L) {
  struct handle *h = luaL_checkudata(L, 1, WORLD);
  bind_checkopen(L, h->is_open, "world");
  return h;
}

/* A rank has a copy of the handle, but neither the ranks nor the hold. */
static int handle_close(lua_State *L) {
  struct handle *h = luaL_checkudata(L, 1, WORLD);
  if (!h->is_open) return 0;
  h->is_open = false;
  if (h->l.owner == getpid()) forkable_release(HELD);
  launch_close(&h->l);
  return 0;
}

/* Event names in the order of enum frame_kind. */
static const char *const frame_names[] = {"row", "check", "error", "finished"};

static int push_frame(lua_State *L, const struct launch_event *event) {
  enum frame_kind kind;
  lua_pushnil(L); /* the name's place */
  int name = lua_gettop(L);
  lua_pushinteger(L, event->rank);
  int count = frame_push(L, event->data, event->bytes, &kind);
  if (count < 0) return luaL_error(L, "world: rank %d sent a damaged row", event->rank);
  lua_pushstring(L, frame_names[kind]);
  lua_replace(L, name);
  return count + 2;
}

static int push_output(lua_State *L, const struct launch_event *event) {
  lua_pushliteral(L, "output");
  lua_pushinteger(L, event->rank);
  lua_pushlstring(L, event->data, event->bytes);
  lua_pushstring(L, event->stream == LAUNCH_STDOUT ? "stdout" : "stderr");
  return 4;
}

static void set_integer(lua_State *L, const char *key, int64_t value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, key);
}

static int push_exit(lua_State *L, int rank, const struct launch_end *end) {
  lua_pushliteral(L, "exit");
  lua_pushinteger(L, rank);
  lua_createtable(L, 0, 6);
  if (end->is_lost) {
    lua_pushboolean(L, true);
    lua_setfield(L, -2, "lost");
  } else if (WIFEXITED(end->status)) {
    set_integer(L, "exit_code", WEXITSTATUS(end->status));
    lua_pushboolean(L, WEXITSTATUS(end->status) == WORLD_EXIT_ABORTED);
    lua_setfield(L, -2, "aborted");
  } else {
    const char *name = sigabbrev_np(WTERMSIG(end->status));
    lua_pushfstring(L, "SIG%s", name ? name : "?");
    lua_setfield(L, -2, "signal");
  }
  set_integer(L, "user_us", end->user_us);
  set_integer(L, "sys_us", end->sys_us);
  set_integer(L, "max_rss_bytes", end->max_rss_bytes);
  return 3;
}

static int nothing(lua_State *L) {
  (void)L;
  return 0;
}

static int handle_step(lua_State *L) {
  struct handle *h = check_handle(L);
  int timeout_ms = (int)bind_checkrange(L, 2, 0, 1000000);
  struct launch_event event;
  struct err e;
  lua_pushcfunction(L, nothing); /* Ctrl-C sets a hook that raises at the next call */
  lua_call(L, 0, 0);
  if (launch_step(&h->l, timeout_ms, &event, &e)) return luaL_error(L, "%s", e.text);
  switch (event.kind) {
    case LAUNCH_FRAME: return push_frame(L, &event);
    case LAUNCH_OUTPUT: return push_output(L, &event);
    case LAUNCH_EXIT: return push_exit(L, event.rank, &h->l.ranks[event.rank].end);
    case LAUNCH_DONE: lua_pushliteral(L, "done"); return 1;
    case LAUNCH_NOTHING: break;
  }
  lua_pushnil(L);
  return 1;
}

static int handle_abort(lua_State *L) {
  world_end(check_handle(L)->l.world);
  return 0;
}

/* The rank, if any, that a signal has ended: asked before the order to end is given, so
   that the death is known to be its own. */
static int handle_casualty(lua_State *L) {
  int rank = launch_casualty(&check_handle(L)->l);
  if (rank < 0) return 0;
  lua_pushinteger(L, rank);
  return 1;
}

/* What the processes of a launcher's other ranks are told at the end. */
static int handle_settle(lua_State *L) {
  check_handle(L)->l.is_good = lua_toboolean(L, 2);
  return 0;
}

static int handle_kill(lua_State *L) {
  launch_kill(&check_handle(L)->l);
  return 0;
}

/* A number that changes while the ranks get on, and whether one of them waits. */
static int handle_progress(lua_State *L) {
  const struct world *w = check_handle(L)->l.world;
  lua_pushinteger(L, (lua_Integer)world_progress(w));
  lua_pushboolean(L, world_is_waiting(w));
  return 2;
}

static int handle_status(lua_State *L) {
  const struct world *w = check_handle(L)->l.world;
  lua_createtable(L, w->count, 0);
  for (int i = 0; i < w->count; i++) {
    const struct world_rank *r = &w->ranks[i];
    world_push_recorder(L, &r->recorder);
    set_integer(L, "index", i);
    set_integer(L, "barriers", (int64_t)r->barriers);
    lua_pushboolean(L, r->is_finished != 0);
    lua_setfield(L, -2, "finished");
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int handle_pids(lua_State *L) {
  const struct handle *h = check_handle(L);
  lua_createtable(L, h->l.count, 0);
  for (int i = 0; i < h->l.count; i++) {
    lua_pushinteger(L, h->l.ranks[i].pid);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int handle_count(lua_State *L) {
  lua_pushinteger(L, check_handle(L)->l.count);
  return 1;
}

static int handle_tostring(lua_State *L) {
  const struct handle *h = luaL_checkudata(L, 1, WORLD);
  if (h->is_open) {
    lua_pushfstring(L, WORLD " (%d ranks)", h->l.count);
  } else {
    lua_pushliteral(L, WORLD " (closed)");
  }
  return 1;
}

static int module_fork(lua_State *L) {
  struct launch_seat seat;
  struct world_request r;
  struct err e;
  if (world_read_request(L, &r, &e)) return bind_fail(L, &e);
  struct handle *h = lua_newuserdatauv(L, sizeof *h, 0);
  *h = (struct handle){.is_open = false};
  luaL_setmetatable(L, WORLD);
  int rc = r.launcher.name ? rendezvous_lead(&h->l, &r.spec, &r.launcher, r.turn, &seat, &e)
                           : launch_fork(&h->l, &r.spec, &seat, &e);
  if (rc) return bind_fail(L, &e);
  if (seat.index >= 0) {
    lua_pushvalue(L, 2);
    world_rank_run(L, &seat);
  }
  h->is_open = true;
  forkable_hold(HELD);
  return 1;
}

static int module_current(lua_State *L) {
  int count, index = world_rank_index(&count);
  if (index < 0) return 0;
  lua_pushinteger(L, index);
  lua_pushinteger(L, count);
  return 2;
}

static int module_devices(lua_State *L) {
  lua_pushinteger(L, backend_device_guess());
  lua_pushstring(L, backend_name());
  return 2;
}

static int module_now_us(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)(process_now_ns() / 1000));
  return 1;
}

static int module_recorder(lua_State *L) {
  world_push_recorder(L, recorder_own());
  return 1;
}

static const luaL_Reg handle_meta[] = {
  {"__gc", handle_close},
  {"__close", handle_close},
  {"__tostring", handle_tostring},
  {NULL, NULL},
};

static const luaL_Reg handle_methods[] = {
  {"abort", handle_abort},
  {"casualty", handle_casualty},
  {"close", handle_close},
  {"kill", handle_kill},
  {"pids", handle_pids},
  {"progress", handle_progress},
  {"settle", handle_settle},
  {"status", handle_status},
  {"step", handle_step},
  {NULL, NULL},
};

static const luaL_Reg handle_fields[] = {{"count", handle_count}, {NULL, NULL}};

static const luaL_Reg functions[] = {
  {"current", module_current},
  {"devices", module_devices},
  {"fork", module_fork},
  {"join", world_join_launcher},
  {"launcher", world_find_launcher},
  {"now_us", module_now_us},
  {"recorder", module_recorder},
  {NULL, NULL},
};

int luaopen_nclua_world(lua_State *L) {
  bind_type_fields(L, WORLD, handle_meta, handle_methods, handle_fields);
  world_rank_type(L);
  world_member_type(L);
  luaL_newlib(L, functions);
  return 1;
}
