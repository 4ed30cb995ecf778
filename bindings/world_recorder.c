#include "bindings/world.h"

#include "host/dtype.h"

#include <lauxlib.h>
#include <string.h>

static uint64_t get(const uint64_t *at) {
  return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static void set_integer(lua_State *L, const char *key, uint64_t value) {
  lua_pushinteger(L, (lua_Integer)value);
  lua_setfield(L, -2, key);
}

/* The text may be half written: its end is sought within its room. */
static void set_text(lua_State *L, const char *key, const char *text, size_t room) {
  lua_pushlstring(L, text, strnlen(text, room));
  lua_setfield(L, -2, key);
}

static void set_ago(lua_State *L, const char *key, uint64_t now, uint64_t then) {
  if (then) set_integer(L, key, now > then ? (now - then) / 1000 : 0);
}

static void push_op(lua_State *L, const struct recorder_record *r, uint64_t now) {
  lua_createtable(L, 0, 8);
  set_text(L, "name", r->function, sizeof r->function);
  set_integer(L, "op_count", r->op_count);
  set_integer(L, "count", r->count);
  set_integer(L, "comm", r->comm);
  set_ago(L, "ago_us", now, r->enqueued_ns);
  lua_pushstring(L, r->type >= 0 && r->type < ncclNumTypes ? dtype_names[r->type] : "?");
  lua_setfield(L, -2, "dtype");
  if (r->peer >= 0) set_integer(L, "peer", (uint64_t)r->peer);
}

static void push_ops(lua_State *L, const struct recorder_ring *ring, uint64_t now) {
  uint64_t head = get(&ring->head);
  uint64_t from = head > RECORDER_OPS ? head - RECORDER_OPS : 0;
  lua_createtable(L, (int)(head - from), 0);
  for (uint64_t i = from; i < head; i++) {
    push_op(L, &ring->ops[i % RECORDER_OPS], now);
    lua_rawseti(L, -2, (lua_Integer)(i - from + 1));
  }
}

static void push_comms(lua_State *L, const struct recorder_ring *ring, uint64_t now) {
  lua_newtable(L);
  for (int i = 0; i < RECORDER_COMMS; i++) {
    const struct recorder_comm *c = &ring->comms[i];
    if (!__atomic_load_n(&c->handle, __ATOMIC_ACQUIRE)) continue;
    lua_createtable(L, 0, 5);
    set_integer(L, "number", get(&c->number));
    set_integer(L, "enqueued", get(&c->enqueued));
    set_integer(L, "completed", get(&c->completed));
    set_ago(L, "enqueued_ago_us", now, get(&c->enqueued_ns));
    set_ago(L, "completed_ago_us", now, get(&c->completed_ns));
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
}

void world_push_recorder(lua_State *L, const struct recorder_ring *ring) {
  uint64_t now = process_now_ns(), since = get(&ring->waiting_since_ns);
  luaL_checkstack(L, 8, NULL);
  lua_createtable(L, 0, 8);
  set_integer(L, "enqueued", get(&ring->head));
  if (since) {
    set_text(L, "waiting", ring->waiting, sizeof ring->waiting);
    set_ago(L, "waiting_us", now, since);
  }
  push_ops(L, ring, now);
  lua_setfield(L, -2, "ops");
  push_comms(L, ring, now);
  lua_setfield(L, -2, "comms");
}
