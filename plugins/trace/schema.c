/* The tables and enumerations of a trace file. */
#include "plugins/trace/schema.h"

#include "plugins/trace/store.h"

#include <stdio.h>
#include <string.h>

static const struct schema_entry entries[] = {
#define TABLE(table, title) {title, SCHEMA_TABLE},
#define COLUMN(table, column, kind) {#column, SCHEMA_##kind},
#include "plugins/trace/tables.def"
  {NULL, SCHEMA_TABLE},
};

static const char *const types[] = {
  [SCHEMA_INTEGER] = "INTEGER",
  [SCHEMA_NEEDED] = "INTEGER NOT NULL",
  [SCHEMA_REAL] = "REAL",
  [SCHEMA_TEXT] = "TEXT",
  [SCHEMA_NEEDED_TEXT] = "TEXT NOT NULL",
  [SCHEMA_NAME] = "INTEGER",
  [SCHEMA_NEEDED_NAME] = "INTEGER NOT NULL",
};

/* What numbers of CUPTI mean, under the names that Nsight Systems gives the tables. */
static const char enumerations[] =
  "CREATE TABLE IF NOT EXISTS StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT);"
  "CREATE TABLE IF NOT EXISTS ENUM_CUDA_MEMCPY_OPER("
  "  id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);"
  "INSERT OR IGNORE INTO ENUM_CUDA_MEMCPY_OPER VALUES"
  " (0,'CUDA_MEMCPY_KIND_UNKNOWN','Unknown'),(1,'CUDA_MEMCPY_KIND_HTOD','Host-to-Device'),"
  " (2,'CUDA_MEMCPY_KIND_DTOH','Device-to-Host'),"
  " (3,'CUDA_MEMCPY_KIND_HTOA','Host-to-Array'),"
  " (4,'CUDA_MEMCPY_KIND_ATOH','Array-to-Host'),"
  " (5,'CUDA_MEMCPY_KIND_ATOA','Array-to-Array'),"
  " (6,'CUDA_MEMCPY_KIND_ATOD','Array-to-Device'),"
  " (7,'CUDA_MEMCPY_KIND_DTOA','Device-to-Array'),"
  " (8,'CUDA_MEMCPY_KIND_DTOD','Device-to-Device'),"
  " (9,'CUDA_MEMCPY_KIND_HTOH','Host-to-Host'),"
  " (10,'CUDA_MEMCPY_KIND_PTOP','Peer-to-Peer');"
  "CREATE TABLE IF NOT EXISTS ENUM_CUDA_MEM_KIND("
  "  id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);"
  "INSERT OR IGNORE INTO ENUM_CUDA_MEM_KIND VALUES"
  " (0,'CUDA_MEMOPR_MEMORY_KIND_UNKNOWN','Unknown'),"
  " (1,'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE','Pageable'),"
  " (2,'CUDA_MEMOPR_MEMORY_KIND_PINNED','Pinned'),"
  " (3,'CUDA_MEMOPR_MEMORY_KIND_DEVICE','Device'),"
  " (4,'CUDA_MEMOPR_MEMORY_KIND_ARRAY','Array'),"
  " (5,'CUDA_MEMOPR_MEMORY_KIND_MANAGED','Managed'),"
  " (6,'CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC','Device Static'),"
  " (7,'CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC','Managed Static');"
  "CREATE TABLE IF NOT EXISTS ENUM_CUDA_KERNEL_LAUNCH_TYPE("
  "  id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);"
  "INSERT OR IGNORE INTO ENUM_CUDA_KERNEL_LAUNCH_TYPE VALUES"
  " (0,'CUDA_KERNEL_LAUNCH_TYPE_REGULAR','Regular'),"
  " (1,'CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE','Cooperative Single Device'),"
  " (2,'CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_MULTI_DEVICE','Cooperative Multi Device');"
  "CREATE TABLE IF NOT EXISTS ENUM_NSYS_EVENT_TYPE("
  "  id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);"
  "INSERT OR IGNORE INTO ENUM_NSYS_EVENT_TYPE VALUES"
  " (33,'NvtxCategory','NVTX Category'),(34,'NvtxMark','NVTX Mark'),"
  " (39,'NvtxThread','NVTX Thread'),(59,'NvtxPushPopRange','NVTX Push/Pop Range'),"
  " (60,'NvtxStartEndRange','NVTX Start/End Range'),"
  " (75,'NvtxDomainCreate','NVTX Domain Create'),"
  " (76,'NvtxDomainDestroy','NVTX Domain Destroy');"
  /* A GPU's clock against the host's: no report can precede what it reports. */
  "CREATE VIEW IF NOT EXISTS NCCL_CHANNEL_TIMES AS"
  "  SELECT c.*, c.gpuStart + o.shift AS kernelStart, c.gpuEnd + o.shift AS kernelEnd"
  "  FROM NCCL_KERNEL_CHANNEL c JOIN (SELECT globalPid, min(end - gpuEnd) AS shift"
  "    FROM NCCL_KERNEL_CHANNEL WHERE gpuEnd > 0 GROUP BY globalPid) o USING (globalPid);"
  /* From a collective, as NCCL tells it (from 2.28 on), to the kernel that did it: by the
     group that launched it, and the driver's call within that launch on that thread. The
     slack is what two readings of the clock may differ by. */
  "CREATE VIEW IF NOT EXISTS NCCL_COLL_KERNELS AS"
  "  SELECT c.*, l.start AS launchStart, l.end AS launchEnd, k.start AS kernelStart,"
  "    k.end AS kernelEnd, k.gridX, k.blockX, k.deviceId, k.streamId, k.correlationId,"
  "    k.shortName"
  "  FROM NCCL_COLL c"
  "  JOIN NCCL_API a ON a.id = c.parentId AND a.globalPid = c.globalPid"
  "  JOIN NCCL_KERNEL_LAUNCH l ON l.parentId = a.parentId AND l.globalPid = a.globalPid"
  "  JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.globalTid = l.globalTid"
  "    AND r.start BETWEEN l.start - 2000 AND l.end + 2000"
  "  JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.correlationId = r.correlationId"
  "    AND k.globalPid = l.globalPid GROUP BY c.globalPid, c.id, k.rowid;";

const struct schema_entry *schema_entry(int index) {
  return &entries[index];
}

/* CREATE TABLE, or INSERT with a parameter a column. Names are quoted: END is a keyword. */
static void print_table(const struct schema_entry *table, int is_insert, char *sql,
                        size_t size) {
  int n = snprintf(sql,
                   size,
                   is_insert ? "INSERT INTO %s VALUES(" : "CREATE TABLE IF NOT EXISTS %s(",
                   table->name);
  for (const struct schema_entry *c = table + 1; c->kind != SCHEMA_TABLE; c++) {
    const char *comma = c == table + 1 ? "" : ",";
    const size_t left = size - (size_t)n;
    n += is_insert ? snprintf(sql + n, left, "%s?", comma)
                   : snprintf(sql + n, left, "%s\"%s\" %s", comma, c->name, types[c->kind]);
  }
  snprintf(sql + n, size - (size_t)n, ")");
}

int schema_prepare(sqlite3 *db, const struct schema_entry *table, sqlite3_stmt **out) {
  char sql[SCHEMA_SQL];
  print_table(table, 1, sql, sizeof sql);
  return sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
}

int store_schema(sqlite3 *db) {
  char sql[SCHEMA_SQL];
  int rc = SQLITE_OK;
  for (const struct schema_entry *e = entries; e->name && !rc; e++) {
    if (e->kind != SCHEMA_TABLE) continue;
    print_table(e, 0, sql, sizeof sql);
    rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  }
  return rc ? rc : sqlite3_exec(db, enumerations, NULL, NULL, NULL);
}
