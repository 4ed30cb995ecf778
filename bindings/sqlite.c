#include "bindings/sqlite.h"

#include "bindings/bind.h"
#include "bindings/open.h"
#include "host/forkable.h"
#include "host/sandbox.h"
#include "host/trace.h"

#include <string.h>

#define HELD "an open database (close it first)"

struct database *sqlite_checkdatabase(lua_State *L, int arg) {
  struct database *d = luaL_checkudata(L, arg, DATABASE);
  bind_checkopen(L, d->db, "database");
  return d;
}

const char *sqlite_checksql(lua_State *L, int arg) {
  size_t length;
  const char *sql = luaL_checklstring(L, arg, &length);
  luaL_argcheck(L, strlen(sql) == length, arg, "SQL with a NUL byte");
  return sql;
}

/* The names of result codes 1 to 26; sqlite3.h has them as macros only. */
static const char *const codes[] = {
  "SQLITE_OK",       "SQLITE_ERROR",     "SQLITE_INTERNAL", "SQLITE_PERM",
  "SQLITE_ABORT",    "SQLITE_BUSY",      "SQLITE_LOCKED",   "SQLITE_NOMEM",
  "SQLITE_READONLY", "SQLITE_INTERRUPT", "SQLITE_IOERR",    "SQLITE_CORRUPT",
  "SQLITE_NOTFOUND", "SQLITE_FULL",      "SQLITE_CANTOPEN", "SQLITE_PROTOCOL",
  "SQLITE_EMPTY",    "SQLITE_SCHEMA",    "SQLITE_TOOBIG",   "SQLITE_CONSTRAINT",
  "SQLITE_MISMATCH", "SQLITE_MISUSE",    "SQLITE_NOLFS",    "SQLITE_AUTH",
  "SQLITE_FORMAT",   "SQLITE_RANGE",     "SQLITE_NOTADB",
};

static const char *code_name(int rc) {
  const size_t primary = (size_t)rc & 0xff;
  return primary < COUNT(codes) ? codes[primary] : "SQLITE_ERROR";
}

enum { SHOWN = 100, BEFORE = 60 }; /* bytes of SQL in a message */

/* With the line that is wrong and where it is: SQL may be long. */
static int err_at(const char *message, const char *code, const char *sql, int offset,
                  struct err *e) {
  int line = 1, start = 0;
  for (int i = 0; i < offset; i++) {
    if (sql[i] != '\n') continue;
    line++;
    start = i + 1;
  }
  const char *shown = sql + (offset - start > BEFORE ? offset - BEFORE : start);
  int length = (int)strcspn(shown, "\n");
  return err_set(e,
                 code,
                 "%.250s (line %d, column %d: '%.*s')",
                 message,
                 line,
                 offset - start + 1,
                 length < SHOWN ? length : SHOWN,
                 shown);
}

/* `begin` is the statement of `sql` that failed. */
static int err_within(sqlite3 *db, int rc, const char *sql, const char *begin,
                      struct err *e) {
  const char *message = sqlite3_errmsg(db);
  int offset = sqlite3_error_offset(db);
  if (offset >= 0) {
    return err_at(message, code_name(rc), sql, (int)(begin - sql) + offset, e);
  }
  begin += strspn(begin, " \t\r\n");
  err_set(e, code_name(rc), "%.250s ('%.*s')", message, SHOWN, begin);
  for (char *p = e->text; (p = strchr(p, '\n'));) *p = ' ';
  return -1;
}

int sqlite_err(sqlite3 *db, int rc, const char *sql, struct err *e) {
  return err_within(db, rc, sql, sql, e);
}

int sqlite_raise(lua_State *L, const struct err *e) {
  return luaL_error(L, "%s: %s", e->code, e->text);
}

int sqlite_run(sqlite3_stmt *stmt, struct err *e) {
  int rc;
  do rc = sqlite3_step(stmt);
  while (rc == SQLITE_ROW);
  if (rc == SQLITE_DONE) return 0;
  return sqlite_err(sqlite3_db_handle(stmt), rc, sqlite3_sql(stmt), e);
}

int sqlite_exec(sqlite3 *db, const char *sql, struct err *e) {
  for (const char *rest = sql; *rest;) {
    const char *begin = rest;
    sqlite3_stmt *stmt;
    int rc = sqlite3_prepare_v2(db, begin, -1, &stmt, &rest);
    if (rc) return err_within(db, rc, sql, begin, e);
    int failed = stmt ? sqlite_run(stmt, e) : 0;
    sqlite3_finalize(stmt);
    if (failed) return -1;
  }
  return 0;
}

static int database_close(lua_State *L) {
  struct database *d = luaL_checkudata(L, 1, DATABASE);
  sqlite3 *db = d->db;
  d->db = NULL;
  while (d->statements) sqlite_finalize(d->statements);
  if (db) {
    sqlite3_close_v2(db);
    forkable_release(HELD);
  }
  return 0;
}

static int database_tostring(lua_State *L) {
  const struct database *d = luaL_checkudata(L, 1, DATABASE);
  const char *path = d->db ? sqlite3_db_filename(d->db, NULL) : "closed";
  lua_pushfstring(L, DATABASE " (%s)", *path ? path : "in memory");
  return 1;
}

/* A misspelt "column" must not pass for a string, nor may SQL reach what can break the
   process: shadow tables, the schema's own table, untrusted functions in a schema. */
static int harden(sqlite3 *db) {
  static const struct {
    int option, on;
  } settings[] = {
    {SQLITE_DBCONFIG_DQS_DML, 0},
    {SQLITE_DBCONFIG_DQS_DDL, 0},
    {SQLITE_DBCONFIG_DEFENSIVE, 1},
    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
    {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
  };
  for (size_t i = 0; i < COUNT(settings); i++) {
    int rc = sqlite3_db_config(db, settings[i].option, settings[i].on, NULL);
    if (rc) return rc;
  }
  return sqlite_addaggregates(db);
}

enum mode { READ_WRITE, READ_ONLY, MEMORY };

struct open_options {
  int mode, busy_timeout_ms;
};

/* In a sandbox, ATTACH opens only what sqlite.open would. A name that SQLite works out is
   not known here (NULL), and with "file:" it may be a URI. */
static int authorize(void *unused, int action, const char *path, const char *b,
                     const char *c, const char *d) {
  struct err e;
  (void)unused, (void)b, (void)c, (void)d;
  if (action != SQLITE_ATTACH) return SQLITE_OK;
  if (!path || strncmp(path, "file:", 5) == 0) return SQLITE_DENY;
  if (!*path || strcmp(path, ":memory:") == 0) return SQLITE_OK;
  return sandbox_check_path(path, true, &e) ? SQLITE_DENY : SQLITE_OK;
}

static int err_open(int rc, const char *path, const char *why, struct err *e) {
  return err_set(e, code_name(rc), "cannot open '%.200s': %s", path, why);
}

/* Leaves a handle even on failure: that is SQLite's way. */
static int open_database(sqlite3 **db, const char *path, const struct open_options *o,
                         struct err *e) {
  static const int flags[] = {
    [READ_WRITE] = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
    [READ_ONLY] = SQLITE_OPEN_READONLY,
    [MEMORY] = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY,
  };
  if (trace_holds(path)) {
    return err_open(SQLITE_BUSY, path, "it is being traced into (trace.stop first)", e);
  }
  const bool is_file = o->mode != MEMORY;
  if (is_file && sandbox_check_path(path, o->mode == READ_WRITE, e)) return -1;
  int rc = sqlite3_open_v2(path, db, flags[o->mode] | SQLITE_OPEN_NOMUTEX, NULL);
  if (!rc) rc = harden(*db);
  if (!rc && sandbox_is_active()) rc = sqlite3_set_authorizer(*db, authorize, NULL);
  if (!rc) rc = sqlite3_busy_timeout(*db, o->busy_timeout_ms);
  /* SQLite looks into the file only when it must: learn now that it is no database. */
  if (!rc) rc = sqlite3_exec(*db, "pragma schema_version", NULL, NULL, NULL);
  if (!rc) return 0;
  return err_open(rc, path, *db ? sqlite3_errmsg(*db) : sqlite3_errstr(rc), e);
}

static const char *check_path(lua_State *L, int mode) {
  if (mode == MEMORY) {
    luaL_argcheck(L, lua_isnoneornil(L, 1), 1, "a database in memory has no path");
    return ":memory:";
  }
  size_t length;
  const char *path = luaL_checklstring(L, 1, &length);
  luaL_argcheck(L, length && strlen(path) == length, 1, "not a path");
  /* Debian's SQLite would take it for a URI. */
  return strncmp(path, "file:", 5) ? path : lua_pushfstring(L, "./%s", path);
}

static int open(lua_State *L) {
  static const char *const modes[] = {"rw", "ro", "memory", NULL};
  static const struct bind_field fields[] = {
    {"mode", BIND_NAME, offsetof(struct open_options, mode), .names = modes},
    {"busy_timeout_ms",
     BIND_INT,
     offsetof(struct open_options, busy_timeout_ms),
     .max = 86400000},
    {NULL},
  };
  struct open_options o = {.busy_timeout_ms = 5000};
  bind_fields(L, 2, fields, &o);
  const char *path = check_path(L, o.mode);
  struct database *d = lua_newuserdatauv(L, sizeof *d, 0);
  *d = (struct database){0};
  luaL_setmetatable(L, DATABASE);
  struct err e;
  if (open_database(&d->db, path, &o, &e)) {
    sqlite3_close_v2(d->db);
    d->db = NULL;
    return bind_fail(L, &e);
  }
  forkable_hold(HELD);
  return 1;
}

static int prepare(lua_State *L) {
  const char *sql = sqlite_checksql(L, 2);
  sqlite_checkdatabase(L, 1);
  lua_settop(L, 2);
  struct err e;
  return sqlite_prepare(L, 1, sql, &e) ? bind_fail(L, &e) : 1;
}

/* Text with parameters is one statement. Only its preparation can fail softly. */
static int exec_bound(lua_State *L, const char *sql) {
  struct err e;
  if (sqlite_prepare(L, 1, sql, &e)) return bind_fail(L, &e);
  lua_replace(L, 2); /* where the SQL was: it, too, is on the stack for the bind */
  struct statement *s = sqlite_checkstatement(L, 2);
  sqlite_bind(L, s, 3, true);
  int failed = sqlite_run(s->stmt, &e);
  sqlite_finalize(s);
  if (failed) return bind_fail(L, &e);
  lua_settop(L, 1);
  return 1;
}

static int exec(lua_State *L) {
  struct database *d = sqlite_checkdatabase(L, 1);
  const char *sql = sqlite_checksql(L, 2);
  struct err e;
  if (lua_gettop(L) > 2) return exec_bound(L, sql);
  if (sqlite_exec(d->db, sql, &e)) return bind_fail(L, &e);
  lua_settop(L, 1);
  return 1;
}

static int changes(lua_State *L) {
  lua_pushinteger(L, sqlite3_changes64(sqlite_checkdatabase(L, 1)->db));
  return 1;
}

static int last_rowid(lua_State *L) {
  lua_pushinteger(L, sqlite3_last_insert_rowid(sqlite_checkdatabase(L, 1)->db));
  return 1;
}

static int in_transaction(lua_State *L) {
  lua_pushboolean(L, !sqlite3_get_autocommit(sqlite_checkdatabase(L, 1)->db));
  return 1;
}

static int path(lua_State *L) {
  const char *name = sqlite3_db_filename(sqlite_checkdatabase(L, 1)->db, NULL);
  lua_pushstring(L, *name ? name : NULL); /* NULL becomes nil: in memory */
  return 1;
}

static const luaL_Reg database_meta[] = {
  {"__gc", database_close},
  {"__close", database_close},
  {"__tostring", database_tostring},
  {NULL, NULL},
};

static const luaL_Reg database_fields[] = {
  {"changes", changes},
  {"in_transaction", in_transaction},
  {"last_rowid", last_rowid},
  {"path", path},
  {NULL, NULL},
};

static const luaL_Reg database_methods[] = {
  {"close", database_close},
  {"exec", exec},
  {"insert", sqlite_insert},
  {"prepare", prepare},
  {"row", sqlite_row},
  {"rows", sqlite_rows},
  {"transaction", sqlite_transaction},
  {"value", sqlite_value},
  {"vector", sqlite_vector},
  {NULL, NULL},
};

static const luaL_Reg functions[] = {
  {"blob", sqlite_blob},
  {"open", open},
  {"quote_identifier", sqlite_quote_identifier},
  {NULL, NULL},
};

int luaopen_nclua_sqlite(lua_State *L) {
  luaL_checkversion(L);
  /* A mapped file that somebody cuts short would end the process, so no pragma may map
     one. Refused once SQLite is in use, when an earlier call has set it already. */
  sqlite3_config(SQLITE_CONFIG_MMAP_SIZE, (sqlite3_int64)0, (sqlite3_int64)0);
  bind_type_fields(L, DATABASE, database_meta, database_methods, database_fields);
  sqlite_openstatements(L);
  sqlite_opentransactions(L);
  sqlite_openvalues(L);
  luaL_requiref(L, "nclua.stats", luaopen_nclua_stats, 0); /* db:vector makes its type */
  luaL_newlib(L, functions);
  lua_pushlightuserdata(L, NULL); /* equal to cjson.null */
  lua_setfield(L, -2, "null");
  lua_pushstring(L, sqlite3_libversion());
  lua_setfield(L, -2, "version");
  return 1;
}
