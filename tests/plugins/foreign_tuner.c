/* A tuner plugin as a stranger would write it: from the description of NCCL's ABI alone,
   with nothing of nclua. Built once for each version of the ABI.

   FOREIGN_TUNER says what it does: "tree" and "ring" make that algorithm's Simple free,
   "channels" asks for two channels too, "fail" fails each question, "raise" makes NVLS
   available, "refuse" fails the init, "slow_ring" (version 5) edits the constants. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef TUNER_VERSION
#define TUNER_VERSION 5
#endif

enum { TREE = 0, RING = 1, NVLS = 4, SIMPLE = 2, PROTOCOLS = 3 };
enum { OK = 0, SYSTEM_ERROR = 2, INTERNAL_ERROR = 3 };
enum { WARN = 2, INFO = 3, TUNING = 64 };

typedef void (*logger)(int level, unsigned long flags, const char *file, int line,
                       const char *format, ...);

static logger say;
static int contexts;

static int wants(const char *what) {
  const char *wish = getenv("FOREIGN_TUNER");
  return wish && strcmp(wish, what) == 0;
}

static int begin(void **context, size_t ranks, size_t nodes, logger given) {
  say = given;
  say(INFO, TUNING, __FILE__, __LINE__, "foreign: %zu ranks, %zu nodes", ranks, nodes);
  if (wants("refuse")) {
    say(WARN, TUNING, "foreign.c", 42, "foreign: I refuse");
    return SYSTEM_ERROR;
  }
  contexts++;
  *context = &contexts;
  return OK;
}

static int end(void *context) {
  contexts--;
  say(INFO, TUNING, __FILE__, __LINE__, "foreign: %d left", contexts);
  return context == &contexts ? OK : INTERNAL_ERROR;
}

static int choose(void *context, int func, size_t bytes, int ops, float *table,
                  int registered, int *channels) {
  int dead = 0;
  if (context != &contexts) return INTERNAL_ERROR;
  for (int i = 0; table && i < 7 * PROTOCOLS; i++) dead += table[i] == -1.0f;
  say(INFO,
      TUNING,
      __FILE__,
      __LINE__,
      "foreign: asked func %d bytes %zu ops %d reg %d channels %d dead %d",
      func,
      bytes,
      ops,
      registered,
      *channels,
      dead);
  if (wants("fail")) return INTERNAL_ERROR;
  if (wants("channels")) *channels = 2;
  if (!table) return OK;
  if (wants("raise")) table[NVLS * PROTOCOLS + SIMPLE] = 0;
  if (wants("tree") || wants("channels")) table[TREE * PROTOCOLS + SIMPLE] = 0;
  if (wants("ring")) table[RING * PROTOCOLS + SIMPLE] = 0;
  return OK;
}

#if TUNER_VERSION == 2

static int init(size_t ranks, size_t nodes, logger given, void **context) {
  return begin(context, ranks, nodes, given);
}

static int get(void *context, int func, size_t bytes, int collnet, int nvls, int ops,
               int *algorithm, int *protocol, int *channels) {
  int rc = choose(context, func, bytes, ops, NULL, -1, channels);
  if (rc || collnet || nvls) return rc;
  if (wants("tree") || wants("channels")) *algorithm = TREE, *protocol = SIMPLE;
  if (wants("ring")) *algorithm = RING, *protocol = SIMPLE;
  return OK;
}

__attribute__((visibility("default"))) const struct {
  const char *name;
  int (*init)(size_t, size_t, logger, void **);
  int (*get)(void *, int, size_t, int, int, int, int *, int *, int *);
  int (*destroy)(void *);
} ncclTunerPlugin_v2 = {"foreign", init, get, end};

#elif TUNER_VERSION == 3

static int init(size_t ranks, size_t nodes, logger given, void **context) {
  return begin(context, ranks, nodes, given);
}

static int get(void *context, int func, size_t bytes, int ops, float **table,
               int algorithms, int protocols, int *channels) {
  if (algorithms != 7 || protocols != PROTOCOLS) return INTERNAL_ERROR;
  return choose(context, func, bytes, ops, (float *)(void *)table, -1, channels);
}

__attribute__((visibility("default"))) const struct {
  const char *name;
  int (*init)(size_t, size_t, logger, void **);
  int (*get)(void *, int, size_t, int, float **, int, int, int *);
  int (*destroy)(void *);
} ncclTunerPlugin_v3 = {"foreign", init, get, end};

#elif TUNER_VERSION == 4 || TUNER_VERSION == 5

static int get(void *context, int func, size_t bytes, int ops, float **table,
               int algorithms, int protocols, int registered, int *channels) {
  if (algorithms != 7 || protocols != PROTOCOLS) return INTERNAL_ERROR;
  return choose(context, func, bytes, ops, (float *)(void *)table, registered, channels);
}

#if TUNER_VERSION == 4

static int init(size_t ranks, size_t nodes, logger given, void **context) {
  return begin(context, ranks, nodes, given);
}

__attribute__((visibility("default"))) const struct {
  const char *name;
  int (*init)(size_t, size_t, logger, void **);
  int (*get)(void *, int, size_t, int, float **, int, int, int, int *);
  int (*destroy)(void *);
} ncclTunerPlugin_v4 = {"foreign", init, get, end};

#else

struct domain {
  int domains, least, most;
};
struct constants {
  double base[7][3], hardware[3][7][3];
  double llMax[4][3], ringLL128[4][3], treeLL128[4][3], tree[4][3], nvlsTree[4][3];
};

static int init(void **context, uint64_t comm, size_t ranks, size_t nodes, logger given,
                struct domain *domain, struct constants *c) {
  int rc = begin(context, ranks, nodes, given);
  say(INFO,
      TUNING,
      __FILE__,
      __LINE__,
      "foreign: comm 0x%llx domains %d %d %d",
      (unsigned long long)comm,
      domain->domains,
      domain->least,
      domain->most);
  for (int p = 0; p < PROTOCOLS && wants("slow_ring"); p++) c->base[RING][p] += 5000;
  return rc;
}

__attribute__((visibility("default"))) const struct {
  const char *name;
  int (*init)(void **, uint64_t, size_t, size_t, logger, struct domain *,
              struct constants *);
  int (*get)(void *, int, size_t, int, float **, int, int, int, int *);
  int (*finalize)(void *);
} ncclTunerPlugin_v5 = {"foreign", init, get, end};

#endif
#else
#error "TUNER_VERSION is 2 to 5"
#endif
