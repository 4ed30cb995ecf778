#include "plugins/trace/store.h"

#include "plugins/trace/demangle.h"
#include "plugins/trace/schema.h"
#include "plugins/trace/strings.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

struct store {
  sqlite3 *db;
  struct session session;
  sqlite3_stmt *insert[TRACE_TABLES], *insert_string;
  int first[TRACE_TABLES]; /* the table's entry in the schema */
  struct strings strings;
  bool in_transaction;
  int64_t failures;
  char error[256];
};

/* Readers see a whole transaction or none of it, and a killed program leaves what it
   committed: that is the kernel's page cache at work, so nothing waits for a disk. */
static const char settings[] = "PRAGMA page_size = 8192;"
                               "PRAGMA journal_mode = WAL;"
                               "PRAGMA synchronous = OFF;"
                               "PRAGMA wal_autocheckpoint = 4000;"
                               "PRAGMA temp_store = MEMORY;"
                               "PRAGMA cache_size = -8000;";

static void note_failure(struct store *s) {
  s->failures++;
  if (!s->error[0]) snprintf(s->error, sizeof s->error, "%s", sqlite3_errmsg(s->db));
}

static int prepare_all(struct store *s) {
  int rc = SQLITE_OK, table = 0;
  for (int i = 0; schema_entry(i)->name && !rc; i++) {
    if (schema_entry(i)->kind != SCHEMA_TABLE) continue;
    s->first[table] = i;
    rc = schema_prepare(s->db, schema_entry(i), &s->insert[table++]);
  }
  if (rc) return rc;
  return sqlite3_prepare_v3(s->db,
                            "INSERT INTO StringIds VALUES(?,?)",
                            -1,
                            SQLITE_PREPARE_PERSISTENT,
                            &s->insert_string,
                            NULL);
}

static void run(struct store *s, const char *sql) {
  if (sqlite3_exec(s->db, sql, NULL, NULL, NULL)) note_failure(s);
}

static void begin(struct store *s) {
  if (s->in_transaction) return;
  run(s, "BEGIN");
  s->in_transaction = true;
}

void store_commit(struct store *s) {
  if (s->in_transaction) run(s, "COMMIT");
  s->in_transaction = false;
}

int64_t store_intern(struct store *s, const char *text) {
  struct strings_entry *e = strings_find(&s->strings, text);
  if (!e) return 0;
  if (e->id) return e->id;
  e->id = (int64_t)s->strings.count; /* from 1: 0 could be a missing one */
  begin(s);
  sqlite3_bind_int64(s->insert_string, 1, e->id);
  sqlite3_bind_text(s->insert_string, 2, text, -1, SQLITE_STATIC);
  if (sqlite3_step(s->insert_string) != SQLITE_DONE) note_failure(s);
  sqlite3_reset(s->insert_string);
  return e->id;
}

struct store_names store_kernel_names(struct store *s, const char *mangled) {
  struct strings_entry *e = strings_find(&s->strings, mangled);
  if (!e || !e->brief) {
    char brief[512], *declaration = demangle(mangled);
    const char *shown = declaration ? declaration : mangled;
    demangle_brief(shown, brief, sizeof brief);
    const int64_t ids[] = {
      store_intern(s, mangled), store_intern(s, shown), store_intern(s, brief)};
    free(declaration);
    e = strings_find(&s->strings, mangled);
    if (!e) return (struct store_names){0};
    e->demangled = ids[1];
    e->brief = ids[2];
  }
  return (struct store_names){e->id, e->demangled, e->brief};
}

static void bind(struct store *s, sqlite3_stmt *stmt, int at, enum schema_kind kind,
                 const union trace_cell *cell, bool is_text) {
  const bool is_name = kind == SCHEMA_NAME || kind == SCHEMA_NEEDED_NAME;
  if (is_text && !cell->s)
    sqlite3_bind_null(stmt, at);
  else if (is_text && is_name)
    sqlite3_bind_int64(stmt, at, store_intern(s, cell->s));
  else if (is_text)
    sqlite3_bind_text(stmt, at, cell->s, -1, SQLITE_STATIC);
  else if (kind == SCHEMA_REAL)
    sqlite3_bind_double(stmt, at, cell->d);
  else
    sqlite3_bind_int64(stmt, at, cell->i);
}

static void bind_unset(sqlite3_stmt *stmt, int at, enum schema_kind kind) {
  if (kind == SCHEMA_NEEDED || kind == SCHEMA_NEEDED_NAME)
    sqlite3_bind_int64(stmt, at, 0);
  else if (kind == SCHEMA_NEEDED_TEXT)
    sqlite3_bind_text(stmt, at, "", 0, SQLITE_STATIC);
  else
    sqlite3_bind_null(stmt, at);
}

void store_insert(struct store *s, const struct trace_row *row) {
  sqlite3_stmt *stmt = s->insert[row->table];
  const struct schema_entry *column = schema_entry(s->first[row->table] + 1);
  begin(s);
  for (int i = 0; column[i].kind != SCHEMA_TABLE; i++) {
    if (row->set & 1u << i)
      bind(s, stmt, i + 1, column[i].kind, &row->cell[i], row->texts & 1u << i);
    else
      bind_unset(stmt, i + 1, column[i].kind);
  }
  if (sqlite3_step(stmt) != SQLITE_DONE) note_failure(s);
  sqlite3_reset(stmt);
}

const char *store_error(const struct store *s) {
  return s->error;
}

int64_t store_failures(const struct store *s) {
  return s->failures;
}

static void write_start(struct store *s) {
  char utc[64], local[64];
  struct tm tm;
  const time_t seconds = (time_t)(s->session.start_ns / 1000000000);
  strftime(utc, sizeof utc, "%Y-%m-%d %H:%M:%S", gmtime_r(&seconds, &tm));
  strftime(local, sizeof local, "%Y-%m-%d %H:%M:%S", localtime_r(&seconds, &tm));
  struct trace_row row = {.table = TRACE_SESSION};
  PUT(&row, SESSION, utcEpochNs, s->session.start_ns);
  PUT_TEXT(&row, SESSION, utcTime, utc);
  PUT_TEXT(&row, SESSION, localTime, local);
  store_insert(s, &row);
}

static void write_process(struct store *s) {
  char path[4096] = "";
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  struct trace_row row = {.table = TRACE_PROCESS};
  PUT(&row, PROCESS, globalPid, s->session.global_pid);
  PUT(&row, PROCESS, pid, getpid());
  PUT_TEXT(&row, PROCESS, name, path);
  store_insert(s, &row);
}

static void write_fact(struct store *s, const char *name, const char *value) {
  struct trace_row row = {.table = TRACE_SYSTEM};
  PUT(&row, SYSTEM, globalVid, 0); /* merging tells hosts apart by it */
  PUT_TEXT(&row, SYSTEM, devStateName, "TargetInfo");
  PUT_TEXT(&row, SYSTEM, name, name);
  PUT_TEXT(&row, SYSTEM, value, value);
  store_insert(s, &row);
}

static void write_about(struct store *s) {
  static const char *const rows[][2] = {{"EXPORT_PRODUCT_NAME", "nclua"},
                                        {"EXPORT_SCHEMA_VERSION", "3.15.1"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct trace_row row = {.table = TRACE_EXPORT};
    PUT_TEXT(&row, EXPORT, name, rows[i][0]);
    PUT_TEXT(&row, EXPORT, value, rows[i][1]);
    store_insert(s, &row);
  }
  struct utsname u;
  if (uname(&u)) return;
  write_fact(s, "Hostname", u.nodename);
  write_fact(s, "OS", u.sysname);
  write_fact(s, "KernelVersion", u.release);
  write_fact(s, "CpuArchitecture", u.machine);
}

/* Only a trace, or an empty file, is replaced: a name given by mistake costs nothing. */
static bool may_replace(const char *path) {
  struct stat st;
  if (stat(path, &st) || st.st_size == 0) return true;
  sqlite3 *db = NULL;
  sqlite3_stmt *stmt = NULL;
  const char sql[] = "SELECT 1 FROM sqlite_master WHERE name = 'NCLUA_LOST'";
  const bool is_trace = !sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) &&
                        !sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) &&
                        sqlite3_step(stmt) == SQLITE_ROW;
  sqlite3_finalize(stmt);
  sqlite3_close(db);
  return is_trace;
}

static void delete_old(const char *path) {
  char companion[4200];
  static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    snprintf(companion, sizeof companion, "%s%s", path, endings[i]);
    unlink(companion);
  }
}

int store_delete(const char *path) {
  if (!may_replace(path)) return -1;
  delete_old(path);
  return 0;
}

static int open_database(struct store *s, const char *path) {
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  int rc = sqlite3_open_v2(path, &s->db, flags, NULL);
  if (!rc) rc = sqlite3_busy_timeout(s->db, 2000); /* a reader's checkpoint */
  if (!rc) rc = sqlite3_exec(s->db, settings, NULL, NULL, NULL);
  if (!rc) rc = sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL);
  if (!rc) rc = store_schema(s->db);
  if (!rc) rc = sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
  return rc ? rc : prepare_all(s);
}

struct store *store_open(const char *path, const struct session *session, char *why,
                         size_t size) {
  struct store *s = calloc(1, sizeof *s);
  if (!s) {
    snprintf(why, size, "out of memory");
    return NULL;
  }
  s->session = *session;
  if (store_delete(path)) {
    snprintf(why, size, "'%s' exists and is not a trace", path);
    free(s);
    return NULL;
  }
  if (open_database(s, path)) {
    snprintf(why, size, "cannot write '%s': %s", path, sqlite3_errmsg(s->db));
    store_close(s);
    return NULL;
  }
  write_start(s);
  write_process(s);
  write_about(s);
  store_commit(s);
  return s;
}

void store_close(struct store *s) {
  if (s->db) store_commit(s);
  for (int i = 0; i < TRACE_TABLES; i++) sqlite3_finalize(s->insert[i]);
  sqlite3_finalize(s->insert_string);
  /* A file without companions can be copied, and read where nothing can be written. */
  if (s->db) sqlite3_exec(s->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
  sqlite3_close(s->db);
  strings_free(&s->strings);
  free(s);
}
