/* comm:burst: calls that were checked once, made again and again by a loop in C. */

#include "bindings/bind.h"
#include "bindings/nccl.h"
#include "host/recorder.h"

#include <string.h>
#include <time.h>

#define BURST "nccl.burst"

/* User values: the communicator; the buffers and operators of the calls, as a list and as
   a set; the memory of the calls. */
enum { COMM_VALUE = 1, KEPT_VALUE, CALLS_VALUE, VALUES = CALLS_VALUE };
enum { FIRST_ROOM = 16 };

struct burst {
  struct comm *comm; /* NULL: closed */
  struct nccl_call *calls;
  size_t count, room;
  size_t group; /* calls of one NCCL group; 0: none */
  size_t next;  /* call */
  int self;     /* stack index of the userdata while calls are written down */
};

struct times {
  struct timespec start, enqueued, done;
};

/* An open burst of an open communicator. */
static struct burst *check_burst(lua_State *L, int arg) {
  struct burst *b = luaL_checkudata(L, arg, BURST);
  bind_checkopen(L, b->comm != NULL, "burst");
  lua_getiuservalue(L, arg, COMM_VALUE);
  nccl_checkcomm(L, -1);
  lua_pop(L, 1);
  return b;
}

static void make_room(lua_State *L, struct burst *b) {
  if (b->count < b->room) return;
  const size_t room = b->room ? 2 * b->room : FIRST_ROOM;
  struct nccl_call *calls = lua_newuserdatauv(L, room * sizeof *calls, 0);
  if (b->count) memcpy(calls, b->calls, b->count * sizeof *calls);
  lua_setiuservalue(L, b->self, CALLS_VALUE);
  b->calls = calls;
  b->room = room;
}

/* A slice counts as its buffer: that is what must live. */
static void keep(lua_State *L, int kept, int arg) {
  if (!lua_isuserdata(L, arg)) return;
  const struct buffer *buffer = luaL_testudata(L, arg, "cuda.buffer");
  if (buffer && buffer->owner) {
    lua_getiuservalue(L, arg, 1);
  } else {
    lua_pushvalue(L, arg);
  }
  lua_pushvalue(L, -1);
  if (lua_rawget(L, kept) == LUA_TNIL) {
    lua_pushvalue(L, -2);
    lua_rawseti(L, kept, (lua_Integer)lua_rawlen(L, kept) + 1);
    lua_pushvalue(L, -2);
    lua_pushboolean(L, true);
    lua_rawset(L, kept);
  }
  lua_pop(L, 2);
}

int nccl_burst_add(lua_State *L, struct comm *c, const struct nccl_call *call) {
  enum { LAST_HANDLE = 4 }; /* send, recv, op; a stream there is not a thing to keep */
  struct burst *b = c->nccl->burst;
  if (b->comm != c) return luaL_error(L, "burst: a call on another communicator");
  const int top = lua_gettop(L);
  luaL_checkstack(L, 8, "burst");
  lua_rawgetp(L, LUA_REGISTRYINDEX, b);
  b->self = lua_gettop(L);
  lua_getiuservalue(L, b->self, KEPT_VALUE);
  for (int i = 2; i <= LAST_HANDLE && i <= top; i++) keep(L, b->self + 1, i);
  make_room(L, b);
  b->calls[b->count++] = *call;
  lua_settop(L, 1);
  return 1;
}

/* Calls the function at index 2 with the burst, on top of the stack, taking notes. */
static int take_notes(lua_State *L, struct nccl *n, struct burst *b) {
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, b); /* where nccl_burst_add finds the userdata */
  n->burst = b;
  lua_pushvalue(L, 2);
  const int status = lua_pcall(L, 0, 0, 0);
  n->burst = NULL;
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, b);
  return status;
}

static void check_may_begin(lua_State *L, const struct comm *c) {
  if (c->nccl->burst) luaL_error(L, "burst: not inside another burst");
  if (c->nccl->group_depth) luaL_error(L, "burst: not inside nccl.group");
}

int nccl_burst(lua_State *L) {
  struct {
    size_t group;
  } options = {0};
  static const struct bind_field fields[] = {{"group", BIND_SIZE, 0}, {NULL}};
  struct comm *c = nccl_checkcomm(L, 1);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  bind_fields(L, 3, fields, &options);
  check_may_begin(L, c);
  struct burst *b = lua_newuserdatauv(L, sizeof *b, VALUES);
  *b = (struct burst){.comm = c, .group = options.group};
  luaL_setmetatable(L, BURST);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, COMM_VALUE);
  lua_newtable(L);
  lua_setiuservalue(L, -2, KEPT_VALUE);
  if (take_notes(L, c->nccl, b)) return lua_error(L);
  if (!b->count) return luaL_error(L, "burst: the function made no call");
  if (b->group && b->count % b->group) {
    return luaL_error(L,
                      "burst: expected a multiple of %d calls, one group, got %d",
                      (int)b->group,
                      (int)b->count);
  }
  return 1;
}

/* A finalizer may have closed anything: checked last. */
static void check_kept(lua_State *L, const struct burst *b) {
  lua_getiuservalue(L, 1, KEPT_VALUE);
  const lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
  for (lua_Integer i = 1; i <= count; i++) {
    lua_rawgeti(L, -1, i);
    if (b->comm->cuda->is_capturing) cuda_capture_note(L, b->comm->cuda, -1);
    lua_pop(L, 1);
  }
  for (lua_Integer i = 1; i <= count; i++) {
    lua_rawgeti(L, -1, i);
    const struct buffer *buffer = luaL_testudata(L, -1, "cuda.buffer");
    if (buffer && !buffer->ptr) luaL_error(L, "burst: a buffer of its calls is closed");
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

static void note_comm(lua_State *L, const struct burst *b) {
  if (!b->comm->cuda->is_capturing) return;
  lua_getiuservalue(L, 1, COMM_VALUE);
  cuda_capture_note(L, b->comm->cuda, -1);
  lua_pop(L, 1);
}

/* The arguments (burst, calls, stream): everything that may fail before the first call. */
static size_t prepare(lua_State *L, struct burst **burst, CUstream *stream,
                      const char *what) {
  struct burst *b = check_burst(L, 1);
  const size_t calls = bind_checksize(L, 2, 1, SIZE_MAX / 2);
  if (b->comm->nccl->group_depth) luaL_error(L, "%s: not inside nccl.group", what);
  if (b->comm->nccl->burst) luaL_error(L, "%s: not inside comm:burst", what);
  if (b->group && calls % b->group) {
    luaL_argerror(L,
                  2,
                  lua_pushfstring(L,
                                  "expected a multiple of %d, the calls of a group, got %I",
                                  (int)b->group,
                                  (lua_Integer)calls));
  }
  note_comm(L, b);
  check_kept(L, b);
  *burst = check_burst(L, 1);
  *stream = cuda_optstream(L, 3, b->comm->device);
  const CUresult rc = cuda_use(b->comm->cuda, b->comm->device);
  if (rc) cuda_raise(L, b->comm->cuda, what, rc);
  return calls;
}

static ncclResult_t issue_group(struct burst *b, size_t calls, CUstream stream) {
  const struct comm *c = b->comm;
  ncclResult_t rc = c->api->group_start();
  if (rc) return rc;
  for (size_t i = 0; i < calls && !rc; i++) {
    rc = nccl_call_issue(&b->calls[b->next + i], c, stream);
    if (rc == ncclInProgress) rc = ncclSuccess; /* settled at the group's end */
  }
  b->next = (b->next + calls) % b->count;
  if (comms_is_aborted()) return ncclRemoteError; /* what is pending must stay so */
  const ncclResult_t ended = c->api->group_end();
  return rc ? rc : ended;
}

static ncclResult_t issue_one(struct burst *b, CUstream stream) {
  const ncclResult_t rc = nccl_call_issue(&b->calls[b->next], b->comm, stream);
  if (++b->next == b->count) b->next = 0;
  return rc;
}

static ncclResult_t issue(struct burst *b, size_t calls, CUstream stream) {
  ncclResult_t rc = ncclSuccess;
  const size_t step = b->group ? b->group : 1;
  for (size_t i = 0; i < calls && !rc; i += step) {
    rc = b->group ? issue_group(b, step, stream) : issue_one(b, stream);
    if (rc == ncclInProgress) rc = nccl_settle(b->comm, rc);
  }
  return rc;
}

/* The recorder costs as much as the loop: it is told once, of the last call. */
static void record(const struct burst *b, size_t calls, CUstream stream) {
  const struct nccl_call *call = &b->calls[(b->next + calls - 1) % b->count];
  recorder_enqueue(&(struct recorder_op){
    .function = nccl_call_name(call),
    .comm = b->comm->handle,
    .stream = stream,
    .op_count = b->comm->op_count + calls - 1,
    .count = call->count,
    .type = call->type,
    .peer = call->peer,
  });
}

static void finish(lua_State *L, struct burst *b, size_t calls, ncclResult_t rc,
                   const char *what) {
  if (b->group) cuda_forget_current(b->comm->cuda);
  cuda_enqueued(b->comm->cuda, b->comm->device);
  if (rc) nccl_raise_of(L, b->comm, what, rc);
  b->comm->op_count += calls;
}

static int burst_enqueue(lua_State *L) {
  struct burst *b;
  CUstream stream;
  const size_t calls = prepare(L, &b, &stream, "burst:enqueue");
  record(b, calls, stream);
  finish(L, b, calls, issue(b, calls, stream), "burst:enqueue");
  lua_settop(L, 1);
  return 1;
}

static double us_between(const struct timespec *a, const struct timespec *b) {
  return (double)(b->tv_sec - a->tv_sec) * 1e6 + (double)(b->tv_nsec - a->tv_nsec) / 1e3;
}

static int burst_time(lua_State *L) {
  struct burst *b;
  CUstream stream;
  struct times t;
  const size_t calls = prepare(L, &b, &stream, "burst:time");
  struct cuda *cuda = b->comm->cuda;
  cuda_check_may_wait(L, cuda, "burst:time");
  record(b, calls, stream);
  clock_gettime(CLOCK_MONOTONIC, &t.start);
  const ncclResult_t rc = issue(b, calls, stream);
  clock_gettime(CLOCK_MONOTONIC, &t.enqueued);
  const CUresult waited = rc ? CUDA_SUCCESS : cuda_wait_stream(cuda, stream, "burst:time");
  clock_gettime(CLOCK_MONOTONIC, &t.done);
  finish(L, b, calls, rc, "burst:time");
  if (waited) return cuda_raise(L, cuda, "burst:time", waited);
  lua_pushnumber(L, us_between(&t.start, &t.enqueued));
  lua_pushnumber(L, us_between(&t.start, &t.done));
  return 2;
}

static int burst_rewind(lua_State *L) {
  struct burst *b = check_burst(L, 1);
  b->next = 0;
  lua_settop(L, 1);
  return 1;
}

static int burst_close(lua_State *L) {
  struct burst *b = luaL_checkudata(L, 1, BURST);
  if (!b->comm) return 0;
  if (b->comm->nccl->burst == b) return luaL_error(L, "burst: it is still being made");
  b->comm = NULL;
  for (int i = 1; i <= VALUES; i++) {
    lua_pushnil(L);
    lua_setiuservalue(L, 1, i);
  }
  return 0;
}

static int burst_tostring(lua_State *L) {
  const struct burst *b = luaL_checkudata(L, 1, BURST);
  if (b->comm) {
    lua_pushfstring(L, "nccl.burst of %d calls", (int)b->count);
  } else {
    lua_pushliteral(L, "nccl.burst (closed)");
  }
  return 1;
}

static int burst_count(lua_State *L) {
  const struct burst *b = luaL_checkudata(L, 1, BURST);
  lua_pushinteger(L, (lua_Integer)b->count);
  return 1;
}

static int burst_group(lua_State *L) {
  const struct burst *b = luaL_checkudata(L, 1, BURST);
  lua_pushinteger(L, (lua_Integer)b->group);
  return 1;
}

static const luaL_Reg burst_meta[] = {
  {"__gc", burst_close},
  {"__close", burst_close},
  {"__tostring", burst_tostring},
  {NULL, NULL},
};

static const luaL_Reg burst_methods[] = {
  {"close", burst_close},
  {"enqueue", burst_enqueue},
  {"rewind", burst_rewind},
  {"time", burst_time},
  {NULL, NULL},
};

static const luaL_Reg burst_fields[] = {
  {"count", burst_count},
  {"group", burst_group},
  {NULL, NULL},
};

void nccl_burst_type(lua_State *L) {
  bind_type_fields(L, BURST, burst_meta, burst_methods, burst_fields);
}
