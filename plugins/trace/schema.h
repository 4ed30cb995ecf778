#ifndef PLUGINS_TRACE_SCHEMA_H
#define PLUGINS_TRACE_SCHEMA_H

/* tables.def as data: a table's entry is followed by those of its columns. */

#include <sqlite3.h>

enum schema_kind {
  SCHEMA_TABLE,
  SCHEMA_INTEGER,
  SCHEMA_NEEDED,
  SCHEMA_REAL,
  SCHEMA_TEXT,
  SCHEMA_NEEDED_TEXT,
  SCHEMA_NAME,
  SCHEMA_NEEDED_NAME
};

enum { SCHEMA_SQL = 2048 }; /* room for a table's statement */

struct schema_entry {
  const char *name;
  enum schema_kind kind;
};

/* By table.h's numbers; the one after the last has no name. */
const struct schema_entry *schema_entry(int index);

/* The statement that inserts into a table. An SQLite result code. */
int schema_prepare(sqlite3 *db, const struct schema_entry *table, sqlite3_stmt **out);

#endif
