/* cuda.stream: a queue of work on a device. */
#include "bindings/cuda_parts.h"

#include "bindings/bind.h"
#include "host/recorder.h"

static const char *const priorities[] = {"normal", "high", NULL};
enum { PRIORITY_NORMAL, PRIORITY_HIGH };
enum { LONGEST_SPIN_US = 10 * 1000 * 1000 };

static const struct bind_tag stream_tag = {CUDA_STREAM, sizeof(struct stream)};

struct stream *cuda_checkstream(lua_State *L, int arg) {
  struct stream *s = bind_checktagged(L, arg, &stream_tag);
  bind_checkopen(L, s->handle != NULL, "stream");
  return s;
}

CUstream cuda_optstream(lua_State *L, int arg, int device) {
  if (arg == 0 || lua_isnoneornil(L, arg)) return NULL;
  const struct stream *s = cuda_checkstream(L, arg);
  if (s->device != device) {
    const char *text = lua_pushfstring(
      L, "the stream is on device %d, expected device %d", s->device, device);
    luaL_argerror(L, arg, text);
  }
  return s->handle;
}

/* The open streams of a state: asked whether a device is idle. */
static void link_stream(struct stream *s) {
  s->next = s->cuda->streams;
  if (s->next) s->next->previous = s;
  s->cuda->streams = s;
}

static void unlink_stream(struct stream *s) {
  if (s->next) s->next->previous = s->previous;
  if (s->previous) {
    s->previous->next = s->next;
  } else {
    s->cuda->streams = s->next;
  }
}

/* Non-blocking: ordered neither with other streams nor with the device's default one. */
static CUresult create(struct stream *s, int wanted) {
  const struct device_api *api = s->cuda->api;
  int least = 0, greatest = 0;
  CUresult rc = cuda_use(s->cuda, s->device);
  if (!rc) rc = api->ctx_get_stream_priority_range(&least, &greatest);
  if (rc) return rc;
  const int priority = wanted == PRIORITY_HIGH ? greatest : least;
  return api->stream_create_with_priority(&s->handle, CU_STREAM_NON_BLOCKING, priority);
}

int cuda_stream_new(lua_State *L) {
  struct err e;
  struct {
    int priority;
  } options = {PRIORITY_NORMAL};
  const struct bind_field fields[] = {
    {"priority", BIND_NAME, 0, .names = priorities},
    {NULL},
  };
  bind_fields(L, 1, fields, &options);
  struct cuda *c = cuda_open(L, &e);
  if (!c) return bind_fail(L, &e);
  struct stream *s = lua_newuserdatauv(L, sizeof *s, 0);
  *s = (struct stream){.tag = &stream_tag, .cuda = c, .device = c->chosen};
  luaL_setmetatable(L, CUDA_STREAM);
  CUresult rc = create(s, options.priority);
  if (rc) {
    s->handle = NULL;
    return cuda_fail(L, c, "stream", rc);
  }
  link_stream(s);
  c->epoch++;
  return 1;
}

static int stream_close(lua_State *L) {
  struct stream *s = luaL_checkudata(L, 1, CUDA_STREAM);
  const CUstream handle = s->handle;
  s->handle = NULL;
  if (!handle) return 0;
  s->cuda->epoch++;
  unlink_stream(s);
  cuda_release(s->cuda,
               &(struct cuda_doomed){
                 .kind = CUDA_IS_STREAM,
                 .device = s->device,
                 .handle.stream = handle,
               });
  return 0;
}

static int stream_sync(lua_State *L) {
  struct stream *s = cuda_checkstream(L, 1);
  cuda_check_may_wait(L, s->cuda, "sync");
  cuda_enter(L, s->cuda, s->device, "sync");
  CUresult rc = cuda_wait_stream(s->cuda, s->handle, "stream:sync");
  if (rc) return cuda_raise(L, s->cuda, "sync", rc);
  cuda_check_collectives(L, "sync");
  lua_settop(L, 1);
  return 1;
}

static int stream_query(lua_State *L) {
  struct stream *s = cuda_checkstream(L, 1);
  cuda_check_may_wait(L, s->cuda, "query");
  cuda_enter(L, s->cuda, s->device, "query");
  CUresult rc = s->cuda->api->stream_query(s->handle);
  if (rc && rc != CUDA_ERROR_NOT_READY) return cuda_raise(L, s->cuda, "query", rc);
  if (!rc) recorder_complete_stream(s->handle);
  lua_pushboolean(L, rc == CUDA_SUCCESS);
  return 1;
}

static int stream_wait(lua_State *L) {
  struct stream *s = cuda_checkstream(L, 1);
  struct event *e = cuda_checkevent(L, 2);
  cuda_enter(L, s->cuda, s->device, "wait");
  CUresult rc = s->cuda->api->stream_wait_event(s->handle, e->handle, 0);
  if (rc) return cuda_raise(L, s->cuda, "wait", rc);
  cuda_enqueued(s->cuda, s->device);
  lua_settop(L, 1);
  return 1;
}

static int stream_spin(lua_State *L) {
  const struct stream *s = cuda_checkstream(L, 1);
  const unsigned microseconds = (unsigned)bind_checkrange(L, 2, 0, LONGEST_SPIN_US);
  cuda_enter(L, s->cuda, s->device, "spin");
  const CUresult rc = s->cuda->api->spin(microseconds, s->handle);
  if (rc) return cuda_raise(L, s->cuda, "spin", rc);
  cuda_enqueued(s->cuda, s->device);
  lua_settop(L, 1);
  return 1;
}

static int stream_tostring(lua_State *L) {
  const struct stream *s = luaL_checkudata(L, 1, CUDA_STREAM);
  if (s->handle) {
    lua_pushfstring(L, "cuda.stream (%p, device %d)", (void *)s->handle, s->device);
  } else {
    lua_pushliteral(L, "cuda.stream (closed)");
  }
  return 1;
}

static int stream_device(lua_State *L) {
  const struct stream *s = luaL_checkudata(L, 1, CUDA_STREAM);
  lua_pushinteger(L, s->device);
  return 1;
}

static const luaL_Reg stream_meta[] = {
  {"__gc", stream_close},
  {"__close", stream_close},
  {"__tostring", stream_tostring},
  {NULL, NULL},
};

static const luaL_Reg stream_methods[] = {
  {"close", stream_close},
  {"sync", stream_sync},
  {"query", stream_query},
  {"spin", stream_spin},
  {"wait", stream_wait},
  {"capture", cuda_graph_capture},
  {NULL, NULL},
};

static const luaL_Reg stream_fields[] = {
  {"device", stream_device},
  {NULL, NULL},
};

void cuda_stream_type(lua_State *L) {
  bind_type_fields(L, CUDA_STREAM, stream_meta, stream_methods, stream_fields);
}
