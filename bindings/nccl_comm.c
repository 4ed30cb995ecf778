/* Communicators: their type and their end. Their birth is in nccl_init.c. */

#include "bindings/bind.h"
#include "bindings/nccl.h"
#include "host/forkable.h"
#include "host/interrupt.h"
#include "host/recorder.h"

#include <time.h>

#define COMM "nccl.comm"
#define HELD "an NCCL communicator (close it first)"

/* Names the reason: a script that is told "closed" looks for a close. */
static int closed_error(lua_State *L, const struct comm *c) {
  if (comms_is_aborted()) return luaL_error(L, "the communicators were aborted");
  if (c->state == NCCL_UNBORN && !c->is_doomed) {
    return luaL_error(L, "the communicator is not ready before its nccl.group ends");
  }
  const bool is_finalized = c->state == NCCL_FINALIZED && !c->is_doomed;
  return luaL_error(
    L, "attempt to use a %s communicator", is_finalized ? "finalized" : "closed");
}

static const struct bind_tag comm_tag = {COMM, sizeof(struct comm)};

struct comm *nccl_checkcomm(lua_State *L, int arg) {
  struct comm *c = bind_checktagged(L, arg, &comm_tag);
  if (!c->handle || comms_is_aborted()) closed_error(L, c);
  return c;
}

void nccl_check_local(lua_State *L, const struct comm *c, const char *what) {
  if (!c->is_local || c->nccl->group_depth) return;
  luaL_error(
    L, "%s: other ranks of the communicator are in this process: use nccl.group", what);
}

struct comm *nccl_comm_push(lua_State *L, struct nccl *n, const char *name) {
  struct comm *c = lua_newuserdatauv(L, sizeof *c, 1);
  *c =
    (struct comm){.tag = &comm_tag, .nccl = n, .api = n->api, .cuda = n->cuda}; /* closed */
  luaL_setmetatable(L, COMM);
  c->name = lua_pushstring(L, name); /* nil for NULL */
  lua_setiuservalue(L, -2, 1);
  return c;
}

/* Asked for, since NCCL tells nobody; 20 us, since births take milliseconds and enqueues
   some 10 us. */
ncclResult_t nccl_settle(const struct comm *c, ncclResult_t rc) {
  const struct timespec pause = {.tv_nsec = 20000};
  while (rc == ncclInProgress && !comms_is_aborted()) {
    nanosleep(&pause, NULL);
    const ncclResult_t failure = c->api->comm_get_async_error(c->slot, &rc);
    if (failure) return failure;
  }
  return rc;
}

/* What the library decided, not the script: in a split, a shrink or init_all. */
static ncclResult_t ask_place(struct comm *c) {
  ncclResult_t rc = c->api->comm_user_rank(c->slot, &c->rank);
  if (!rc) rc = c->api->comm_count(c->slot, &c->count);
  if (!rc) rc = c->api->comm_cu_device(c->slot, &c->device);
  return rc;
}

ncclResult_t nccl_comm_adopt(struct comm *c, ncclResult_t rc) {
  c->state = NCCL_CLOSED;
  if (!c->slot) return rc;
  if (!rc && !c->count) rc = ask_place(c);
  if (rc && rc != ncclInProgress) {
    c->api->comm_abort(c->slot);
    c->slot = NULL;
    return rc;
  }
  /* A non-blocking one goes on being born: its failure is what ready() tells. */
  c->entry = (struct comms_entry){.api = c->api, .comm = c->slot};
  comms_add(&c->entry);
  forkable_hold(HELD);
  c->state = NCCL_OPEN;
  c->handle = c->slot;
  return ncclSuccess;
}

void nccl_adopt_child(struct comm *c, struct nccl_child *child) {
  child->comm = c;
  child->next = c->children;
  child->link = &c->children;
  if (c->children) c->children->link = &child->next;
  c->children = child;
}

/* The backend frees what it has of it with the communicator. */
static void forget_child(struct nccl_child *child) {
  *child->link = child->next;
  if (child->next) child->next->link = child->link;
  child->comm = NULL;
}

void nccl_close_child(struct nccl_child *child) {
  const struct comm *c = child->comm;
  if (!c) return;
  if (!comms_is_aborted()) child->release(child);
  forget_child(child);
}

/* Before the communicator is finalized: the library needs it whole for that. */
static void close_children(struct comm *c, bool drains) {
  if (c->children && drains) cuda_wait_device(c->cuda, c->device, "nccl.close");
  while (c->children) {
    if (drains)
      nccl_close_child(c->children);
    else
      forget_child(c->children);
  }
}

/* Waits until what was enqueued is done. The library may leave another device current. */
static ncclResult_t drain(const struct comm *c) {
  ncclResult_t rc = ncclSuccess;
  const ncclResult_t failure = c->api->comm_get_async_error(c->slot, &rc);
  if (failure || comms_is_aborted()) return failure;
  recorder_wait("nccl.finalize");
  rc = nccl_settle(c, rc);
  if (!rc && c->api->comm_finalize) rc = nccl_settle(c, c->api->comm_finalize(c->slot));
  recorder_wait(NULL);
  cuda_forget_current(c->cuda);
  return rc;
}

/* Gives the slot back to the library, after draining or in whatever state it is. */
static ncclResult_t release(struct comm *c, bool is_drained) {
  const ncclComm_t comm = c->slot;
  c->slot = NULL;
  forkable_release(HELD);
  if (!comms_remove(&c->entry)) return ncclSuccess; /* the watchdog was first */
  recorder_wait(is_drained ? "nccl.destroy" : "nccl.abort");
  const ncclResult_t rc =
    is_drained ? c->api->comm_destroy(comm) : c->api->comm_abort(comm);
  recorder_wait(NULL);
  cuda_forget_current(c->cuda);
  return rc;
}

ncclResult_t nccl_comm_end(lua_State *L, int arg, struct comm *c, bool drains) {
  const enum nccl_state state = c->state;
  if (state == NCCL_CLOSED || c->is_doomed) return ncclSuccess;
  c->handle = NULL;
  cuda_close_graphs(L, c->cuda, arg);
  if (c->nccl->group_depth) { /* the calls of the group may need it, pending as they are */
    nccl_join_group(L, arg, c);
    c->is_doomed = true;
    c->drains = drains;
    return ncclSuccess;
  }
  c->state = NCCL_CLOSED;
  const bool waits = drains && state == NCCL_OPEN;
  close_children(c, waits);
  const ncclResult_t rc = waits ? drain(c) : ncclSuccess;
  const ncclResult_t released = release(c, drains && state != NCCL_LEFT && !rc);
  return rc ? rc : released;
}

static int end_and_raise(lua_State *L, const char *what, bool drains) {
  struct comm *c = luaL_checkudata(L, 1, COMM);
  const ncclResult_t rc = nccl_comm_end(L, 1, c, drains);
  return rc ? nccl_raise(L, c->nccl, what, rc) : 0;
}

int nccl_comm_close(lua_State *L) {
  const struct comm *c = luaL_checkudata(L, 1, COMM);
  if (c->state == NCCL_CLOSED) return 0;
  cuda_check_may_wait(L, c->cuda, "close");
  if (interrupt_is_watched() && c->handle) { /* the library's own wait cannot be ended */
    const CUresult rc = cuda_wait_device(c->cuda, c->device, "nccl.close");
    if (rc) return cuda_raise(L, c->cuda, "close", rc);
  }
  return end_and_raise(L, "close", true);
}

/* Even an abort waits for ever if a graph holds calls to the communicator, and one that is
   being captured cannot be closed yet. */
int nccl_comm_abort(lua_State *L) {
  const struct comm *c = luaL_checkudata(L, 1, COMM);
  cuda_check_may_wait(L, c->cuda, "abort");
  return end_and_raise(L, "abort", false);
}

/* With an error in flight nobody knows whether the peers will come: nothing is awaited. */
static int comm_tbc(lua_State *L) {
  struct comm *c = luaL_checkudata(L, 1, COMM);
  if (lua_isnoneornil(L, 2)) return nccl_comm_close(L);
  if (!c->cuda->is_capturing || c->state == NCCL_CLOSED) {
    nccl_comm_end(L, 1, c, false);
    return 0;
  }
  cuda_close_graphs(L, c->cuda, 1); /* spoils the capture, if it is in that */
  c->handle = NULL;
  c->state = NCCL_LEFT;
  return 0;
}

/* Collected with the whole state it may still be in a group, which nobody will end. */
static int comm_gc(lua_State *L) {
  struct comm *c = luaL_checkudata(L, 1, COMM);
  if (c->state == NCCL_CLOSED) return 0;
  lua_warning(L, "nccl.comm: collected before it was closed, so aborted", 0);
  c->handle = NULL;
  cuda_close_graphs(L, c->cuda, 1);
  close_children(c, false);
  if (c->state != NCCL_UNBORN) release(c, false);
  c->state = NCCL_CLOSED;
  return 0;
}

int nccl_comm_finalize(lua_State *L) {
  struct comm *c = nccl_checkcomm(L, 1);
  if (c->nccl->group_depth) luaL_error(L, "finalize: not inside nccl.group");
  cuda_check_may_wait(L, c->cuda, "finalize");
  cuda_close_graphs(L, c->cuda, 1);
  close_children(c, true);
  const ncclResult_t rc = drain(c);
  if (rc) return nccl_raise_of(L, c, "finalize", rc);
  c->handle = NULL;
  c->state = NCCL_FINALIZED;
  lua_settop(L, 1);
  return 1;
}

static ncclResult_t async_state(lua_State *L, const struct comm *c, const char *what) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t rc = c->api->comm_get_async_error(c->handle, &state);
  if (rc) nccl_raise_of(L, c, what, rc);
  return state;
}

int nccl_comm_async_error(lua_State *L) {
  const struct comm *c = nccl_checkcomm(L, 1);
  return nccl_push_result(L, async_state(L, c, "async_error"));
}

int nccl_comm_ready(lua_State *L) {
  const struct comm *c = nccl_checkcomm(L, 1);
  const ncclResult_t state = async_state(L, c, "ready");
  if (state && state != ncclInProgress) return nccl_raise_of(L, c, "ready", state);
  lua_pushboolean(L, state == ncclSuccess);
  return 1;
}

static int comm_tostring(lua_State *L) {
  const struct comm *c = luaL_checkudata(L, 1, COMM);
  const char *state = c->handle ? "" : c->state == NCCL_UNBORN ? ", unborn" : ", closed";
  lua_pushfstring(
    L, "nccl.comm: rank %d of %d, device %d%s", c->rank, c->count, c->device, state);
  return 1;
}

static int comm_rank(lua_State *L) {
  const struct comm *c = luaL_checkudata(L, 1, COMM);
  lua_pushinteger(L, c->rank);
  return 1;
}

static int comm_count(lua_State *L) {
  const struct comm *c = luaL_checkudata(L, 1, COMM);
  lua_pushinteger(L, c->count);
  return 1;
}

static int comm_device(lua_State *L) {
  const struct comm *c = luaL_checkudata(L, 1, COMM);
  lua_pushinteger(L, c->device);
  return 1;
}

static int comm_name(lua_State *L) {
  luaL_checkudata(L, 1, COMM);
  lua_getiuservalue(L, 1, 1);
  return 1;
}

static const luaL_Reg comm_meta[] = {
  {"__gc", comm_gc},
  {"__close", comm_tbc},
  {"__tostring", comm_tostring},
  {NULL, NULL},
};

/* Known of a closed communicator too: messages name it. */
static const luaL_Reg comm_fields[] = {
  {"count", comm_count},
  {"device", comm_device},
  {"name", comm_name},
  {"rank", comm_rank},
  {NULL, NULL},
};

void nccl_comm_type(lua_State *L, const luaL_Reg *methods) {
  bind_type_fields(L, COMM, comm_meta, methods, comm_fields);
}
