/* Traces of several processes in one file, by SQL alone. */
#include "plugins/trace/merge.h"

#include "plugins/trace/schema.h"
#include "plugins/trace/store.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns that are times besides the ones below; the GPU's own clock is not one. */
static const char *const times[] = {"start",
                                    "end",
                                    "timestamp",
                                    "startApiEnd",
                                    "endApiStart",
                                    "inProgress",
                                    "gpuWait",
                                    "peerWait",
                                    "sendWait",
                                    "recvWait",
                                    "flushWait",
                                    NULL};
static const char *const ids[] = {"globalPid", "globalTid", "endGlobalTid", NULL};

/* Tables with rows that `into` may have already. */
static const char *const special[] = {"TARGET_INFO_SESSION_START_TIME",
                                      "TARGET_INFO_SYSTEM_ENV",
                                      "TARGET_INFO_GPU",
                                      "TARGET_INFO_CUDA_DEVICE",
                                      "META_DATA_EXPORT",
                                      NULL};

/* Facts about both files, as a table of one row: `epoch` in ns to add to times, `host` to
   add to ids. A host that `into` does not know gets the next number in their top bits. */
static const char prepare[] =
  "INSERT INTO main.TARGET_INFO_SESSION_START_TIME SELECT * FROM "
  "  src.TARGET_INFO_SESSION_START_TIME WHERE NOT EXISTS "
  "  (SELECT 1 FROM main.TARGET_INFO_SESSION_START_TIME);"
  "INSERT INTO main.META_DATA_EXPORT SELECT * FROM src.META_DATA_EXPORT WHERE NOT EXISTS "
  "  (SELECT 1 FROM main.META_DATA_EXPORT);"
  "CREATE TEMP TABLE shift AS SELECT"
  "  (SELECT utcEpochNs FROM src.TARGET_INFO_SESSION_START_TIME)"
  "    - (SELECT utcEpochNs FROM main.TARGET_INFO_SESSION_START_TIME) AS epoch,"
  "  coalesce((SELECT m.globalVid FROM main.TARGET_INFO_SYSTEM_ENV m"
  "      JOIN src.TARGET_INFO_SYSTEM_ENV s USING (name, value) WHERE name = 'Hostname'),"
  "    (SELECT max(globalVid) + (1 << 56) FROM main.TARGET_INFO_SYSTEM_ENV), 0) AS host;"
  "INSERT INTO main.TARGET_INFO_SYSTEM_ENV SELECT host, devStateName, name, nameEnum, value"
  "  FROM src.TARGET_INFO_SYSTEM_ENV, shift WHERE host NOT IN"
  "  (SELECT globalVid FROM main.TARGET_INFO_SYSTEM_ENV);"
  "INSERT INTO main.StringIds SELECT (SELECT ifnull(max(id), 0) FROM main.StringIds)"
  "  + row_number() OVER (ORDER BY id), value FROM src.StringIds"
  "  WHERE value NOT IN (SELECT value FROM main.StringIds);"
  "CREATE TEMP TABLE texts(old INTEGER PRIMARY KEY, new INTEGER);"
  "INSERT INTO texts SELECT s.id, m.id FROM src.StringIds s"
  "  JOIN main.StringIds m USING (value);";

static const char finish[] =
  "INSERT INTO main.TARGET_INFO_GPU SELECT vmId,"
  "  (SELECT ifnull(max(id) + 1, 0) FROM main.TARGET_INFO_GPU)"
  "    + row_number() OVER (ORDER BY id) - 1, name, busLocation, isDiscrete, l2CacheSize,"
  "  totalMemory, memoryBandwidth, clockRate, smCount, uuid, computeMajor, computeMinor"
  "  FROM src.TARGET_INFO_GPU WHERE uuid NOT IN (SELECT uuid FROM main.TARGET_INFO_GPU);"
  "INSERT INTO main.TARGET_INFO_CUDA_DEVICE SELECT g.id, cudaId, pid, d.uuid,"
  "  numMultiprocessors FROM src.TARGET_INFO_CUDA_DEVICE d"
  "  LEFT JOIN main.TARGET_INFO_GPU g USING (uuid);";

static bool is_one_of(const char *name, const char *const list[]) {
  for (int i = 0; list[i]; i++) {
    if (strcmp(list[i], name) == 0) return true;
  }
  return false;
}

static int print_column(const struct schema_entry *c, char *sql, size_t size) {
  if (c->kind == SCHEMA_NAME || c->kind == SCHEMA_NEEDED_NAME) {
    const char *otherwise = c->kind == SCHEMA_NAME ? "NULL" : "0";
    return snprintf(sql,
                    size,
                    "ifnull((SELECT new FROM texts WHERE old = \"%s\"), %s)",
                    c->name,
                    otherwise);
  }
  if (is_one_of(c->name, times)) return snprintf(sql, size, "\"%s\" + epoch", c->name);
  if (is_one_of(c->name, ids)) return snprintf(sql, size, "\"%s\" + host", c->name);
  return snprintf(sql, size, "\"%s\"", c->name);
}

/* All rows of a table. The order of columns is ours in both files. */
static int copy_table(sqlite3 *db, const struct schema_entry *table) {
  char sql[2 * SCHEMA_SQL];
  int n = snprintf(sql, sizeof sql, "INSERT INTO main.%s SELECT ", table->name);
  for (const struct schema_entry *c = table + 1; c->kind != SCHEMA_TABLE; c++) {
    if (c > table + 1) n += snprintf(sql + n, sizeof sql - (size_t)n, ", ");
    n += print_column(c, sql + n, sizeof sql - (size_t)n);
  }
  snprintf(sql + n, sizeof sql - (size_t)n, " FROM src.%s, shift", table->name);
  return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static int copy_all(sqlite3 *db) {
  int rc = sqlite3_exec(db, prepare, NULL, NULL, NULL);
  for (int i = 0; schema_entry(i)->name && !rc; i++) {
    const struct schema_entry *e = schema_entry(i);
    if (e->kind == SCHEMA_TABLE && !is_one_of(e->name, special)) rc = copy_table(db, e);
  }
  return rc ? rc : sqlite3_exec(db, finish, NULL, NULL, NULL);
}

static int attach(sqlite3 *db, const char *from) {
  char *sql = sqlite3_mprintf("ATTACH %Q AS src", from);
  const int rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (rc) return rc;
  return sqlite3_exec(db, "SELECT 1 FROM src.NCLUA_LOST LIMIT 1", NULL, NULL, NULL);
}

/* "nothing in between": either the whole of `from` is added or none of it. */
static int merge(sqlite3 *db, const char *from) {
  int rc = sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
  if (!rc) rc = attach(db, from);
  if (!rc) rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
  if (!rc) rc = store_schema(db);
  if (!rc) rc = copy_all(db);
  return rc ? rc : sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
}

int merge_traces(const char *into, const char *from, char *why, size_t size) {
  sqlite3 *db = NULL;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  int rc = sqlite3_open_v2(into, &db, flags, NULL);
  if (!rc) rc = merge(db, from);
  if (rc)
    snprintf(why, size, "cannot add '%s' to '%s': %s", from, into, sqlite3_errmsg(db));
  sqlite3_close(db); /* rolls back what was not committed */
  return rc ? -1 : 0;
}
