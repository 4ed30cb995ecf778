/* Prepared statements, and the queries of a database that are made of them. */

#include "bindings/bind.h"
#include "bindings/sqlite.h"
#include "bindings/stats.h"

#include <string.h>

#define CURSOR "sqlite.cursor"

struct statement *sqlite_checkstatement(lua_State *L, int arg) {
  struct statement *s = luaL_checkudata(L, arg, STATEMENT);
  bind_checkopen(L, s->stmt, "statement");
  return s;
}

void sqlite_finalize(struct statement *s) {
  sqlite3_stmt *stmt = s->stmt;
  s->stmt = NULL;
  if (s->before)
    s->before->after = s->after;
  else if (s->owner && s->owner->statements == s)
    s->owner->statements = s->after;
  if (s->after) s->after->before = s->before;
  s->owner = NULL;
  s->before = s->after = NULL;
  sqlite3_finalize(stmt);
}

void sqlite_reset(struct statement *s) {
  sqlite3_reset(s->stmt); /* repeats the last step's error, which was reported then */
  s->is_named = false;
  s->run++;
}

/* Pushes a closed statement that knows its database. */
static struct statement *new_statement(lua_State *L, int index) {
  index = lua_absindex(L, index);
  struct statement *s = lua_newuserdatauv(L, sizeof *s, 2);
  *s = (struct statement){0};
  luaL_setmetatable(L, STATEMENT);
  lua_pushvalue(L, index);
  lua_setiuservalue(L, -2, 1);
  return s;
}

static void link_statement(struct database *d, struct statement *s) {
  s->owner = d;
  s->after = d->statements;
  if (s->after) s->after->before = s;
  d->statements = s;
}

/* Is there a statement in the text? Text that cannot be parsed counts as one. */
static bool has_statement(sqlite3 *db, const char *sql) {
  sqlite3_stmt *stmt;
  bool is_one = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) || stmt;
  sqlite3_finalize(stmt);
  return is_one;
}

int sqlite_prepare(lua_State *L, int index, const char *sql, struct err *e) {
  struct statement *s = new_statement(L, index);
  struct database *d = sqlite_checkdatabase(L, index); /* after the allocation */
  const char *rest;
  int rc = sqlite3_prepare_v2(d->db, sql, -1, &s->stmt, &rest);
  if (rc) return sqlite_err(d->db, rc, sql, e);
  if (!s->stmt) luaL_error(L, "no SQL statement in '%s'", sql);
  link_statement(d, s);
  if (has_statement(d->db, rest)) luaL_error(L, "more than one SQL statement: '%s'", sql);
  return 0;
}

static void must_prepare(lua_State *L, int index, const char *sql) {
  struct err e;
  if (sqlite_prepare(L, index, sql, &e)) sqlite_raise(L, &e);
}

/* What is on top of the stack cannot be freed by a finalizer, unlike SQLite's strings. */
static const char *push_parameter_name(lua_State *L, struct statement *s, int i) {
  const char *name = sqlite3_bind_parameter_name(s->stmt, i);
  return name ? lua_pushstring(L, name) : lua_pushfstring(L, "%d", i);
}

static int bind_type_error(lua_State *L, struct statement *s, int i, int index) {
  const char *got = luaL_typename(L, index), *name = push_parameter_name(L, s, i);
  return luaL_error(L,
                    "parameter %s: expected nil, a boolean, number, string, sqlite.null "
                    "or sqlite.blob, got %s",
                    name,
                    got);
}

static void bind_one(lua_State *L, struct statement *s, int i, int index, bool borrowed) {
  if (sqlite_bindvalue(L, s, i, index, borrowed)) bind_type_error(L, s, i, index);
}

/* Pushes the table's value for a parameter: by name without its sigil, or by place. */
static void push_argument(lua_State *L, struct statement *s, int i, int table) {
  const char *name = push_parameter_name(L, s, i);
  bind_checkopen(L, s->stmt, "statement"); /* that may have run a finalizer */
  if (strchr(":@$", *name)) {
    lua_pushstring(L, name + 1);
    lua_rawget(L, table);
  } else {
    lua_rawgeti(L, table, i);
  }
  bind_checkopen(L, s->stmt, "statement");
  if (lua_isnil(L, -1)) {
    luaL_error(L, "no value for parameter %s (NULL is sqlite.null)", name);
  }
  lua_remove(L, -2);
}

static void bind_table(lua_State *L, struct statement *s, int table) {
  int count = sqlite3_bind_parameter_count(s->stmt), keys = 0;
  for (int i = 1; i <= count; i++) {
    push_argument(L, s, i, table);
    bind_one(L, s, i, -1, false);
    lua_pop(L, 1);
  }
  lua_pushnil(L);
  for (; lua_next(L, table); keys++) lua_pop(L, 1);
  if (keys > count) luaL_error(L, "%d parameters, but %d values", count, keys);
}

static void bind_list(lua_State *L, struct statement *s, int first, bool borrowed) {
  int given = lua_gettop(L) - first + 1, count = sqlite3_bind_parameter_count(s->stmt);
  if (given != count) luaL_error(L, "%d parameters, but %d values", count, given);
  for (int i = 1; i <= count; i++) bind_one(L, s, i, first + i - 1, borrowed);
}

void sqlite_bind(lua_State *L, struct statement *s, int first, bool is_borrowed) {
  luaL_checkstack(L, 8, "too many parameters");
  s->is_bound = false; /* an error in between leaves some unset, or borrowed */
  if (lua_gettop(L) == first && lua_istable(L, first))
    bind_table(L, s, first);
  else
    bind_list(L, s, first, is_borrowed);
  s->is_bound = true;
}

static void check_bound(lua_State *L, struct statement *s) {
  int count = sqlite3_bind_parameter_count(s->stmt);
  if (count && !s->is_bound) luaL_error(L, "%d parameters, but no values", count);
}

static int fail(lua_State *L, struct statement *s, int rc) {
  struct err e;
  sqlite_err(s->owner->db, rc, sqlite3_sql(s->stmt), &e);
  sqlite_reset(s);
  return sqlite_raise(L, &e);
}

bool sqlite_step(lua_State *L, struct statement *s) {
  bind_checkopen(L, s->stmt, "statement"); /* the caller may have allocated */
  int rc = sqlite3_step(s->stmt);
  if (rc == SQLITE_ROW) return true;
  if (rc != SQLITE_DONE) fail(L, s, rc);
  sqlite_reset(s);
  return false;
}

void sqlite_finish(lua_State *L, struct statement *s) {
  bind_checkopen(L, s->stmt, "statement");
  struct err e;
  int failed = sqlite_run(s->stmt, &e);
  sqlite_reset(s);
  sqlite3_clear_bindings(s->stmt);
  s->is_bound = false;
  if (failed) sqlite_raise(L, &e);
}

/* Pushes the column names, kept for the rows to come. A table may change between runs. */
static void push_names(lua_State *L, int index, struct statement *s, int count) {
  lua_getiuservalue(L, index, 2);
  if (s->is_named && (int)lua_rawlen(L, -1) == count) return;
  lua_pop(L, 1);
  lua_createtable(L, count, 0);
  for (int i = 0; i < count && s->stmt; i++) {
    lua_pushstring(L, sqlite3_column_name(s->stmt, i));
    lua_rawseti(L, -2, i + 1);
  }
  s->is_named = true;
  lua_pushvalue(L, -1);
  lua_setiuservalue(L, index, 2);
}

void sqlite_pushrow(lua_State *L, int index) {
  index = lua_absindex(L, index);
  struct statement *s = sqlite_checkstatement(L, index);
  int count = sqlite3_data_count(s->stmt);
  push_names(L, index, s, count);
  lua_createtable(L, 0, count);
  for (int i = 0; i < count; i++) {
    lua_rawgeti(L, -2, i + 1);
    sqlite_pushcolumn(L, s, i);
    lua_rawset(L, -3);
  }
  lua_remove(L, -2);
}

static int statement_bind(lua_State *L) {
  struct statement *s = sqlite_checkstatement(L, 1);
  sqlite_reset(s);
  sqlite_bind(L, s, 2, false);
  lua_settop(L, 1);
  return 1;
}

static int statement_step(lua_State *L) {
  struct statement *s = sqlite_checkstatement(L, 1);
  check_bound(L, s);
  if (sqlite_step(L, s))
    sqlite_pushrow(L, 1);
  else
    lua_pushnil(L);
  return 1;
}

static int statement_run(lua_State *L) {
  struct statement *s = sqlite_checkstatement(L, 1);
  sqlite_reset(s);
  if (lua_gettop(L) > 1) {
    sqlite_bind(L, s, 2, true);
    sqlite_finish(L, s);
  } else {
    check_bound(L, s);
    while (sqlite_step(L, s)) continue;
  }
  lua_settop(L, 1);
  return 1;
}

static int statement_reset(lua_State *L) {
  sqlite_reset(sqlite_checkstatement(L, 1));
  lua_settop(L, 1);
  return 1;
}

static int statement_close(lua_State *L) {
  sqlite_finalize(luaL_checkudata(L, 1, STATEMENT));
  return 0;
}

static int statement_tostring(lua_State *L) {
  const struct statement *s = luaL_checkudata(L, 1, STATEMENT);
  lua_pushfstring(L, STATEMENT " (%s)", s->stmt ? sqlite3_sql(s->stmt) : "closed");
  return 1;
}

static int field_sql(lua_State *L) {
  lua_pushstring(L, sqlite3_sql(sqlite_checkstatement(L, 1)->stmt));
  return 1;
}

static int field_columns(lua_State *L) {
  struct statement *s = sqlite_checkstatement(L, 1);
  int count = sqlite3_column_count(s->stmt);
  s->is_named = false; /* a list of its own: scripts may change it */
  push_names(L, 1, s, count);
  s->is_named = false;
  return 1;
}

/* The to-be-closed value of stmt:rows(): leaving the loop ends the run that it stands for.
 */
struct cursor {
  unsigned run;
};

static int cursor_close(lua_State *L) {
  const struct cursor *c = luaL_checkudata(L, 1, CURSOR);
  lua_getiuservalue(L, 1, 1);
  struct statement *s = luaL_testudata(L, -1, STATEMENT);
  if (s && s->stmt && s->run == c->run) sqlite_reset(s);
  return 0;
}

/* Collected, not closed: another run may be under way. */
static int cursor_gc(lua_State *L) {
  luaL_checkudata(L, 1, CURSOR);
  return 0;
}

static int cursor_tostring(lua_State *L) {
  luaL_checkudata(L, 1, CURSOR);
  lua_pushliteral(L, CURSOR);
  return 1;
}

static void push_cursor(lua_State *L, int statement, unsigned run) {
  struct cursor *c = lua_newuserdatauv(L, sizeof *c, 1);
  c->run = run;
  luaL_setmetatable(L, CURSOR);
  lua_pushvalue(L, statement);
  lua_setiuservalue(L, -2, 1);
}

/* Upvalues: the statement, the number of its run. */
static int next_row(lua_State *L) {
  lua_settop(L, 0);
  lua_pushvalue(L, lua_upvalueindex(1));
  struct statement *s = sqlite_checkstatement(L, 1);
  if (s->run != (unsigned)lua_tointeger(L, lua_upvalueindex(2))) {
    return luaL_error(L, "the statement was run again, or is at its end");
  }
  if (sqlite_step(L, s))
    sqlite_pushrow(L, 1);
  else
    lua_pushnil(L);
  return 1;
}

/* Pushes iterator, nil, nil for the statement at `index`, whose run begins. */
static void push_iterator(lua_State *L, int index) {
  struct statement *s = sqlite_checkstatement(L, index);
  lua_pushvalue(L, index);
  lua_pushinteger(L, s->run);
  lua_pushcclosure(L, next_row, 2);
  lua_pushnil(L);
  lua_pushnil(L);
}

static int statement_rows(lua_State *L) {
  struct statement *s = sqlite_checkstatement(L, 1);
  sqlite_reset(s);
  if (lua_gettop(L) > 1) sqlite_bind(L, s, 2, false);
  check_bound(L, s);
  lua_settop(L, 1);
  const unsigned run = s->run;
  push_iterator(L, 1);
  push_cursor(L, 1, run);
  return 4;
}

/* Arguments: database, SQL, values. Leaves the bound statement alone on the stack. */
static struct statement *query(lua_State *L) {
  sqlite_checkdatabase(L, 1);
  must_prepare(L, 1, sqlite_checksql(L, 2));
  lua_replace(L, 1);
  struct statement *s = sqlite_checkstatement(L, 1);
  sqlite_bind(L, s, 3, false);
  lua_settop(L, 1);
  return s;
}

int sqlite_rows(lua_State *L) {
  query(L);
  push_iterator(L, 1);
  lua_pushvalue(L, 1); /* nobody else has the statement: closing it is enough */
  return 4;
}

int sqlite_row(lua_State *L) {
  struct statement *s = query(L);
  if (sqlite_step(L, s))
    sqlite_pushrow(L, 1);
  else
    lua_pushnil(L);
  sqlite_finalize(s);
  return 1;
}

int sqlite_value(lua_State *L) {
  struct statement *s = query(L);
  if (sqlite_step(L, s))
    sqlite_pushcolumn(L, s, 0);
  else
    lua_pushnil(L);
  sqlite_finalize(s);
  return 1;
}

int sqlite_vector(lua_State *L) {
  struct statement *s = query(L);
  stats_newvector(L);
  for (lua_Integer row = 1; sqlite_step(L, s); row++) {
    int type = sqlite3_column_type(s->stmt, 0);
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) {
      return luaL_error(L, "row %I: expected a number in the first column", row);
    }
    stats_append(L, 2, sqlite3_column_double(s->stmt, 0));
  }
  sqlite_finalize(s);
  return 1;
}

static const luaL_Reg statement_meta[] = {
  {"__gc", statement_close},
  {"__close", statement_close},
  {"__tostring", statement_tostring},
  {NULL, NULL},
};

static const luaL_Reg statement_methods[] = {
  {"bind", statement_bind},
  {"close", statement_close},
  {"reset", statement_reset},
  {"rows", statement_rows},
  {"run", statement_run},
  {"step", statement_step},
  {NULL, NULL},
};

static const luaL_Reg statement_fields[] = {
  {"columns", field_columns},
  {"sql", field_sql},
  {NULL, NULL},
};

static const luaL_Reg cursor_meta[] = {
  {"__gc", cursor_gc},
  {"__close", cursor_close},
  {"__tostring", cursor_tostring},
  {NULL, NULL},
};

static const luaL_Reg cursor_methods[] = {{"close", cursor_close}, {NULL, NULL}};

void sqlite_openstatements(lua_State *L) {
  bind_type_fields(L, STATEMENT, statement_meta, statement_methods, statement_fields);
  bind_type(L, CURSOR, cursor_meta, cursor_methods);
}
