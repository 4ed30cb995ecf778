/* Values between Lua and SQLite. */

#include "bindings/bind.h"
#include "bindings/sqlite.h"

#include <string.h>

#define BLOB "sqlite.blob"

struct blob {
  size_t n;
  char bytes[];
};

int sqlite_blob(lua_State *L) {
  size_t n;
  const char *bytes = luaL_checklstring(L, 1, &n);
  struct blob *b = lua_newuserdatauv(L, sizeof *b + n, 0);
  b->n = n;
  memcpy(b->bytes, bytes, n);
  luaL_setmetatable(L, BLOB);
  return 1;
}

static int blob_tostring(lua_State *L) {
  const struct blob *b = luaL_checkudata(L, 1, BLOB);
  lua_pushfstring(L, BLOB " (%I bytes)", (lua_Integer)b->n);
  return 1;
}

static int blob_len(lua_State *L) {
  const struct blob *b = luaL_checkudata(L, 1, BLOB);
  lua_pushinteger(L, (lua_Integer)b->n);
  return 1;
}

/* The bytes are in the userdata itself. */
static int blob_nothing(lua_State *L) {
  luaL_checkudata(L, 1, BLOB);
  return 0;
}

static const luaL_Reg blob_meta[] = {
  {"__gc", blob_nothing},
  {"__close", blob_nothing},
  {"__len", blob_len},
  {"__tostring", blob_tostring},
  {NULL, NULL},
};

static const luaL_Reg blob_methods[] = {{NULL, NULL}};

void sqlite_openvalues(lua_State *L) {
  bind_type(L, BLOB, blob_meta, blob_methods);
}

static int bind_number(lua_State *L, sqlite3_stmt *stmt, int i, int index) {
  if (lua_isinteger(L, index)) {
    return sqlite3_bind_int64(stmt, i, lua_tointeger(L, index));
  }
  return sqlite3_bind_double(stmt, i, lua_tonumber(L, index));
}

static int bind_text(lua_State *L, sqlite3_stmt *stmt, int i, int index,
                     sqlite3_destructor_type keeper) {
  size_t n;
  const char *text = lua_tolstring(L, index, &n);
  return sqlite3_bind_text64(stmt, i, text, n, keeper, SQLITE_UTF8);
}

static int bind_blob(lua_State *L, sqlite3_stmt *stmt, int i, int index,
                     sqlite3_destructor_type keeper) {
  const struct blob *b = luaL_testudata(L, index, BLOB);
  return b ? sqlite3_bind_blob64(stmt, i, b->bytes, b->n, keeper) : -1;
}

/* lua_isboolean and friends are macros of lua_type: one switch is one call. */
static int bind_any(lua_State *L, sqlite3_stmt *stmt, int i, int index,
                    sqlite3_destructor_type keeper) {
  switch (lua_type(L, index)) {
    case LUA_TNIL: return sqlite3_bind_null(stmt, i);
    case LUA_TBOOLEAN: return sqlite3_bind_int(stmt, i, lua_toboolean(L, index));
    case LUA_TNUMBER: return bind_number(L, stmt, i, index);
    case LUA_TSTRING: return bind_text(L, stmt, i, index, keeper);
    case LUA_TUSERDATA: return bind_blob(L, stmt, i, index, keeper);
    case LUA_TLIGHTUSERDATA:
      return lua_touserdata(L, index) ? -1 : sqlite3_bind_null(stmt, i);
    default: return -1;
  }
}

int sqlite_bindvalue(lua_State *L, struct statement *s, int i, int index,
                     bool is_borrowed) {
  int rc = bind_any(L, s->stmt, i, index, is_borrowed ? SQLITE_STATIC : SQLITE_TRANSIENT);
  if (rc <= 0) return rc;
  struct err e;
  sqlite_err(s->owner->db, rc, sqlite3_sql(s->stmt), &e);
  return sqlite_raise(L, &e);
}

static void push_bytes(lua_State *L, const void *bytes, int n) {
  lua_pushlstring(L, n ? bytes : "", (size_t)n);
}

void sqlite_pushcolumn(lua_State *L, struct statement *s, int i) {
  bind_checkopen(L, s->stmt, "statement"); /* a finalizer may have run since */
  switch (sqlite3_column_type(s->stmt, i)) {
    case SQLITE_INTEGER: lua_pushinteger(L, sqlite3_column_int64(s->stmt, i)); break;
    case SQLITE_FLOAT: lua_pushnumber(L, sqlite3_column_double(s->stmt, i)); break;
    case SQLITE_TEXT: {
      const void *text = sqlite3_column_text(s->stmt, i); /* before its length */
      push_bytes(L, text, text ? sqlite3_column_bytes(s->stmt, i) : 0);
      break;
    }
    case SQLITE_BLOB: {
      const void *blob = sqlite3_column_blob(s->stmt, i);
      push_bytes(L, blob, blob ? sqlite3_column_bytes(s->stmt, i) : 0);
      break;
    }
    default: lua_pushnil(L);
  }
}

/* Both "a" and "a""b" are names to SQLite once quoted. */
void sqlite_quote(lua_State *L, int arg) {
  size_t n;
  const char *name = luaL_checklstring(L, arg, &n);
  luaL_argcheck(L, strlen(name) == n, arg, "name with a NUL byte");
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  luaL_addchar(&b, '"');
  luaL_addgsub(&b, name, "\"", "\"\"");
  luaL_addchar(&b, '"');
  luaL_pushresult(&b);
}

int sqlite_quote_identifier(lua_State *L) {
  sqlite_quote(L, 1);
  return 1;
}
