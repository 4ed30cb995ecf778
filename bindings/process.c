#include "bindings/process.h"

#include "bindings/bind.h"
#include "bindings/open.h"
#include "host/interrupt.h"
#include "host/trace.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANDLE "process.handle"

enum { ON_LINE = 1, INPUT = 2, TRACE = 3, USER_VALUES = 3 };

struct handle {
  struct process p;
  size_t line[2];    /* where the line that is not handed over yet begins */
  size_t scanned[2]; /* up to where there is no newline after it */
};

static const char *const stream_names[] = {"stdout", "stderr"};

static struct handle *check_handle(lua_State *L) {
  struct handle *h = luaL_checkudata(L, 1, HANDLE);
  bind_checkopen(L, h->p.pid != 0, "process");
  return h;
}

static int handle_close(lua_State *L) {
  struct handle *h = luaL_checkudata(L, 1, HANDLE);
  process_close(&h->p);
  return 0;
}

static int nothing(lua_State *L) {
  (void)L;
  return 0;
}

/* Ctrl-C sets a hook that raises at the next call of a function: this is one. At a prompt
   the hook counts instructions instead. */
static void allow_interrupt(lua_State *L) {
  if (interrupt_is_watched() && interrupt_is_asked()) luaL_error(L, "interrupted");
  lua_pushcfunction(L, nothing);
  lua_call(L, 0, 0);
}

static void give_line(lua_State *L, int arg, struct handle *h, int i, size_t bytes) {
  luaL_checkstack(L, 4, NULL);
  lua_getiuservalue(L, arg, ON_LINE);
  lua_pushlstring(L, h->p.text[i].data + h->line[i], bytes);
  lua_pushstring(L, stream_names[i]);
  h->line[i] += bytes;
  if (h->line[i] < h->p.text[i].used) h->line[i]++; /* the newline itself */
  h->scanned[i] = h->line[i];
  lua_call(L, 2, 0);
  bind_checkopen(L, h->p.pid != 0, "process (its on_line closed it)");
}

/* Each turn reads the handle again: on_line may wait for, or close, the same process. */
static void give_lines(lua_State *L, int arg, struct handle *h, int i) {
  while (h->scanned[i] < h->p.text[i].used) {
    const struct process_text *t = &h->p.text[i];
    const char *from = t->data + h->scanned[i];
    const char *newline = memchr(from, '\n', t->used - h->scanned[i]);
    if (newline) {
      give_line(L, arg, h, i, (size_t)(newline - t->data) - h->line[i]);
    } else {
      h->scanned[i] = t->used;
    }
  }
  if (h->p.is_done && h->line[i] < h->p.text[i].used) {
    give_line(L, arg, h, i, h->p.text[i].used - h->line[i]); /* no newline at the end */
  }
}

static void step(lua_State *L, int arg, struct handle *h, uint64_t until_ns) {
  struct err e;
  if (process_step(&h->p, until_ns, &e)) luaL_error(L, "process: %s", e.text);
  allow_interrupt(L);
  bind_checkopen(L, h->p.pid != 0, "process");
  bool has_callback = lua_getiuservalue(L, arg, ON_LINE) == LUA_TFUNCTION;
  lua_pop(L, 1);
  if (!has_callback) return;
  give_lines(L, arg, h, 0);
  give_lines(L, arg, h, 1);
}

/* SIGKILL by number, "SIGKILL" by name: names are for people, and scripts compare them. */
static void push_signal(lua_State *L, int number) {
  const char *name = sigabbrev_np(number);
  if (name) {
    lua_pushfstring(L, "SIG%s", name);
  } else {
    lua_pushfstring(L, "SIG%d", number); /* a real-time signal */
  }
}

static void push_text(lua_State *L, const struct process_text *t) {
  lua_pushlstring(L, t->data ? t->data : "", t->used);
}

static void set_integer(lua_State *L, const char *key, int64_t value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, key);
}

/* The parts of its trace, put together: into the result on top of the stack. */
static void set_trace(lua_State *L, int arg) {
  struct err e;
  if (lua_getiuservalue(L, arg, TRACE) != LUA_TSTRING) {
    lua_pop(L, 1);
    return;
  }
  const char *path = lua_tostring(L, -1);
  if (trace_merge_parts(path, &e)) {
    lua_pushstring(L, e.text);
    lua_setfield(L, -3, "trace_error");
  }
  if (access(path, F_OK) == 0)
    lua_setfield(L, -2, "trace");
  else
    lua_pop(L, 1);
}

static int push_result(lua_State *L, int arg, const struct process *p) {
  bool exited = WIFEXITED(p->status);
  lua_createtable(L, 0, 10);
  lua_pushboolean(L, exited && WEXITSTATUS(p->status) == 0 && !p->timed_out);
  lua_setfield(L, -2, "ok");
  lua_pushboolean(L, p->timed_out);
  lua_setfield(L, -2, "timed_out");
  if (exited) {
    set_integer(L, "exit_code", WEXITSTATUS(p->status));
  } else {
    push_signal(L, WTERMSIG(p->status));
    lua_setfield(L, -2, "signal");
  }
  for (int i = 0; i < 2; i++) {
    push_text(L, &p->text[i]);
    lua_setfield(L, -2, stream_names[i]);
  }
  set_integer(L, "wall_us", p->wall_us);
  set_integer(L, "user_us", p->user_us);
  set_integer(L, "sys_us", p->sys_us);
  set_integer(L, "max_rss_bytes", p->max_rss_bytes);
  set_trace(L, arg);
  return 1;
}

static int handle_poll(lua_State *L) {
  struct handle *h = check_handle(L);
  step(L, 1, h, 0);
  return h->p.is_done ? push_result(L, 1, &h->p) : (lua_pushnil(L), 1);
}

static int handle_wait(lua_State *L) {
  struct handle *h = check_handle(L);
  double limit_s = luaL_optnumber(L, 2, -1);
  luaL_argcheck(L,
                lua_isnoneornil(L, 2) || (limit_s >= 0 && limit_s <= PROCESS_LONGEST_S),
                2,
                "expected 0 to 1e9 seconds");
  uint64_t until_ns =
    limit_s < 0 ? UINT64_MAX : process_now_ns() + (uint64_t)(limit_s * 1e9);
  do step(L, 1, h, until_ns);
  while (!h->p.is_done && process_now_ns() < until_ns);
  if (h->p.is_done) return push_result(L, 1, &h->p);
  struct err e;
  err_set(&e, "ETIMEDOUT", "process %d is still running", (int)h->p.pid);
  return bind_fail(L, &e);
}

static int check_signal(lua_State *L, int arg) {
  if (lua_type(L, arg) == LUA_TNUMBER) {
    return (int)bind_checkrange(L, arg, 1, NSIG - 1);
  }
  const char *name = luaL_optstring(L, arg, "TERM");
  if (strncmp(name, "SIG", 3) == 0) name += 3;
  for (int i = 1; i < NSIG; i++) {
    const char *known = sigabbrev_np(i);
    if (known && strcmp(known, name) == 0) return i;
  }
  return luaL_argerror(L, arg, lua_pushfstring(L, "no signal is named '%s'", name));
}

static int handle_kill(lua_State *L) {
  struct handle *h = check_handle(L);
  int number = check_signal(L, 2);
  process_kill(&h->p, number);
  lua_pushboolean(L, !h->p.is_done);
  return 1;
}

static int handle_tostring(lua_State *L) {
  struct handle *h = luaL_checkudata(L, 1, HANDLE);
  if (h->p.pid) {
    lua_pushfstring(
      L, HANDLE " (pid %d, %s)", (int)h->p.pid, h->p.is_done ? "ended" : "running");
  } else {
    lua_pushliteral(L, HANDLE " (closed)");
  }
  return 1;
}

static int handle_pid(lua_State *L) {
  lua_pushinteger(L, check_handle(L)->p.pid);
  return 1;
}

/* Pushes the handle, closed, then starts the child into it; -1 if that fails. */
static int spawn(lua_State *L, struct err *e) {
  struct process_request r;
  if (process_read_request(L, &r, e)) return -1;
  luaL_checkstack(L, 4, NULL);
  struct handle *h = lua_newuserdatauv(L, sizeof *h, USER_VALUES);
  *h = (struct handle){.p = {.pidfd = -1, .in = -1, .out = {-1, -1}}};
  luaL_setmetatable(L, HANDLE);
  if (r.on_line) {
    lua_pushvalue(L, r.on_line);
    lua_setiuservalue(L, -2, ON_LINE);
  }
  if (r.input) {
    lua_pushvalue(L, r.input); /* the child reads from this string */
    lua_setiuservalue(L, -2, INPUT);
  }
  if (r.trace) {
    lua_pushvalue(L, r.trace);
    lua_setiuservalue(L, -2, TRACE);
  }
  return process_spawn(&h->p, &r.spec, e);
}

static int module_spawn(lua_State *L) {
  struct err e;
  return spawn(L, &e) ? bind_fail(L, &e) : 1;
}

static int module_run(lua_State *L) {
  struct err e;
  if (spawn(L, &e)) return bind_fail(L, &e);
  int arg = lua_gettop(L);
  struct handle *h = lua_touserdata(L, arg);
  lua_toclose(L, arg); /* an error in on_line, or Ctrl-C, kills and reaps */
  while (!h->p.is_done) step(L, arg, h, UINT64_MAX);
  return push_result(L, arg, &h->p);
}

static const luaL_Reg handle_meta[] = {
  {"__gc", handle_close},
  {"__close", handle_close},
  {"__tostring", handle_tostring},
  {NULL, NULL},
};

static const luaL_Reg handle_methods[] = {
  {"close", handle_close},
  {"kill", handle_kill},
  {"poll", handle_poll},
  {"wait", handle_wait},
  {NULL, NULL},
};

static const luaL_Reg handle_fields[] = {{"pid", handle_pid}, {NULL, NULL}};

static const luaL_Reg functions[] = {
  {"run", module_run},
  {"spawn", module_spawn},
  {NULL, NULL},
};

int luaopen_nclua_process(lua_State *L) {
  bind_type_fields(L, HANDLE, handle_meta, handle_methods, handle_fields);
  luaL_newlib(L, functions);
  return 1;
}
