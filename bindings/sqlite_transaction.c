/* Transactions, and the insertion of many rows in one. */

#include "bindings/bind.h"
#include "bindings/sqlite.h"

#define TRANSACTION "sqlite.transaction"

/* What rolls back when a scope is left by an error; user value 1 is the database. */
struct transaction {
  struct database *d;
  bool is_nested, is_done;
};

/* The innermost savepoint of a name is the one meant, so one name does. */
static const char *end_of(const struct transaction *t, bool is_good) {
  if (!t->is_nested) return is_good ? "commit" : "rollback";
  return is_good ? "release nclua" : "rollback to nclua; release nclua";
}

/* Begins a transaction, or a savepoint within one, and pushes its guard. */
static void push_begun(lua_State *L, int database, const char *begin) {
  struct transaction *t = lua_newuserdatauv(L, sizeof *t, 1);
  *t = (struct transaction){.is_done = true};
  luaL_setmetatable(L, TRANSACTION);
  lua_pushvalue(L, database);
  lua_setiuservalue(L, -2, 1);
  t->d = sqlite_checkdatabase(L, database);
  t->is_nested = !sqlite3_get_autocommit(t->d->db);
  struct err e;
  if (sqlite_exec(t->d->db, t->is_nested ? "savepoint nclua" : begin, &e)) {
    sqlite_raise(L, &e);
  }
  t->is_done = false;
}

/* Some errors roll back by themselves: then there is nothing left to end. */
static void roll_back(struct transaction *t) {
  struct err ignored;
  if (!t->is_done && t->d->db && !sqlite3_get_autocommit(t->d->db)) {
    sqlite_exec(t->d->db, end_of(t, false), &ignored);
  }
  t->is_done = true;
}

static int commit(lua_State *L, struct transaction *t) {
  struct err e;
  if (!t->d->db) return luaL_error(L, "the database was closed within its transaction");
  int failed = sqlite_exec(t->d->db, end_of(t, true), &e);
  if (failed) roll_back(t);
  t->is_done = true;
  return failed ? sqlite_raise(L, &e) : 0;
}

/* Calls the function above the guard, then commits. An error passes by untouched, so that
   a handler sees the stack that raised it. Not in a coroutine: one that dies leaves its
   to-be-closed values open until it is collected. */
static int call_begun(lua_State *L, int guard, int arguments) {
  struct transaction *t = luaL_checkudata(L, guard, TRANSACTION);
  bool is_main = lua_pushthread(L);
  lua_pop(L, 1);
  if (is_main) {
    lua_toclose(L, guard);
    lua_call(L, arguments, LUA_MULTRET);
  } else if (lua_pcall(L, arguments, LUA_MULTRET, 0)) {
    roll_back(t);
    return lua_error(L);
  }
  commit(L, t);
  return lua_gettop(L) - guard;
}

static int transaction_close(lua_State *L) {
  roll_back(luaL_checkudata(L, 1, TRANSACTION));
  return 0;
}

static int transaction_tostring(lua_State *L) {
  luaL_checkudata(L, 1, TRANSACTION);
  lua_pushliteral(L, TRANSACTION);
  return 1;
}

int sqlite_transaction(lua_State *L) {
  static const char *const modes[] = {"deferred", "immediate", "exclusive", NULL};
  static const char *const begins[] = {
    "begin deferred", "begin immediate", "begin exclusive"};
  int mode = bind_optname(L, 3, modes, 0);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  sqlite_checkdatabase(L, 1);
  lua_settop(L, 2);
  push_begun(L, 1, begins[mode]);
  lua_pushvalue(L, 2);
  lua_pushvalue(L, 1);
  return call_begun(L, 3, 1);
}

/* The stack of an insertion. */
enum { DB = 1, NAME, ROWS, COLUMNS, INSERT, ROW };

enum { MOST_COLUMNS = 2000 }; /* SQLite's own limit for a table */

struct shape {
  int count;       /* of columns */
  bool is_derived; /* from the first row */
};

/* Pushes the text keys of the row at `row`, in order: pairs has none. */
static void push_keys(lua_State *L, int row) {
  lua_newtable(L);
  lua_Integer n = 0;
  lua_pushnil(L);
  for (; lua_next(L, row); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING) luaL_error(L, "row 1: a key is not a column name");
    lua_Integer at = ++n;
    for (; at > 1; at--) {
      lua_rawgeti(L, -3, at - 1);
      if (lua_compare(L, -1, -3, LUA_OPLT)) break;
      lua_rawseti(L, -4, at);
    }
    if (at > 1) lua_pop(L, 1); /* the smaller name that ended the search */
    lua_pushvalue(L, -2);
    lua_rawseti(L, -4, at);
  }
}

/* Pushes the columns of the first row. */
static void push_columns(lua_State *L) {
  lua_rawgeti(L, ROWS, 1);
  if (!lua_istable(L, -1)) luaL_error(L, "row 1: expected a table");
  push_keys(L, lua_gettop(L));
  lua_remove(L, -2);
}

static void add_names(lua_State *L, luaL_Buffer *b, int count) {
  for (int i = 1; i <= count; i++) {
    luaL_addstring(b, i > 1 ? ", " : "");
    lua_rawgeti(L, COLUMNS, i);
    if (lua_type(L, -1) != LUA_TSTRING) luaL_error(L, "column %d: expected a name", i);
    sqlite_quote(L, lua_gettop(L));
    lua_remove(L, -2);
    luaL_addvalue(b);
  }
}

/* Pushes: insert into "table" ("a", "b") values (?, ?) */
static const char *push_insert(lua_State *L, int count) {
  sqlite_quote(L, NAME);
  const char *begin = lua_pushfstring(L, "insert into %s (", lua_tostring(L, -1));
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  luaL_addstring(&b, begin);
  add_names(L, &b, count);
  luaL_addstring(&b, ") values (?");
  for (int i = 1; i < count; i++) luaL_addstring(&b, ", ?");
  luaL_addchar(&b, ')');
  luaL_pushresult(&b);
  return lua_tostring(L, -1);
}

/* Pushes the values of the row at ROW. Raw access and no allocation: no finalizer runs, so
   what is pushed may be borrowed. */
static lua_Integer push_values(lua_State *L, int count, bool is_list) {
  lua_Integer found = 0;
  for (int i = 1; i <= count; i++) {
    lua_rawgeti(L, is_list ? ROW : COLUMNS, i);
    if (!is_list) lua_rawget(L, ROW);
    found += !lua_isnil(L, -1);
  }
  return found;
}

static lua_Integer count_keys(lua_State *L) {
  lua_Integer keys = 0;
  lua_pushnil(L);
  for (; lua_next(L, ROW); keys++) lua_pop(L, 1);
  return keys;
}

/* No value may get lost: columns taken from row 1 promise that no row has others. */
static void check_row(lua_State *L, lua_Integer number, const struct shape *shape,
                      bool is_list, lua_Integer found) {
  if (is_list && shape->is_derived) {
    luaL_error(L, "row %I: a list needs the argument columns", number);
  }
  if (is_list && lua_rawlen(L, ROW) > (size_t)shape->count) {
    luaL_error(L, "row %I: more values than columns", number);
  }
  if (!found) luaL_error(L, "row %I: it has none of the columns", number);
  if (shape->is_derived && count_keys(L) > found) {
    luaL_error(L, "row %I: it has a column that row 1 lacks", number);
  }
}

static void insert_row(lua_State *L, lua_Integer number, const struct shape *shape) {
  if (!lua_istable(L, ROW)) luaL_error(L, "row %I: expected a table", number);
  bool is_list = lua_rawgeti(L, ROW, 1) != LUA_TNIL;
  lua_pop(L, 1);
  check_row(L, number, shape, is_list, push_values(L, shape->count, is_list));
  struct statement *s = sqlite_checkstatement(L, INSERT);
  for (int i = 1; i <= shape->count; i++) {
    if (sqlite_bindvalue(L, s, i, ROW + i, true) < 0) {
      luaL_error(
        L, "row %I: column %d cannot be a %s", number, i, luaL_typename(L, ROW + i));
    }
  }
  sqlite_finish(L, s);
}

/* Arguments as db:insert's, which checked them. */
static int insert_rows(lua_State *L) {
  struct shape shape = {.is_derived = !lua_toboolean(L, COLUMNS)};
  if (shape.is_derived) {
    push_columns(L);
    lua_replace(L, COLUMNS);
  }
  size_t count = lua_rawlen(L, COLUMNS);
  if (count - 1 >= MOST_COLUMNS) luaL_error(L, "expected 1 to 2000 columns");
  shape.count = (int)count;
  luaL_checkstack(L, shape.count + 16, "too many columns");
  struct err e;
  if (sqlite_prepare(L, DB, push_insert(L, shape.count), &e)) sqlite_raise(L, &e);
  lua_replace(L, INSERT);
  const lua_Integer rows = (lua_Integer)lua_rawlen(L, ROWS);
  for (lua_Integer i = 1; i <= rows; i++) {
    lua_settop(L, INSERT);
    lua_rawgeti(L, ROWS, i);
    insert_row(L, i, &shape);
  }
  sqlite_finalize(sqlite_checkstatement(L, INSERT));
  lua_settop(L, DB);
  return 1;
}

int sqlite_insert(lua_State *L) {
  sqlite_checkdatabase(L, DB);
  luaL_checkstring(L, NAME);
  luaL_checktype(L, ROWS, LUA_TTABLE);
  if (!lua_isnoneornil(L, COLUMNS)) luaL_checktype(L, COLUMNS, LUA_TTABLE);
  lua_settop(L, COLUMNS);
  if (lua_rawlen(L, ROWS) == 0) {
    lua_settop(L, DB);
    return 1;
  }
  const int guard = COLUMNS + 1;
  push_begun(L, DB, "begin");
  lua_pushcfunction(L, insert_rows);
  for (int i = DB; i <= COLUMNS; i++) lua_pushvalue(L, i);
  return call_begun(L, guard, COLUMNS);
}

static const luaL_Reg transaction_meta[] = {
  {"__gc", transaction_close},
  {"__close", transaction_close},
  {"__tostring", transaction_tostring},
  {NULL, NULL},
};

static const luaL_Reg transaction_methods[] = {{NULL, NULL}};

void sqlite_opentransactions(lua_State *L) {
  bind_type(L, TRANSACTION, transaction_meta, transaction_methods);
}
