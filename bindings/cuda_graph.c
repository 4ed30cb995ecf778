/* cuda.graph: what a stream would have done, to be done again at one launch. A graph owns
   what took part in its capture: user value 1 is a set of those objects, and OWNERS in the
   registry leads from each of them back to its graphs, weakly. */
#include "bindings/cuda_parts.h"

#include "bindings/bind.h"
#include "host/recorder.h"

#define CAPTURE "cuda.capture"

/* Their addresses are registry keys. */
static const char NOTES = 'n', OWNERS = 'o';

struct graph {
  struct cuda *cuda;
  CUgraphExec exec; /* NULL: closed */
  int device;
  uint64_t launches;
};

/* Ends the capture however the function that is captured ends. */
struct capture {
  struct cuda *cuda; /* NULL: not begun, or all over */
  CUstream stream;
  int device;
  bool is_running; /* in the backend */
};

static struct graph *check_graph(lua_State *L, int arg) {
  struct graph *g = luaL_checkudata(L, arg, CUDA_GRAPH);
  bind_checkopen(L, g->exec != NULL, "graph");
  return g;
}

/* Never deferred: a communicator may be waiting for it to be gone. */
static void close_graph(struct graph *g) {
  const CUgraphExec exec = g->exec;
  g->exec = NULL;
  if (exec && !cuda_use(g->cuda, g->device)) g->cuda->api->graph_exec_destroy(exec);
}

static int graph_close(lua_State *L) {
  struct graph *g = luaL_checkudata(L, 1, CUDA_GRAPH);
  if (!g->exec) return 0;
  close_graph(g);
  lua_pushnil(L);
  lua_setiuservalue(L, 1, 1); /* what it captured may be collected now */
  return 0;
}

/* A slice is memory of its buffer, which is what must live. */
static void push_owner(lua_State *L, int arg) {
  const struct buffer *b = luaL_testudata(L, arg, CUDA_BUFFER);
  if (b && b->owner) {
    lua_getiuservalue(L, arg, 1);
  } else {
    lua_pushvalue(L, arg);
  }
}

void cuda_capture_note(lua_State *L, struct cuda *c, int arg) {
  if (!c->is_capturing) return;
  arg = lua_absindex(L, arg);
  luaL_checkstack(L, 4, NULL);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &NOTES);
  push_owner(L, arg);
  lua_pushboolean(L, true);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

static bool is_noted(lua_State *L, int arg) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &NOTES);
  lua_pushvalue(L, arg);
  const bool noted = lua_rawget(L, -2) != LUA_TNIL;
  lua_pop(L, 2);
  return noted;
}

/* Pushes the set of graphs that captured the object, or nil. */
static int push_graphs(lua_State *L, int owner) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &OWNERS);
  lua_pushvalue(L, owner);
  const int type = lua_rawget(L, -2);
  lua_remove(L, -2);
  return type;
}

void cuda_close_graphs(lua_State *L, struct cuda *c, int arg) {
  arg = lua_absindex(L, arg);
  luaL_checkstack(L, 6, NULL);
  if (c->is_capturing && is_noted(L, arg)) c->is_spoiled = true;
  if (push_graphs(L, arg) == LUA_TTABLE) {
    lua_pushnil(L);
    while (lua_next(L, -2)) {
      lua_pop(L, 1);
      struct graph *g = lua_touserdata(L, -1);
      close_graph(g);
    }
  }
  lua_pop(L, 1);
}

/* An empty table with weak keys. */
static void push_weak_set(lua_State *L) {
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "k");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
}

/* graphs[owner][graph] = true, with the owner at `owner`. */
static void add_graph(lua_State *L, int graph, int owner) {
  if (push_graphs(L, owner) != LUA_TTABLE) {
    lua_pop(L, 1);
    push_weak_set(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &OWNERS);
    lua_pushvalue(L, owner);
    lua_pushvalue(L, -3);
    lua_rawset(L, -3);
    lua_pop(L, 1);
  }
  lua_pushvalue(L, graph);
  lua_pushboolean(L, true);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

/* Ties the graph to all that is in the table of notes at `notes`. */
static void add_owners(lua_State *L, int graph, int notes) {
  lua_pushvalue(L, notes);
  lua_setiuservalue(L, graph, 1);
  lua_pushnil(L);
  while (lua_next(L, notes)) {
    lua_pop(L, 1);
    add_graph(L, graph, lua_gettop(L));
  }
}

static CUresult end_capture(struct capture *k, CUgraph *graph) {
  k->is_running = false;
  CUresult rc = cuda_use(k->cuda, k->device);
  return rc ? rc : k->cuda->api->stream_end_capture(k->stream, graph);
}

/* Also where a capture that succeeded ends: until then its owners may not be destroyed. */
static int capture_close(lua_State *L) {
  struct capture *k = luaL_checkudata(L, 1, CAPTURE);
  struct cuda *c = k->cuda;
  CUgraph graph = NULL;
  if (!c) return 0;
  if (k->is_running && !end_capture(k, &graph) && graph) c->api->graph_destroy(graph);
  k->cuda = NULL;
  c->is_capturing = false;
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &NOTES);
  cuda_unhold(c);
  return 0;
}

static struct capture *push_capture(lua_State *L) {
  struct capture *k = lua_newuserdatauv(L, sizeof *k, 0);
  *k = (struct capture){0};
  luaL_setmetatable(L, CAPTURE);
  lua_toclose(L, -1);
  return k;
}

static struct graph *push_graph(lua_State *L, const struct stream *s) {
  struct graph *g = lua_newuserdatauv(L, sizeof *g, 1);
  *g = (struct graph){.cuda = s->cuda, .device = s->device};
  luaL_setmetatable(L, CUDA_GRAPH);
  return g;
}

/* Relaxed: other modes forbid calls, such as allocating, that NCCL and a script may make.
 */
static CUresult begin_capture(struct capture *k, const struct stream *s) {
  struct cuda *c = s->cuda;
  if (!c->api->stream_begin_capture) return CUDA_ERROR_NOT_SUPPORTED;
  CUresult rc = cuda_use(c, s->device);
  if (!rc) rc = c->api->stream_begin_capture(s->handle, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (rc) return rc;
  *k = (struct capture){c, s->handle, s->device, .is_running = true};
  c->is_capturing = true;
  c->is_spoiled = false;
  cuda_hold(c);
  return CUDA_SUCCESS;
}

static CUresult instantiate(struct capture *k, struct graph *g) {
  CUgraph graph = NULL;
  CUresult rc = end_capture(k, &graph);
  if (rc) return rc;
  rc = g->cuda->api->graph_instantiate(&g->exec, graph, 0);
  if (rc) g->exec = NULL;
  g->cuda->api->graph_destroy(graph);
  return rc;
}

int cuda_graph_capture(lua_State *L) {
  enum { STREAM = 1, FUNCTION, GRAPH, NOTED, GUARD };
  struct cuda *c = cuda_checkstream(L, STREAM)->cuda;
  luaL_checktype(L, FUNCTION, LUA_TFUNCTION);
  if (c->is_capturing) return luaL_error(L, "capture: another capture is running");
  lua_settop(L, FUNCTION);
  struct graph *g = push_graph(L, cuda_checkstream(L, STREAM));
  lua_newtable(L);
  struct capture *k = push_capture(L);
  lua_pushvalue(L, NOTED);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &NOTES);
  CUresult rc = begin_capture(k, cuda_checkstream(L, STREAM));
  if (rc) return cuda_fail(L, c, "capture", rc);
  lua_pushvalue(L, FUNCTION);
  lua_pushvalue(L, STREAM);
  lua_call(L, 1, 0);
  rc = instantiate(k, g);
  if (rc) return cuda_fail(L, c, "capture", rc);
  add_owners(L, GRAPH, NOTED);
  if (c->is_spoiled) {
    close_graph(g);
    return luaL_error(L, "capture: something that was captured has been closed");
  }
  lua_pushvalue(L, GRAPH);
  return 1;
}

/* For the flight recorder a graph is a communicator: what it captured was counted then. */
static void record_launch(struct graph *g, CUstream stream) {
  recorder_enqueue(&(struct recorder_op){.function = "graph_launch",
                                         .comm = (ncclComm_t)g->exec,
                                         .stream = stream,
                                         .op_count = g->launches++,
                                         .count = 1,
                                         .peer = -1});
}

/* CUDA cannot capture a launch; the CPU backend could, but then no script would be safe. */
static int graph_launch(lua_State *L) {
  struct graph *g = check_graph(L, 1);
  CUstream stream = cuda_optstream(L, 2, g->device);
  if (g->cuda->is_capturing) return luaL_error(L, "launch: a graph cannot be captured");
  cuda_enter(L, g->cuda, g->device, "launch");
  record_launch(g, stream);
  CUresult rc = g->cuda->api->graph_launch(g->exec, stream);
  if (rc) return cuda_raise(L, g->cuda, "launch", rc);
  cuda_enqueued(g->cuda, g->device);
  lua_settop(L, 1);
  return 1;
}

static int graph_tostring(lua_State *L) {
  const struct graph *g = luaL_checkudata(L, 1, CUDA_GRAPH);
  if (g->exec) {
    lua_pushfstring(L, "cuda.graph (%p, device %d)", (void *)g->exec, g->device);
  } else {
    lua_pushliteral(L, "cuda.graph (closed)");
  }
  return 1;
}

static int graph_device(lua_State *L) {
  const struct graph *g = luaL_checkudata(L, 1, CUDA_GRAPH);
  lua_pushinteger(L, g->device);
  return 1;
}

static const luaL_Reg capture_meta[] = {
  {"__gc", capture_close},
  {"__close", capture_close},
  {NULL, NULL},
};

static const luaL_Reg capture_methods[] = {{NULL, NULL}};

static const luaL_Reg graph_meta[] = {
  {"__gc", graph_close},
  {"__close", graph_close},
  {"__tostring", graph_tostring},
  {NULL, NULL},
};

static const luaL_Reg graph_methods[] = {
  {"close", graph_close},
  {"launch", graph_launch},
  {NULL, NULL},
};

static const luaL_Reg graph_fields[] = {
  {"device", graph_device},
  {NULL, NULL},
};

void cuda_graph_type(lua_State *L) {
  bind_type(L, CAPTURE, capture_meta, capture_methods);
  bind_type_fields(L, CUDA_GRAPH, graph_meta, graph_methods, graph_fields);
  push_weak_set(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &OWNERS);
}
