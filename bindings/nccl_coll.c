/* The collectives. Each checks all that NCCL would silently get wrong, then makes one call.
   This is the hot path: nothing is allocated. */

#include "bindings/bind.h"
#include "bindings/nccl.h"
#include "host/dtype.h"
#include "host/recorder.h"
#include "host/trace.h"

#include <stdio.h>
#include <string.h>

enum { SEND = 2, RECV = 3 }; /* stack indices of the buffers */

static void *memory(const struct buffer *b) {
  return b ? (void *)(uintptr_t)b->ptr : NULL;
}

static const char *side(int arg) {
  return arg == SEND ? "send" : "recv";
}

/* What a running group or capture must keep. This may allocate, and so run a finalizer that
   closes anything: hence before the checks. */
static void take_part(lua_State *L, struct comm *c) {
  if (c->nccl->group_depth) nccl_join_group(L, 1, c);
  if (!c->cuda->is_capturing) return;
  for (int i = 1; i <= RECV; i++) {
    if (lua_isuserdata(L, i)) cuda_capture_note(L, c->cuda, i);
  }
}

static struct comm *check_caller(lua_State *L, const char *function) {
  struct comm *c = nccl_checkcomm(L, 1);
  nccl_check_local(L, c, function);
  if (c->cuda->holds) take_part(L, c);
  return c->handle ? c : nccl_checkcomm(L, 1);
}

static const struct buffer *check_buffer(lua_State *L, int arg, const struct comm *c,
                                         const char *name) {
  const struct buffer *b = cuda_checkbuffer(L, arg);
  if (b->device == c->device) return b;
  lua_pushfstring(
    L, "%s: expected a buffer on device %d, got device %d", name, c->device, b->device);
  luaL_argerror(L, arg, lua_tostring(L, -1));
  return NULL;
}

static const struct buffer *check_side(lua_State *L, int arg, const struct comm *c) {
  return check_buffer(L, arg, c, side(arg));
}

/* A buffer that this rank may go without: NULL for nil. */
static const struct buffer *opt_side(lua_State *L, int arg, const struct comm *c,
                                     bool is_needed) {
  return !is_needed && lua_isnil(L, arg) ? NULL : check_side(L, arg, c);
}

/* A root or a peer: the error says which. */
static int check_rank(lua_State *L, int arg, const struct comm *c, const char *name) {
  const lua_Integer rank = luaL_checkinteger(L, arg);
  if (rank >= 0 && rank < c->count) return (int)rank;
  lua_pushfstring(L, "%s: expected 0 to %d, got %I", name, c->count - 1, rank);
  return luaL_argerror(L, arg, lua_tostring(L, -1));
}

static void type_error(lua_State *L, ncclDataType_t expected, ncclDataType_t got) {
  const char *names[] = {dtype_names[expected], dtype_names[got]};
  lua_pushfstring(L, "recv: expected %s as in send, got %s", names[0], names[1]);
  luaL_argerror(L, RECV, lua_tostring(L, -1));
}

static void count_error(lua_State *L, int arg, size_t expected, size_t got) {
  lua_pushfstring(L,
                  "%s: expected %I elements, got %I",
                  side(arg),
                  (lua_Integer)expected,
                  (lua_Integer)got);
  luaL_argerror(L, arg, lua_tostring(L, -1));
}

/* Where it overlaps by accident, NCCL reads what it has just written. */
static void check_apart(lua_State *L, const struct buffer *a, const struct buffer *b,
                        bool is_in_place) {
  if (is_in_place) return;
  if (a->ptr + a->bytes <= b->ptr || b->ptr + b->bytes <= a->ptr) return;
  luaL_argerror(L, RECV, "recv: overlaps send, and not in the in-place form of this call");
}

static void parts_error(lua_State *L, const struct comm *c, size_t count) {
  lua_pushfstring(L,
                  "send: expected a multiple of %d elements, one part a rank, got %I",
                  c->count,
                  (lua_Integer)count);
  luaL_argerror(L, SEND, lua_tostring(L, -1));
}

/* Both sides hold the same number of elements. In place they are the same memory. */
static void check_same(lua_State *L, const struct buffer *send, const struct buffer *recv,
                       bool may_be_in_place) {
  if (recv->type != send->type) type_error(L, send->type, recv->type);
  if (recv->count != send->count) count_error(L, RECV, send->count, recv->count);
  check_apart(L, send, recv, may_be_in_place && send->ptr == recv->ptr);
}

/* One side, at `arg`, holds a part for each rank. In place, the other is its own part. */
static void check_parts(lua_State *L, int arg, const struct comm *c,
                        const struct buffer *whole, const struct buffer *part) {
  const struct buffer *send = arg == SEND ? whole : part;
  const struct buffer *recv = arg == SEND ? part : whole;
  const size_t count = part->count * (size_t)c->count;
  if (recv->type != send->type) type_error(L, send->type, recv->type);
  if (whole->count != count) count_error(L, arg, count, whole->count);
  check_apart(L, whole, part, part->ptr == whole->ptr + part->bytes * (size_t)c->rank);
}

/* On request, the call shows as a range in a trace. */
static void push_range(const struct comm *c, const struct nccl_call *call) {
  char text[96];
  const struct device_api *api = c->cuda->api;
  const char *type = dtype_names[call->type];
  snprintf(text, sizeof text, "%s %zu %s", nccl_call_name(call), call->count, type);
  if (api->range_push) api->range_push(text);
}

static void pop_range(const struct comm *c) {
  if (c->cuda->api->range_pop) c->cuda->api->range_pop();
}

static void begin(lua_State *L, struct comm *c, const struct nccl_call *call,
                  CUstream stream) {
  const char *function = nccl_call_name(call);
  const CUresult rc = cuda_use(c->cuda, c->device); /* whose default stream NULL is */
  if (rc) cuda_raise(L, c->cuda, function, rc);
  recorder_enqueue(&(struct recorder_op){
    function, c->handle, stream, c->op_count, call->count, call->type, call->peer});
  if (trace_wants_collectives()) push_range(c, call);
}

/* A call that failed is not counted: the library did not count it either. */
static int finish(lua_State *L, struct comm *c, const struct nccl_call *call,
                  ncclResult_t rc) {
  if (trace_wants_collectives()) pop_range(c);
  const bool is_pending = c->nccl->group_depth > 0;
  cuda_enqueued(c->cuda, c->device);
  /* A non-blocking communicator enqueues in a thread of NCCL's. Its buffers may be closed
     as soon as this returns, so it is waited for; a group does that at its end. */
  if (rc == ncclInProgress) rc = is_pending ? ncclSuccess : nccl_settle(c, rc);
  if (rc) return nccl_raise_of(L, c, nccl_call_name(call), rc);
  c->op_count++;
  lua_settop(L, 1);
  return 1;
}

/* The checks are done: makes the call, or writes it down for a burst. */
static int make(lua_State *L, struct comm *c, const struct nccl_call *call,
                int stream_arg) {
  const CUstream stream = cuda_optstream(L, stream_arg, c->device);
  if (c->nccl->burst) return nccl_burst_add(L, c, call);
  begin(L, c, call, stream);
  return finish(L, c, call, nccl_call_issue(call, c, stream));
}

/* Does a call now mean what it meant then: no group, capture or burst takes part? */
static bool is_plain(const struct comm *c) {
  return !c->cuda->holds && !c->nccl->burst && !c->is_local;
}

/* Is this the last call again? Nothing was made or closed since, so that equal addresses
   are equal objects, and they are still open. */
static bool is_repeated(lua_State *L, const struct comm *c) {
  const struct nccl_last *last = &c->last;
  if (!last->send || last->epoch != c->cuda->epoch || !is_plain(c)) return false;
  if (lua_touserdata(L, SEND) != last->send || lua_touserdata(L, RECV) != last->recv ||
      lua_touserdata(L, 5) != last->stream) {
    return false;
  }
  if (!last->stream && !lua_isnoneornil(L, 5)) return false;
  const char *op = lua_type(L, 4) == LUA_TSTRING ? lua_tostring(L, 4) : NULL;
  return op && strcmp(op, nccl_op_name(last->call.op)) == 0;
}

static void remember(lua_State *L, struct comm *c, const struct nccl_call *call) {
  if (!is_plain(c) || lua_type(L, 4) != LUA_TSTRING) return;
  c->last = (struct nccl_last){.epoch = c->cuda->epoch,
                               .send = lua_touserdata(L, SEND),
                               .recv = lua_touserdata(L, RECV),
                               .stream = lua_touserdata(L, 5),
                               .handle = cuda_optstream(L, 5, c->device),
                               .call = *call};
}

int nccl_all_reduce(lua_State *L) {
  struct comm *c = check_caller(L, "all_reduce");
  if (is_repeated(L, c)) {
    begin(L, c, &c->last.call, c->last.handle);
    return finish(L, c, &c->last.call, nccl_call_issue(&c->last.call, c, c->last.handle));
  }
  const struct buffer *send = check_side(L, SEND, c), *recv = check_side(L, RECV, c);
  check_same(L, send, recv, true);
  const ncclRedOp_t op = nccl_checkop(L, 4, c, send->type);
  const struct nccl_call call = {
    NCCL_ALL_REDUCE, memory(send), memory(recv), send->count, send->type, op, -1};
  remember(L, c, &call);
  return make(L, c, &call, 5);
}

int nccl_reduce(lua_State *L) {
  struct comm *c = check_caller(L, "reduce");
  const int root = check_rank(L, 5, c, "root");
  const struct buffer *send = check_side(L, SEND, c);
  const struct buffer *recv = opt_side(L, RECV, c, c->rank == root);
  if (recv) check_same(L, send, recv, true);
  const ncclRedOp_t op = nccl_checkop(L, 4, c, send->type);
  const struct nccl_call call = {
    NCCL_REDUCE, memory(send), memory(recv), send->count, send->type, op, root};
  return make(L, c, &call, 6);
}

int nccl_broadcast(lua_State *L) {
  struct comm *c = check_caller(L, "broadcast");
  const int root = check_rank(L, 4, c, "root");
  const struct buffer *send = opt_side(L, SEND, c, c->rank == root);
  const struct buffer *recv = check_side(L, RECV, c);
  if (send) check_same(L, send, recv, true);
  const struct nccl_call call = {
    NCCL_BROADCAST, memory(send), memory(recv), recv->count, recv->type, ncclSum, root};
  return make(L, c, &call, 5);
}

int nccl_all_gather(lua_State *L) {
  struct comm *c = check_caller(L, "all_gather");
  const struct buffer *send = check_side(L, SEND, c), *recv = check_side(L, RECV, c);
  check_parts(L, RECV, c, recv, send);
  const struct nccl_call call = {
    NCCL_ALL_GATHER, memory(send), memory(recv), send->count, send->type, ncclSum, -1};
  return make(L, c, &call, 4);
}

int nccl_reduce_scatter(lua_State *L) {
  struct comm *c = check_caller(L, "reduce_scatter");
  const struct buffer *send = check_side(L, SEND, c), *recv = check_side(L, RECV, c);
  check_parts(L, SEND, c, send, recv);
  const ncclRedOp_t op = nccl_checkop(L, 4, c, send->type);
  const struct nccl_call call = {
    NCCL_REDUCE_SCATTER, memory(send), memory(recv), recv->count, recv->type, op, -1};
  return make(L, c, &call, 5);
}

int nccl_all_to_all(lua_State *L) {
  struct comm *c = check_caller(L, "all_to_all");
  const struct buffer *send = check_side(L, SEND, c), *recv = check_side(L, RECV, c);
  const size_t part = send->count / (size_t)c->count;
  check_same(L, send, recv, false);
  if (send->count % (size_t)c->count) parts_error(L, c, send->count);
  const struct nccl_call call = {
    NCCL_ALL_TO_ALL, memory(send), memory(recv), part, send->type, ncclSum, -1};
  return make(L, c, &call, 4);
}

int nccl_gather(lua_State *L) {
  struct comm *c = check_caller(L, "gather");
  const int root = check_rank(L, 4, c, "root");
  const struct buffer *send = check_side(L, SEND, c);
  const struct buffer *recv = opt_side(L, RECV, c, c->rank == root);
  if (recv) check_parts(L, RECV, c, recv, send);
  const struct nccl_call call = {
    NCCL_GATHER, memory(send), memory(recv), send->count, send->type, ncclSum, root};
  return make(L, c, &call, 5);
}

int nccl_scatter(lua_State *L) {
  struct comm *c = check_caller(L, "scatter");
  const int root = check_rank(L, 4, c, "root");
  const struct buffer *send = opt_side(L, SEND, c, c->rank == root);
  const struct buffer *recv = check_side(L, RECV, c);
  if (send) check_parts(L, SEND, c, send, recv);
  const struct nccl_call call = {
    NCCL_SCATTER, memory(send), memory(recv), recv->count, recv->type, ncclSum, root};
  return make(L, c, &call, 5);
}

int nccl_send(lua_State *L) {
  struct comm *c = check_caller(L, "send");
  const struct buffer *b = check_buffer(L, 2, c, "buffer");
  const int peer = check_rank(L, 3, c, "peer");
  const struct nccl_call call = {
    NCCL_SEND, memory(b), NULL, b->count, b->type, ncclSum, peer};
  return make(L, c, &call, 4);
}

int nccl_recv(lua_State *L) {
  struct comm *c = check_caller(L, "recv");
  const struct buffer *b = check_buffer(L, 2, c, "buffer");
  const int peer = check_rank(L, 3, c, "peer");
  const struct nccl_call call = {
    NCCL_RECV, NULL, memory(b), b->count, b->type, ncclSum, peer};
  return make(L, c, &call, 4);
}
