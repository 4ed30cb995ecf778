#include "bindings/world.h"

#include "bindings/bind.h"
#include "bindings/frame.h"

#include "host/affinity.h"
#include "host/forkable.h"
#include "host/sandbox.h"
#include "host/trace.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANK "world.rank"

/* Rows go out in batches: a system call a row, and a parent woken by it, would disturb the
   measurement that they come from. */
enum { FLUSH_BYTES = 64 * 1024, FLUSH_NS = 200 * 1000 * 1000 };

struct rank {
  struct launch_seat seat;
  struct frame_buffer out;
  uint64_t flushed_ns;
};

/* The process is one rank for the rest of its life. */
static struct rank self = {.seat = {.index = -1}};

int world_rank_index(int *count) {
  if (self.seat.index >= 0) *count = self.seat.world->count;
  return self.seat.index;
}

static void flush(struct rank *r) {
  size_t sent = 0;
  while (sent < r->out.ready) {
    ssize_t put = write(r->seat.fd, r->out.data + sent, r->out.ready - sent);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) _exit(WORLD_EXIT_ABORTED); /* the parent is gone */
    sent += (size_t)put;
  }
  r->out.ready = 0;
  r->flushed_ns = process_now_ns();
}

static void flush_if_due(struct rank *r) {
  if (r->out.ready >= FLUSH_BYTES || process_now_ns() - r->flushed_ns > FLUSH_NS) flush(r);
}

/* The handle is a box without content: it exists in ranks only. */
static struct rank *check_rank(lua_State *L) {
  luaL_checkudata(L, 1, RANK);
  return &self;
}

static int rank_emit(lua_State *L) {
  struct rank *r = check_rank(L);
  luaL_checktype(L, 2, LUA_TSTRING);
  luaL_checktype(L, 3, LUA_TTABLE);
  frame_append(L, &r->out, FRAME_ROW, 2, 3, "emit");
  flush_if_due(r);
  return 0;
}

static int rank_check(lua_State *L) {
  struct rank *r = check_rank(L);
  luaL_checktype(L, 2, LUA_TSTRING);
  bool ok = lua_toboolean(L, 3);
  lua_settop(L, 4);
  lua_pushboolean(L, ok);
  lua_replace(L, 3);
  frame_append(L, &r->out, FRAME_CHECK, 2, 4, "check");
  flush_if_due(r);
  return 0;
}

static int rank_flush(lua_State *L) {
  flush(check_rank(L));
  return 0;
}

static int rank_barrier(lua_State *L) {
  struct rank *r = check_rank(L);
  world_barrier(r->seat.world, r->seat.index);
  return 0;
}

static int rank_exchange(lua_State *L) {
  struct rank *r = check_rank(L);
  char id[WORLD_ID_BYTES] = {0};
  if (r->seat.index == 0) {
    size_t length;
    const char *given = luaL_checklstring(L, 2, &length);
    luaL_argcheck(L, length == sizeof id, 2, "expected a unique id of 128 bytes");
    memcpy(id, given, sizeof id);
  }
  world_exchange(r->seat.world, r->seat.index, id);
  lua_pushlstring(L, id, sizeof id);
  return 1;
}

/* Before any device is touched no other thread reads the environment. */
static int rank_setenv(lua_State *L) {
  check_rank(L);
  const char *name = luaL_checkstring(L, 2);
  const char *value = luaL_optstring(L, 3, NULL);
  luaL_argcheck(L, *name && !strchr(name, '='), 2, "not the name of a variable");
  struct err e;
  if (forkable_check(&e)) return luaL_error(L, "setenv: too late: %s", e.text);
  if (sandbox_check_variable(name, value, &e)) return luaL_error(L, "%s", e.text);
  if (value) {
    setenv(name, value, 1);
  } else {
    unsetenv(name);
  }
  return 0;
}

/* A rank's host threads belong on the CPUs that its GPU's bus ends at. */
static int rank_pin_near_gpu(lua_State *L) {
  check_rank(L);
  int ordinal = (int)bind_checkrange(L, 2, 0, INT_MAX);
  cpu_set_t cpus;
  struct err e;
  if (affinity_of_gpu("", ordinal, &cpus, &e)) return bind_fail(L, &e);
  if (sched_setaffinity(0, sizeof cpus, &cpus)) {
    err_errno(&e, "cannot pin rank %d", self.seat.index);
    return bind_fail(L, &e);
  }
  lua_pushboolean(L, true);
  return 1;
}

static int rank_tostring(lua_State *L) {
  struct rank *r = check_rank(L);
  lua_pushfstring(L, RANK " (%d of %d)", r->seat.index, r->seat.world->count);
  return 1;
}

static int rank_index(lua_State *L) {
  lua_pushinteger(L, check_rank(L)->seat.index);
  return 1;
}

static int rank_count(lua_State *L) {
  lua_pushinteger(L, check_rank(L)->seat.world->count);
  return 1;
}

static int rank_close(lua_State *L) {
  check_rank(L); /* nothing to release: the process's end does it */
  return 0;
}

static const luaL_Reg rank_meta[] = {
  {"__gc", rank_close},
  {"__close", rank_close},
  {"__tostring", rank_tostring},
  {NULL, NULL},
};

static const luaL_Reg rank_methods[] = {
  {"barrier", rank_barrier},
  {"check", rank_check},
  {"emit", rank_emit},
  {"exchange", rank_exchange},
  {"flush", rank_flush},
  {"pin_near_gpu", rank_pin_near_gpu},
  {"setenv", rank_setenv},
  {NULL, NULL},
};

static const luaL_Reg rank_fields[] = {
  {"count", rank_count},
  {"index", rank_index},
  {NULL, NULL},
};

void world_rank_type(lua_State *L) {
  bind_type_fields(L, RANK, rank_meta, rank_methods, rank_fields);
}

/* Sends the message and traceback of what the coroutine `co` raised. */
static void send_error(lua_State *L, lua_State *co, int rc) {
  if (rc == LUA_YIELD) {
    lua_pushliteral(L, "a rank's function cannot yield");
  } else {
    luaL_tolstring(co, -1, NULL);
    lua_xmove(co, L, 1);
  }
  int message = lua_gettop(L);
  luaL_traceback(L, co, lua_tostring(L, message), 0);
  frame_append(L, &self.out, FRAME_ERROR, message, message + 1, "error");
}

static void end_trace(void) {
  struct err e;
  if (trace_stop(&e)) fprintf(stderr, "nclua: rank %d: %s\n", self.seat.index, e.text);
}

/* os.exit in a rank: closing the Lua state would close what the parent's frames have open,
   such as a run directory. */
static int rank_exit(lua_State *L) {
  int status = lua_isboolean(L, 1) ? (lua_toboolean(L, 1) ? EXIT_SUCCESS : EXIT_FAILURE)
                                   : (int)luaL_optinteger(L, 1, EXIT_SUCCESS);
  flush(&self);
  end_trace();
  fflush(NULL);
  _exit(status);
}

static void replace_exit(lua_State *L) {
  lua_getglobal(L, "os");
  if (lua_istable(L, -1)) {
    lua_pushcfunction(L, rank_exit);
    lua_setfield(L, -2, "exit");
  }
  lua_pop(L, 1);
}

/* The function runs in a coroutine of its own: a yield cannot resume the parent's script
   here, and the stack is still there when an error is reported. What the script has to
   close in the parent's frames is the parent's: it is not closed here, and the state is
   left open; collection ends what the rank made. */
static int run_protected(lua_State *L) {
  int results;
  replace_exit(L);
  lua_State *co = lua_newthread(L);
  lua_pushvalue(L, 1);
  lua_newuserdatauv(L, 0, 0);
  luaL_setmetatable(L, RANK);
  lua_xmove(L, co, 2);
  int rc = lua_resume(co, L, 1, &results);
  bool ok = rc == LUA_OK;
  if (!ok) send_error(L, co, rc);
  flush(&self);        /* the parent should know before finalisers may wait */
  lua_resetthread(co); /* closes what the error left to be closed */
  lua_settop(L, 0);
  lua_gc(L, LUA_GCCOLLECT);
  lua_gc(L, LUA_GCCOLLECT);
  lua_pushboolean(L, ok);
  return 1;
}

/* Only memory can have run out. */
static void send_failure(lua_State *L) {
  const char *message = lua_tostring(L, -1);
  fprintf(stderr, "nclua: rank %d: %s\n", self.seat.index, message ? message : "?");
}

_Noreturn void world_rank_run(lua_State *L, const struct launch_seat *seat) {
  self.seat = *seat;
  self.flushed_ns = process_now_ns();
  lua_pushcfunction(L, run_protected);
  lua_insert(L, -2);
  int rc = lua_pcall(L, 1, 1, 0);
  bool ok = rc == LUA_OK && lua_toboolean(L, -1);
  if (rc != LUA_OK) send_failure(L);
  end_trace();
  if (ok) {
    frame_append(L, &self.out, FRAME_FINISHED, 1, 0, "end");
    __atomic_store_n(&seat->world->ranks[seat->index].is_finished, 1, __ATOMIC_RELAXED);
  }
  flush(&self);
  fflush(NULL);
  _exit(ok ? EXIT_SUCCESS : EXIT_FAILURE);
}
