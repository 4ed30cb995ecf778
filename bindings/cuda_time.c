/* cuda.time: the device's own clock around what a function enqueues. The events come from a
   pool, so that a measurement creates none. */
#include "bindings/cuda_parts.h"

#include "bindings/bind.h"

#define TIMER "cuda.timer"

/* A pair that is out of the pool; it goes back when the call ends, however it ends. */
struct timer {
  struct cuda *cuda; /* NULL: it went back */
  struct cuda_timer pair;
};

static bool take_from_pool(struct timer *t, int device) {
  struct cuda *c = t->cuda;
  for (int i = c->timer_count - 1; i >= 0; i--) {
    if (c->timers[i].device != device) continue;
    t->pair = c->timers[i];
    c->timers[i] = c->timers[--c->timer_count];
    return true;
  }
  return false;
}

static CUresult take(struct timer *t, int device) {
  if (take_from_pool(t, device)) return CUDA_SUCCESS;
  t->pair.device = device;
  CUresult rc = t->cuda->api->event_create(&t->pair.start, CU_EVENT_DEFAULT);
  return rc ? rc : t->cuda->api->event_create(&t->pair.end, CU_EVENT_DEFAULT);
}

static void release_event(struct cuda *c, int device, CUevent event) {
  if (!event) return;
  cuda_release(c,
               &(struct cuda_doomed){
                 .kind = CUDA_IS_EVENT,
                 .device = device,
                 .handle.event = event,
               });
}

static int timer_close(lua_State *L) {
  struct timer *t = luaL_checkudata(L, 1, TIMER);
  struct cuda *c = t->cuda;
  t->cuda = NULL;
  if (!c) return 0;
  if (t->pair.end && c->timer_count < CUDA_TIMERS) {
    c->timers[c->timer_count++] = t->pair;
    return 0;
  }
  release_event(c, t->pair.device, t->pair.start);
  release_event(c, t->pair.device, t->pair.end);
  return 0;
}

static struct timer *push_timer(lua_State *L, struct cuda *c) {
  struct timer *t = lua_newuserdatauv(L, sizeof *t, 0);
  *t = (struct timer){.cuda = c};
  luaL_setmetatable(L, TIMER);
  lua_toclose(L, -1);
  return t;
}

static CUresult start(struct timer *t, int device, CUstream stream) {
  CUresult rc = cuda_use(t->cuda, device);
  if (!rc) rc = take(t, device);
  if (!rc) rc = t->cuda->api->event_record(t->pair.start, stream);
  return rc;
}

static CUresult finish(struct cuda *c, const struct cuda_timer *pair, CUstream stream,
                       float *milliseconds) {
  CUresult rc = cuda_use(c, pair->device);
  if (!rc) rc = c->api->event_record(pair->end, stream);
  if (!rc) rc = cuda_wait_stream(c, stream, "cuda.time");
  if (!rc) rc = c->api->event_elapsed_time(milliseconds, pair->start, pair->end);
  return rc;
}

int cuda_time(lua_State *L) {
  struct stream *s = lua_isnoneornil(L, 1) ? NULL : cuda_checkstream(L, 1);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  struct cuda *c = cuda_need(L);
  cuda_check_may_wait(L, c, "time");
  lua_settop(L, 2);
  struct timer *t = push_timer(L, c); /* may run a finalizer that closes the stream */
  const CUstream stream = s ? cuda_checkstream(L, 1)->handle : NULL;
  const int device = s ? s->device : c->chosen;
  CUresult rc = start(t, device, stream);
  if (rc) return cuda_raise(L, c, "time", rc);
  cuda_enqueued(c, device);
  lua_pushvalue(L, 2);
  lua_call(L, 0, 0);
  if (s && !s->handle) return luaL_error(L, "time: the function closed the stream");
  float milliseconds = 0;
  rc = finish(c, &t->pair, stream, &milliseconds);
  if (rc) return cuda_raise(L, c, "time", rc);
  cuda_check_collectives(L, "time");
  lua_pushnumber(L, (lua_Number)milliseconds * 1000);
  return 1;
}

static const luaL_Reg timer_meta[] = {
  {"__gc", timer_close},
  {"__close", timer_close},
  {NULL, NULL},
};

static const luaL_Reg timer_methods[] = {{NULL, NULL}};

void cuda_time_type(lua_State *L) {
  bind_type(L, TIMER, timer_meta, timer_methods);
}
