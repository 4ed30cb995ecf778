/* NCCL's profiler plugin: NCCL_PROFILER_PLUGIN names this file, NCCL tells what it does,
   and it becomes rows of the process's trace. */
#include "plugins/profiler/abi.h"
#include "plugins/profiler/describe.h"
#include "plugins/trace/tracer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What each version can tell: all but the proxy's own rest and work, which is noise. */
enum { V1 = 63, V3 = 255, V5 = 4095, V6 = 32767 };

/* What NCLUA_PROFILER_EVENTS may name. */
static const struct {
  const char *word;
  int mask;
} choices[] = {
  {"group", ABI_GROUP | ABI_GROUP_API},
  {"coll", ABI_COLL | ABI_COLL_API | ABI_CE_COLL},
  {"p2p", ABI_P2P | ABI_P2P_API},
  {"launch", ABI_KERNEL_LAUNCH},
  {"kernel", ABI_KERNEL_CHANNEL},
  {"proxy", ABI_PROXY_OP | ABI_CE_SYNC | ABI_CE_BATCH},
  {"step", ABI_PROXY_STEP},
  {"net", ABI_NET},
  {"control", ABI_PROXY_CONTROL},
};

struct comm {
  int64_t id;
  int abi;
};

static int chosen(void) {
  const char *list = getenv("NCLUA_PROFILER_EVENTS");
  int mask = 0;
  if (!list || !*list) return V6 & ~ABI_PROXY_CONTROL;
  for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
    const size_t length = strlen(choices[i].word);
    for (const char *at = list; (at = strstr(at, choices[i].word)); at += length) {
      const int begins = at == list || at[-1] == ',';
      if (begins && (at[length] == ',' || !at[length])) mask |= choices[i].mask;
    }
  }
  return mask;
}

static struct comm *new_comm(int abi) {
  static int64_t last; /* atomic */
  struct comm *c = malloc(sizeof *c);
  if (!c) return NULL;
  *c = (struct comm){__atomic_add_fetch(&last, 1, __ATOMIC_RELAXED), abi};
  return c;
}

/* Without a trace nothing is asked for, and the plugin costs nothing. The mask is one for
   all communicators of the process: NCCL starts it at 0. */
static int begin(void **context, int *mask, int abi, int most) {
  *context = new_comm(abi);
  if (!*context) return 2; /* ncclSystemError: NCCL goes on without a profiler */
  *mask = tracer_writer() ? chosen() & most : 0;
  return 0;
}

struct about {
  const char *name;
  uint64_t hash;
  int nodes, ranks, rank;
};

static void put_comm(const struct comm *c, const struct about *a) {
  char hash[24];
  struct writer *w = tracer_writer();
  if (!w) return;
  snprintf(hash, sizeof hash, "0x%" PRIx64, a->hash);
  struct trace_row row = {.table = TRACE_COMM};
  PUT(&row, COMM, globalPid, writer_session(w)->global_pid);
  PUT(&row, COMM, commId, c->id);
  PUT_TEXT(&row, COMM, commHash, hash);
  PUT_TEXT(&row, COMM, name, a->name);
  PUT(&row, COMM, rank, a->rank);
  PUT(&row, COMM, ranks, a->ranks);
  PUT(&row, COMM, nodes, a->nodes);
  PUT(&row, COMM, abi, c->abi);
  writer_put(w, &row);
}

static int init_v1(void **context, int *mask) {
  return begin(context, mask, 1, V1);
}

static int init_v2(void **context, int *mask) {
  return begin(context, mask, 2, V1);
}

static int init_v3(void **context, int *mask) {
  return begin(context, mask, 3, V3);
}

static int init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes,
                   int ranks, int rank, abi_logger logger) {
  (void)logger;
  const int rc = begin(context, mask, 4, V3);
  if (!rc) put_comm(*context, &(struct about){name, hash, nodes, ranks, rank});
  return rc;
}

static int init_v5(void **context, uint64_t id, int *mask, const char *name, int nodes,
                   int ranks, int rank, abi_logger logger) {
  (void)logger;
  const int rc = begin(context, mask, 5, V5);
  if (!rc) put_comm(*context, &(struct about){name, id, nodes, ranks, rank});
  return rc;
}

static int init_v6(void **context, uint64_t id, int *mask, const char *name, int nodes,
                   int ranks, int rank, abi_logger logger) {
  (void)logger;
  const int rc = begin(context, mask, 6, V6);
  if (!rc) put_comm(*context, &(struct about){name, id, nodes, ranks, rank});
  return rc;
}

static uint64_t type_of(const void *descriptor, int abi) {
  if (abi >= 5) return ((const struct abi_head_v5 *)descriptor)->type;
  return ((const struct abi_head_v1 *)descriptor)->type;
}

static int start(void *context, void **handle, void *descriptor) {
  const struct comm *c = context;
  struct writer *w = tracer_current();
  *handle = NULL;
  if (!w || !c) return 0;
  const struct describe_from from = {writer_session(w), tracer_time(w), c->id};
  struct event *e = event_new();
  if (!e) {
    writer_lost(w, "NCCL events", 1);
    return 0;
  }
  e->abi = c->abi;
  e->type = type_of(descriptor, c->abi);
  if (!describe_start(e, descriptor, &from)) {
    event_free(e);
    return 0;
  }
  *handle = event_handle(e);
  event_unlock(e);
  return 0;
}

static int stop(void *handle) {
  struct event *e = event_lock(handle);
  if (!e) return 0;
  struct writer *w = tracer_current();
  if (w) {
    describe_end(e, tracer_time(w));
    writer_put(w, &e->row);
  }
  event_free(e);
  return 0;
}

static int record(void *handle, int state, void *arguments) {
  struct event *e = event_lock(handle);
  if (!e) return 0;
  struct writer *w = tracer_current();
  if (w) describe_state(e, state, arguments, tracer_time(w));
  event_unlock(e);
  return 0;
}

static int finalize(void *context) {
  free(context);
  return 0;
}

#define EXPORTED __attribute__((visibility("default")))

extern const struct abi_v1 ncclProfiler_v1, ncclProfiler_v2, ncclProfiler_v3;
extern const struct abi_v4 ncclProfiler_v4;
extern const struct abi_v5 ncclProfiler_v5, ncclProfiler_v6;

EXPORTED const struct abi_v1 ncclProfiler_v1 = {
  "nclua", init_v1, start, stop, record, finalize};
EXPORTED const struct abi_v1 ncclProfiler_v2 = {
  "nclua", init_v2, start, stop, record, finalize};
EXPORTED const struct abi_v1 ncclProfiler_v3 = {
  "nclua", init_v3, start, stop, record, finalize};
EXPORTED const struct abi_v4 ncclProfiler_v4 = {
  "nclua", init_v4, start, stop, record, finalize};
EXPORTED const struct abi_v5 ncclProfiler_v5 = {
  "nclua", init_v5, start, stop, record, finalize};
EXPORTED const struct abi_v5 ncclProfiler_v6 = {
  "nclua", init_v6, start, stop, record, finalize};
