/* The state's view of the backend: loading it, the current device, failures. */
#include "bindings/cuda_parts.h"

#include "bindings/bind.h"
#include <stdlib.h>

/* Its address is the registry key. */
static const char STATE = 's';

/* The last finalizer to run, for it was made before all handles: communicators have been
   aborted by now, so what is destroyed here cannot be waiting for a peer. Contexts are left
   to the end of the process: NCCL's threads may still use them. */
static int state_gc(lua_State *L) {
  struct cuda *c = lua_touserdata(L, 1);
  c->holds = 0;
  for (int i = 0; i < c->count; i++) c->is_busy[i] = false;
  cuda_sweep(c);
  for (int i = 0; i < c->timer_count; i++) {
    c->api->event_destroy(c->timers[i].start);
    c->api->event_destroy(c->timers[i].end);
  }
  c->timer_count = 0;
  free(c->doomed);
  c->doomed = NULL;
  c->doomed_room = 0;
  return 0;
}

void cuda_make_state(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &STATE) == LUA_TNIL) {
    struct cuda *c = lua_newuserdatauv(L, sizeof *c, 0);
    *c = (struct cuda){.current = -1};
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, state_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &STATE);
  }
  lua_pop(L, 1);
}

struct cuda *cuda_state(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &STATE);
  struct cuda *c = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return c;
}

static const char *error_name(const struct device_api *api, CUresult rc) {
  const char *name = NULL;
  if (rc == CUDA_INTERRUPTED) return "interrupted";
  return api->get_error_name(rc, &name) || !name ? "CUDA_ERROR_UNKNOWN" : name;
}

static const char *error_text(const struct device_api *api, CUresult rc) {
  const char *text = NULL;
  if (rc == CUDA_INTERRUPTED) {
    return "the device has not done it yet (comm:abort() ends a collective whose peers "
           "never come)";
  }
  return api->get_error_string(rc, &text) || !text ? "no description" : text;
}

struct cuda *cuda_open(lua_State *L, struct err *e) {
  struct cuda *c = cuda_state(L);
  if (c->api) return c;
  const struct device_api *api = backend_device(e);
  if (!api) return NULL;
  CUresult rc = api->init(0);
  if (!rc) rc = api->device_get_count(&c->count);
  if (!rc && c->count == 0) rc = CUDA_ERROR_NO_DEVICE;
  if (rc) {
    const char *name = error_name(api, rc);
    err_set(e, name, "no device: %s: %s", name, error_text(api, rc));
    return NULL;
  }
  if (c->count > CUDA_MOST_DEVICES) c->count = CUDA_MOST_DEVICES;
  c->api = api;
  return c;
}

struct cuda *cuda_need(lua_State *L) {
  struct err e;
  struct cuda *c = cuda_open(L, &e);
  if (!c) luaL_error(L, "%s", e.text);
  return c;
}

/* Pushes "WHAT: CUDA_ERROR_X: sentence". */
static void push_message(lua_State *L, const struct cuda *c, const char *what,
                         CUresult rc) {
  lua_pushfstring(L, "%s: %s: %s", what, error_name(c->api, rc), error_text(c->api, rc));
}

int cuda_raise(lua_State *L, const struct cuda *c, const char *what, CUresult rc) {
  luaL_where(L, 1);
  push_message(L, c, what, rc);
  lua_concat(L, 2);
  return lua_error(L);
}

int cuda_fail(lua_State *L, const struct cuda *c, const char *what, CUresult rc) {
  luaL_pushfail(L);
  push_message(L, c, what, rc);
  lua_pushstring(L, error_name(c->api, rc));
  return 3;
}

CUresult cuda_use(struct cuda *c, int device) {
  if (c->current == device) return CUDA_SUCCESS;
  CUcontext *ctx = &c->contexts[device];
  CUdevice handle;
  CUresult rc = CUDA_SUCCESS;
  if (!*ctx) rc = c->api->device_get(&handle, device);
  if (!*ctx && !rc) rc = c->api->primary_ctx_retain(ctx, handle);
  if (!rc) rc = c->api->ctx_set_current(*ctx);
  if (!rc) c->current = device;
  return rc;
}

void cuda_enter(lua_State *L, struct cuda *c, int device, const char *what) {
  CUresult rc = cuda_use(c, device);
  if (rc) cuda_raise(L, c, what, rc);
}

void cuda_forget_current(struct cuda *c) {
  c->current = -1;
}
