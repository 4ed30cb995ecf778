/* cuda.event: a mark in a stream. */
#include "bindings/cuda_parts.h"

#include "bindings/bind.h"

struct event *cuda_checkevent(lua_State *L, int arg) {
  struct event *e = luaL_checkudata(L, arg, CUDA_EVENT);
  bind_checkopen(L, e->handle != NULL, "event");
  return e;
}

int cuda_event_new(lua_State *L) {
  struct err error;
  struct {
    bool timing;
  } options = {true};
  static const struct bind_field fields[] = {{"timing", BIND_BOOL, 0}, {NULL}};
  bind_fields(L, 1, fields, &options);
  struct cuda *c = cuda_open(L, &error);
  if (!c) return bind_fail(L, &error);
  struct event *e = lua_newuserdatauv(L, sizeof *e, 0);
  *e = (struct event){.cuda = c, .device = c->chosen, .has_timing = options.timing};
  luaL_setmetatable(L, CUDA_EVENT);
  CUresult rc = cuda_use(c, e->device);
  const unsigned flags = e->has_timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  if (!rc) rc = c->api->event_create(&e->handle, flags);
  if (!rc) return 1;
  e->handle = NULL;
  return cuda_fail(L, c, "event", rc);
}

static int event_close(lua_State *L) {
  struct event *e = luaL_checkudata(L, 1, CUDA_EVENT);
  const CUevent handle = e->handle;
  e->handle = NULL;
  if (!handle) return 0;
  cuda_release(e->cuda,
               &(struct cuda_doomed){
                 .kind = CUDA_IS_EVENT,
                 .device = e->device,
                 .handle.event = handle,
               });
  return 0;
}

static int event_record(lua_State *L) {
  struct event *e = cuda_checkevent(L, 1);
  CUstream stream = cuda_optstream(L, 2, e->device);
  cuda_enter(L, e->cuda, e->device, "record");
  CUresult rc = e->cuda->api->event_record(e->handle, stream);
  if (rc) return cuda_raise(L, e->cuda, "record", rc);
  e->is_recorded = true;
  cuda_enqueued(e->cuda, e->device);
  lua_settop(L, 1);
  return 1;
}

static int event_query(lua_State *L) {
  struct event *e = cuda_checkevent(L, 1);
  cuda_check_may_wait(L, e->cuda, "query");
  cuda_enter(L, e->cuda, e->device, "query");
  CUresult rc = e->cuda->api->event_query(e->handle);
  if (rc && rc != CUDA_ERROR_NOT_READY) return cuda_raise(L, e->cuda, "query", rc);
  lua_pushboolean(L, rc == CUDA_SUCCESS);
  return 1;
}

static int event_sync(lua_State *L) {
  struct event *e = cuda_checkevent(L, 1);
  cuda_check_may_wait(L, e->cuda, "sync");
  cuda_enter(L, e->cuda, e->device, "sync");
  CUresult rc = cuda_wait_event(e->cuda, e->handle, "event:sync");
  if (rc) return cuda_raise(L, e->cuda, "sync", rc);
  cuda_check_collectives(L, "sync");
  lua_settop(L, 1);
  return 1;
}

static void check_timed(lua_State *L, int arg, const struct event *e) {
  luaL_argcheck(L, e->has_timing, arg, "the event was made without timing");
  luaL_argcheck(L, e->is_recorded, arg, "the event was never recorded");
}

static int event_elapsed_us(lua_State *L) {
  const struct event *start = cuda_checkevent(L, 1), *end = cuda_checkevent(L, 2);
  check_timed(L, 1, start);
  check_timed(L, 2, end);
  luaL_argcheck(L, start->device == end->device, 2, "the event is on another device");
  cuda_enter(L, start->cuda, start->device, "elapsed_us");
  float milliseconds = 0;
  CUresult rc =
    start->cuda->api->event_elapsed_time(&milliseconds, start->handle, end->handle);
  if (rc == CUDA_ERROR_NOT_READY) {
    return luaL_error(L,
                      "elapsed_us: the events are not complete: sync the later one first");
  }
  if (rc) return cuda_raise(L, start->cuda, "elapsed_us", rc);
  lua_pushnumber(L, (lua_Number)milliseconds * 1000);
  return 1;
}

static int event_tostring(lua_State *L) {
  const struct event *e = luaL_checkudata(L, 1, CUDA_EVENT);
  if (e->handle) {
    lua_pushfstring(L, "cuda.event (%p, device %d)", (void *)e->handle, e->device);
  } else {
    lua_pushliteral(L, "cuda.event (closed)");
  }
  return 1;
}

static int event_device(lua_State *L) {
  const struct event *e = luaL_checkudata(L, 1, CUDA_EVENT);
  lua_pushinteger(L, e->device);
  return 1;
}

static int event_timing(lua_State *L) {
  const struct event *e = luaL_checkudata(L, 1, CUDA_EVENT);
  lua_pushboolean(L, e->has_timing);
  return 1;
}

static const luaL_Reg event_meta[] = {
  {"__gc", event_close},
  {"__close", event_close},
  {"__tostring", event_tostring},
  {NULL, NULL},
};

static const luaL_Reg event_methods[] = {
  {"close", event_close},
  {"record", event_record},
  {"query", event_query},
  {"sync", event_sync},
  {"elapsed_us", event_elapsed_us},
  {NULL, NULL},
};

static const luaL_Reg event_fields[] = {
  {"device", event_device},
  {"timing", event_timing},
  {NULL, NULL},
};

void cuda_event_type(lua_State *L) {
  bind_type_fields(L, CUDA_EVENT, event_meta, event_methods, event_fields);
}
