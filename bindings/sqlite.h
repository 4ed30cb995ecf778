#ifndef BINDINGS_SQLITE_H
#define BINDINGS_SQLITE_H

/* What the files of nclua.sqlite share. A statement keeps its database's memory alive by a
   user value; the database closes its statements. Any allocation may run a finalizer that
   closes either, so both are looked at again after one. */

#include "host/err.h"

#include <lua.h>
#include <sqlite3.h>
#include <stdbool.h>

#define DATABASE "sqlite.database"
#define STATEMENT "sqlite.statement"

struct database {
  sqlite3 *db; /* NULL once closed */
  struct statement *statements;
};

struct statement {
  sqlite3_stmt *stmt; /* NULL once closed */
  struct database *owner;
  struct statement *before, *after; /* in the owner's list */
  bool is_named;                    /* user value 2 has the column names of this run */
  bool is_bound;                    /* its parameters have values of its own */
  unsigned run;                     /* tells an iterator that another run began */
};

/* An open database or statement argument; raises otherwise. */
struct database *sqlite_checkdatabase(lua_State *L, int arg);
struct statement *sqlite_checkstatement(lua_State *L, int arg);

/* SQL text without NUL bytes, which would end it unseen. */
const char *sqlite_checksql(lua_State *L, int arg);

/* Describes the failure that a call on `db` just returned; returns -1. */
int sqlite_err(sqlite3 *db, int rc, const char *sql, struct err *e);

/* Raises *e with its code. */
int sqlite_raise(lua_State *L, const struct err *e);

/* Runs to the end, dropping rows: 0, or -1 with *e. Neither calls into Lua. */
int sqlite_run(sqlite3_stmt *stmt, struct err *e);
int sqlite_exec(sqlite3 *db, const char *sql, struct err *e);

/* Pushes a statement of the database at `index`: 0, or -1 with *e. Raises unless the text
   is exactly one statement. */
int sqlite_prepare(lua_State *L, int index, const char *sql, struct err *e);

/* Binds the values from `first` to the top: a list, or one table by name or place. Text is
   copied, or, if `is_borrowed`, must stay on the stack until sqlite_finish or the end of
   the statement. */
void sqlite_bind(lua_State *L, struct statement *s, int first, bool is_borrowed);

/* One value; the type was not bindable if it returns -1. */
int sqlite_bindvalue(lua_State *L, struct statement *s, int i, int index, bool is_borrowed);

/* To the next row: false (and reset) after the last. Raises on failure. */
bool sqlite_step(lua_State *L, struct statement *s);

/* Runs to the end and drops borrowed values. Raises on failure, after that. */
void sqlite_finish(lua_State *L, struct statement *s);

void sqlite_reset(struct statement *s);
void sqlite_finalize(struct statement *s);

/* Pushes column `i` (0-based) of the current row. */
void sqlite_pushcolumn(lua_State *L, struct statement *s, int i);

/* Pushes the current row of the statement at `index` as a table by column name. */
void sqlite_pushrow(lua_State *L, int index);

/* Functions and methods, each in the file of its subject. */
int sqlite_blob(lua_State *L);
int sqlite_insert(lua_State *L);
int sqlite_quote_identifier(lua_State *L);
int sqlite_row(lua_State *L);
int sqlite_rows(lua_State *L);
int sqlite_transaction(lua_State *L);
int sqlite_value(lua_State *L);
int sqlite_vector(lua_State *L);

/* Appends a quoted name to a string on top of the stack: "a""b". */
void sqlite_quote(lua_State *L, int arg);

/* median, percentile, stdev and cv for SQL. */
int sqlite_addaggregates(sqlite3 *db);

/* Types. */
void sqlite_openstatements(lua_State *L);
void sqlite_opentransactions(lua_State *L);
void sqlite_openvalues(lua_State *L);

#endif
