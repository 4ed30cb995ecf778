/* lua-cjson under its own name, made safe. The library recurses as deep as a script tells
   it to, counts bytes in an int, and ends the process when its buffer cannot grow. So the
   depth has a ceiling here, and what encode would write is measured before it starts. */

#include "bindings/open.h"

#include <lauxlib.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

int luaopen_cjson(lua_State *L); /* in Debian's archive, which has no header */

enum {
  MOST_DEPTH = 10000,              /* some 2 MiB of C stack */
  MOST_BYTES = INT_MAX - (1 << 22) /* the buffer doubles up to 1023 << 21 */
};

/* The configuration of the instance, and the bytes that it may write so far. */
struct walk {
  lua_Integer depth;
  double ratio, safe;
  size_t bytes;
};

static void add(lua_State *L, struct walk *w, double bytes) {
  if (bytes > MOST_BYTES - (double)w->bytes) {
    luaL_error(L, "Cannot serialise: more than %d bytes", (int)MOST_BYTES);
  }
  w->bytes += (size_t)bytes;
}

/* What the library takes for an array has only keys of this kind. */
static bool is_place(lua_State *L, int index, double *largest) {
  if (lua_type(L, index) != LUA_TNUMBER) return false;
  double key = lua_tonumber(L, index);
  if (floor(key) != key || key < 1) return false;
  if (key > *largest) *largest = key;
  return true;
}

static void add_scalar(lua_State *L, struct walk *w, int index) {
  enum { MARKS = 4, NUMBER = 32 }; /* quotes, colon, comma; the library's own bound */
  size_t length = 0;
  if (lua_type(L, index) == LUA_TSTRING) lua_tolstring(L, index, &length);
  add(L, w, 6 * (double)length + MARKS + NUMBER); /* \u0000 for one byte */
}

/* An array is written up to its largest index, with "null," in each hole; too sparse a one
   is refused or becomes an object. */
static void add_holes(lua_State *L, struct walk *w, double items, double largest) {
  bool is_sparse = w->ratio > 0 && largest > items * w->ratio && largest > w->safe;
  if (largest > INT_MAX) luaL_error(L, "Cannot serialise table: excessively sparse array");
  if (!is_sparse) add(L, w, (largest - items) * 5);
}

/* Measures the value on top of the stack. Each level of recursion is one of depth. */
static void measure(lua_State *L, struct walk *w, lua_Integer depth) {
  if (!lua_istable(L, -1)) {
    add_scalar(L, w, -1);
    return;
  }
  if (depth > w->depth) {
    luaL_error(L, "Cannot serialise, excessive nesting (%I)", depth);
  }
  luaL_checkstack(L, 4, "too deeply nested");
  double items = 0, places = 0, largest = 0;
  lua_pushnil(L);
  for (; lua_next(L, -2); items++) {
    add_scalar(L, w, -2);
    places += is_place(L, -2, &largest);
    measure(L, w, depth + 1);
    lua_pop(L, 1);
  }
  if (places == items) add_holes(L, w, items, largest);
}

/* Calls the library's function, in upvalue 1, with all arguments. */
static int forward(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

/* Upvalues: encode, encode_max_depth, encode_sparse_array. */
static int encode(lua_State *L) {
  luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_call(L, 0, 1);
  lua_pushvalue(L, lua_upvalueindex(3));
  lua_call(L, 0, 3);
  struct walk w = {
    .depth = lua_tointeger(L, 2),
    .ratio = lua_tonumber(L, 4),
    .safe = lua_tonumber(L, 5),
  };
  lua_settop(L, 1);
  measure(L, &w, 1);
  return forward(L);
}

static int decode(lua_State *L) {
  size_t length;
  luaL_checklstring(L, 1, &length);
  luaL_argcheck(L, length <= MOST_BYTES, 1, "JSON text too long");
  return forward(L);
}

static int max_depth(lua_State *L) {
  if (lua_isnumber(L, 1)) {
    luaL_argcheck(L, lua_tonumber(L, 1) <= MOST_DEPTH, 1, "expected at most 10000");
  }
  return forward(L);
}

/* Replaces the function `name` of the table at index 1 by f; its upvalues are the original
   and the `more` values on top of the stack. */
static void guard(lua_State *L, const char *name, lua_CFunction f, int more) {
  lua_getfield(L, 1, name);
  if (more) lua_insert(L, -1 - more);
  lua_pushcclosure(L, f, 1 + more);
  lua_setfield(L, 1, name);
}

static int new_guarded(lua_State *L) {
  lua_settop(L, 0);
  luaopen_cjson(L);
  lua_getfield(L, 1, "encode_max_depth");
  lua_getfield(L, 1, "encode_sparse_array");
  guard(L, "encode", encode, 2);
  guard(L, "decode", decode, 0);
  guard(L, "encode_max_depth", max_depth, 0);
  guard(L, "decode_max_depth", max_depth, 0);
  lua_pushcfunction(L, new_guarded);
  lua_setfield(L, 1, "new");
  return 1;
}

int open_cjson(lua_State *L) {
  return new_guarded(L);
}

/* nil and the message instead of an error; a wrong number of arguments still raises. */
static int protected_call(lua_State *L) {
  luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  if (lua_pcall(L, 1, 1, 0) == LUA_OK) return 1;
  luaL_pushfail(L);
  lua_insert(L, -2);
  return 2;
}

int open_cjson_safe(lua_State *L) {
  new_guarded(L);
  guard(L, "encode", protected_call, 0);
  guard(L, "decode", protected_call, 0);
  lua_pushcfunction(L, open_cjson_safe);
  lua_setfield(L, 1, "new");
  return 1;
}
