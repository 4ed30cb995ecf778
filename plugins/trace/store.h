#ifndef PLUGINS_TRACE_STORE_H
#define PLUGINS_TRACE_STORE_H

/* The SQLite file of a trace. Used by one thread, the writer; knows nothing of CUPTI. */

#include "plugins/trace/session.h"
#include "plugins/trace/table.h"

#include <sqlite3.h>
#include <stddef.h>

struct store;

/* Creates the file, which must not hold a trace yet (a file there is replaced), with all
   tables and what is known about the process. NULL with the reason in `why`. */
struct store *store_open(const char *path, const struct session *session, char *why,
                         size_t size);

/* Deletes the file and its companions if it is a trace or empty; -1 if it is not. */
int store_delete(const char *path);

/* Ends the transaction and the file, which then has no companions (-wal, -shm). */
void store_close(struct store *store);

/* Rows since the last commit become readable by others. */
void store_commit(struct store *store);

/* A failure is kept, not told: store_error has the first one, "" if none. */
void store_insert(struct store *store, const struct trace_row *row);
const char *store_error(const struct store *store);

/* Rows that could not be written. */
int64_t store_failures(const struct store *store);

/* The text's id in StringIds. */
int64_t store_intern(struct store *store, const char *text);

/* A kernel's three names from the mangled one. */
struct store_names {
  int64_t mangled, demangled, brief;
};
struct store_names store_kernel_names(struct store *store, const char *mangled);

/* Creates the tables, those that are missing. An SQLite result code. */
int store_schema(sqlite3 *db);

#endif
