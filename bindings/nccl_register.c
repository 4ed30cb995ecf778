/* Memory that a communicator knows: comm:register(buffer) and comm:window(buffer). Both end
   with the communicator, and before their buffer's memory does. */

#include "bindings/bind.h"
#include "bindings/nccl.h"
#include "host/recorder.h"

#include <stdlib.h>

#define REGISTRATION "nccl.registration"
#define WINDOW "nccl.window"

/* Not in Lua's memory: it may have to wait for a device when its userdata is gone. */
struct registration {
  struct nccl_child child; /* first: release() is handed this */
  struct cuda_tie tie;
  struct cuda *cuda;
  int device;
  void *handle;
  ncclWindow_t window;          /* one of the two */
  bool has_userdata, is_queued; /* who still points at this */
};

static void registration_release(struct nccl_child *child) {
  const struct registration *r = (const struct registration *)child;
  const struct comm *c = child->comm;
  if (r->handle) c->api->comm_deregister(c->slot, r->handle);
  if (r->window) c->api->comm_window_deregister(c->slot, r->window);
}

static void free_if_unused(struct registration *r) {
  if (!r->has_userdata && !r->is_queued) free(r);
}

/* No work can use it any more. */
static void end(void *data) {
  struct registration *r = data;
  nccl_close_child(&r->child);
  r->is_queued = false;
  free_if_unused(r);
}

/* The last thing that is done with `r`: it may be gone afterwards. */
static void end_later(struct registration *r) {
  cuda_untie(&r->tie);
  if (!r->child.comm || r->is_queued) {
    free_if_unused(r);
    return;
  }
  r->is_queued = true;
  cuda_release_later(r->cuda, r->device, end, r);
}

static void buffer_closes(struct cuda_tie *tie) {
  end_later((struct registration *)((char *)tie - offsetof(struct registration, tie)));
}

static struct registration *check(lua_State *L, const char *type) {
  struct registration **at = luaL_checkudata(L, 1, type);
  return *at;
}

/* A closed one on top of the stack. */
static struct registration *push_new(lua_State *L, const char *type, struct comm *c) {
  struct registration **at = lua_newuserdatauv(L, sizeof *at, 2);
  *at = calloc(1, sizeof **at);
  if (!*at) luaL_error(L, "not enough memory");
  **at = (struct registration){.child.release = registration_release,
                               .cuda = c->cuda,
                               .device = c->device,
                               .has_userdata = true};
  luaL_setmetatable(L, type);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1); /* its communicator and buffer live as long */
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, -2, 2);
  return *at;
}

static struct buffer *check_buffer(lua_State *L, const struct comm *c) {
  struct buffer *b = cuda_checkbuffer(L, 2);
  if (b->device != c->device) {
    lua_pushfstring(L, "expected a buffer on device %d, got %d", c->device, b->device);
    luaL_argerror(L, 2, lua_tostring(L, -1));
  }
  return b;
}

static void *memory(const struct buffer *b) {
  return (void *)(uintptr_t)b->ptr;
}

/* Memory is looked at on the device that is current. */
static void enter(lua_State *L, const struct comm *c, const char *what) {
  const CUresult rc = cuda_use(c->cuda, c->device);
  if (rc) cuda_raise(L, c->cuda, what, rc);
}

static int opened(struct comm *c, struct registration *r, struct buffer *b) {
  nccl_adopt_child(c, &r->child);
  r->tie.undo = buffer_closes;
  cuda_tie(b, &r->tie);
  return 1;
}

int nccl_register(lua_State *L) {
  struct comm *c = nccl_checkcomm(L, 1);
  check_buffer(L, c);
  if (!c->api->comm_register) return nccl_unsupported(L, c->nccl, "register");
  struct registration *r = push_new(L, REGISTRATION, c);
  c = nccl_checkcomm(L, 1); /* the allocation may have run a finalizer */
  struct buffer *b = check_buffer(L, c);
  enter(L, c, "register");
  const ncclResult_t rc = c->api->comm_register(c->handle, memory(b), b->bytes, &r->handle);
  return rc ? nccl_fail(L, c->nccl, "register", rc) : opened(c, r, b);
}

static int no_window(lua_State *L) {
  luaL_pushfail(L);
  lua_pushliteral(L, "window: this communicator or memory cannot have one");
  lua_pushliteral(L, "ENOTSUP");
  return 3;
}

int nccl_window(lua_State *L) {
  struct comm *c = nccl_checkcomm(L, 1);
  struct {
    bool symmetric;
  } o = {.symmetric = true};
  static const struct bind_field fields[] = {{"symmetric", BIND_BOOL, 0}, {NULL}};
  check_buffer(L, c);
  bind_fields(L, 3, fields, &o);
  if (!c->api->comm_window_register) return nccl_unsupported(L, c->nccl, "window");
  nccl_check_local(L, c, "window");
  if (c->nccl->group_depth) return luaL_error(L, "window: not inside nccl.group");
  cuda_check_may_wait(L, c->cuda, "window");
  struct registration *r = push_new(L, WINDOW, c);
  c = nccl_checkcomm(L, 1);
  struct buffer *b = check_buffer(L, c);
  enter(L, c, "window");
  recorder_wait("nccl.window");
  ncclResult_t rc =
    c->api->comm_window_register(c->handle,
                                 memory(b),
                                 b->bytes,
                                 &r->window,
                                 o.symmetric ? NCCL_WIN_COLL_SYMMETRIC : NCCL_WIN_DEFAULT);
  rc = nccl_settle(c, rc);
  recorder_wait(NULL);
  if (rc) return nccl_fail(L, c->nccl, "window", rc);
  return r->window ? opened(c, r, b) : no_window(L);
}

static int let_go(struct registration *r) {
  if (r) end_later(r);
  return 0;
}

static int collect(lua_State *L, const char *type) {
  struct registration **at = luaL_checkudata(L, 1, type);
  struct registration *r = *at;
  *at = NULL; /* __gc may be followed by nothing but another __gc */
  if (!r) return 0;
  r->has_userdata = false;
  return let_go(r);
}

static int show(lua_State *L, const char *type) {
  const struct registration *r = check(L, type);
  const bool is_open = r && r->child.comm && !r->is_queued;
  lua_pushfstring(L, is_open ? "%s" : "%s (closed)", type);
  return 1;
}

static int registration_close(lua_State *L) {
  return let_go(check(L, REGISTRATION));
}

static int registration_gc(lua_State *L) {
  return collect(L, REGISTRATION);
}

static int registration_tostring(lua_State *L) {
  return show(L, REGISTRATION);
}

static int window_close(lua_State *L) {
  return let_go(check(L, WINDOW));
}

static int window_gc(lua_State *L) {
  return collect(L, WINDOW);
}

static int window_tostring(lua_State *L) {
  return show(L, WINDOW);
}

static const luaL_Reg registration_meta[] = {
  {"__gc", registration_gc},
  {"__close", registration_close},
  {"__tostring", registration_tostring},
  {NULL, NULL},
};

static const luaL_Reg window_meta[] = {
  {"__gc", window_gc},
  {"__close", window_close},
  {"__tostring", window_tostring},
  {NULL, NULL},
};

static const luaL_Reg registration_methods[] = {{"close", registration_close},
                                                {NULL, NULL}};
static const luaL_Reg window_methods[] = {{"close", window_close}, {NULL, NULL}};

void nccl_register_types(lua_State *L) {
  bind_type(L, REGISTRATION, registration_meta, registration_methods);
  bind_type(L, WINDOW, window_meta, window_methods);
}
