#include "bindings/frame.h"

#include <lauxlib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 8, MOST_BYTES = 64 * 1024 * 1024 };

/* A value is a tag, then: nothing, 8 bytes, a length and bytes, or key-value pairs up to
   TAG_END. */
enum {
  TAG_NIL,
  TAG_FALSE,
  TAG_TRUE,
  TAG_INTEGER,
  TAG_FLOAT,
  TAG_STRING,
  TAG_TABLE,
  TAG_END
};

struct writer {
  lua_State *L;
  struct frame_buffer *b;
  const char *what;
};

static void put(struct writer *w, const void *data, size_t bytes) {
  struct frame_buffer *b = w->b;
  if (b->room - b->used < bytes) {
    if (b->used + bytes - b->ready > MOST_BYTES) {
      luaL_error(w->L, "%s: more than %d MiB at once", w->what, MOST_BYTES >> 20);
    }
    size_t room = b->used + bytes > 2 * b->room ? b->used + bytes : 2 * b->room;
    char *more = realloc(b->data, room);
    if (!more) luaL_error(w->L, "%s: not enough memory", w->what);
    b->data = more;
    b->room = room;
  }
  memcpy(b->data + b->used, data, bytes);
  b->used += bytes;
}

static void put_tag(struct writer *w, char tag) {
  put(w, &tag, 1);
}

static void put_string(struct writer *w, int index) {
  size_t length;
  const char *text = lua_tolstring(w->L, index, &length);
  if (length > MOST_BYTES) luaL_error(w->L, "%s: a string of %I bytes", w->what, length);
  uint32_t short_length = (uint32_t)length;
  put_tag(w, TAG_STRING);
  put(w, &short_length, sizeof short_length);
  put(w, text, length);
}

static void put_number(struct writer *w, int index) {
  if (lua_isinteger(w->L, index)) {
    lua_Integer value = lua_tointeger(w->L, index);
    put_tag(w, TAG_INTEGER);
    put(w, &value, sizeof value);
  } else {
    lua_Number value = lua_tonumber(w->L, index);
    put_tag(w, TAG_FLOAT);
    put(w, &value, sizeof value);
  }
}

static void put_value(struct writer *w, int index, int depth);

static void put_table(struct writer *w, int index, int depth) {
  lua_State *L = w->L;
  if (depth >= DEEPEST) luaL_error(L, "%s: tables nest too deeply", w->what);
  luaL_checkstack(L, 3, NULL);
  put_tag(w, TAG_TABLE);
  lua_pushnil(L);
  while (lua_next(L, index)) {
    int value = lua_gettop(L);
    put_value(w, value - 1, depth + 1);
    put_value(w, value, depth + 1);
    lua_pop(L, 1);
  }
  put_tag(w, TAG_END);
}

static void put_value(struct writer *w, int index, int depth) {
  switch (lua_type(w->L, index)) {
    case LUA_TNIL: put_tag(w, TAG_NIL); break;
    case LUA_TBOOLEAN: put_tag(w, lua_toboolean(w->L, index) ? TAG_TRUE : TAG_FALSE); break;
    case LUA_TNUMBER: put_number(w, index); break;
    case LUA_TSTRING: put_string(w, index); break;
    case LUA_TTABLE: put_table(w, index, depth); break;
    default:
      luaL_error(w->L, "%s: a %s cannot be sent", w->what, luaL_typename(w->L, index));
  }
}

void frame_append(lua_State *L, struct frame_buffer *b, enum frame_kind kind, int first,
                  int last, const char *what) {
  struct writer w = {L, b, what};
  uint32_t length = 0;
  b->used = b->ready; /* drops what an error left half done */
  put(&w, &length, sizeof length);
  put_tag(&w, (char)kind);
  for (int i = first; i <= last; i++) put_value(&w, i, 0);
  length = (uint32_t)(b->used - b->ready - sizeof length);
  memcpy(b->data + b->ready, &length, sizeof length);
  b->ready = b->used;
}

struct reader {
  lua_State *L;
  const char *at, *end;
};

static bool get(struct reader *r, void *out, size_t bytes) {
  if ((size_t)(r->end - r->at) < bytes) return false;
  memcpy(out, r->at, bytes);
  r->at += bytes;
  return true;
}

static bool push_string(struct reader *r) {
  uint32_t length;
  if (!get(r, &length, sizeof length)) return false;
  if ((size_t)(r->end - r->at) < length) return false;
  lua_pushlstring(r->L, r->at, length);
  r->at += length;
  return true;
}

static bool push_integer(struct reader *r) {
  lua_Integer value;
  if (!get(r, &value, sizeof value)) return false;
  lua_pushinteger(r->L, value);
  return true;
}

static bool push_float(struct reader *r) {
  lua_Number value;
  if (!get(r, &value, sizeof value)) return false;
  lua_pushnumber(r->L, value);
  return true;
}

static bool push_value(struct reader *r, int depth);

/* A float key that is NaN, or nil, cannot come from a table. */
static bool push_table(struct reader *r, int depth) {
  if (depth >= DEEPEST) return false;
  luaL_checkstack(r->L, 4, NULL);
  lua_newtable(r->L);
  while (r->at < r->end && *r->at != TAG_END) {
    if (!push_value(r, depth + 1)) return false;
    bool is_key = lua_type(r->L, -1) == LUA_TSTRING || lua_isinteger(r->L, -1) ||
                  lua_isboolean(r->L, -1) ||
                  lua_tonumber(r->L, -1) == lua_tonumber(r->L, -1);
    if (!is_key || lua_isnil(r->L, -1) || !push_value(r, depth + 1)) return false;
    lua_rawset(r->L, -3);
  }
  char end;
  return get(r, &end, 1);
}

static bool push_value(struct reader *r, int depth) {
  char tag;
  if (!get(r, &tag, 1)) return false;
  switch (tag) {
    case TAG_NIL: lua_pushnil(r->L); return true;
    case TAG_FALSE:
    case TAG_TRUE: lua_pushboolean(r->L, tag == TAG_TRUE); return true;
    case TAG_INTEGER: return push_integer(r);
    case TAG_FLOAT: return push_float(r);
    case TAG_STRING: return push_string(r);
    case TAG_TABLE: return push_table(r, depth);
    default: return false;
  }
}

int frame_push(lua_State *L, const char *data, size_t bytes, enum frame_kind *kind) {
  struct reader r = {L, data, data + bytes};
  char byte;
  if (!get(&r, &byte, 1) || byte < 0 || byte >= FRAME_KINDS) return -1;
  *kind = (enum frame_kind)byte;
  int count = 0;
  for (; r.at < r.end; count++) {
    luaL_checkstack(L, 4, NULL);
    if (!push_value(&r, 0)) return -1;
  }
  return count;
}
