#include "host/tuner.h"

#include "host/sandbox.h"

#include "plugins/tuner/abi.h"
#include "plugins/tuner/steer.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tuner {
  int users; /* its opener and the contexts: the code must outlive them all */
  void *handle;
  int version;
  const void *abi; /* struct abi_vN */
  const char *name;
  int (*force)(int func, int algorithm, int protocol, int channels);
  void (*report)(struct steer_report *out);
  void (*flush)(void);
};

struct tuner_context {
  struct tuner *tuner;
  void *context;
};

/* The plugin's logger has no context argument: the last one set is used. */
static tuner_log current_log;

static void forward(int level, unsigned long subsystem, const char *file, int line,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));

static void forward(int level, unsigned long subsystem, const char *file, int line,
                    const char *format, ...) {
  (void)subsystem, (void)file, (void)line;
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (current_log) current_log(level, text);
}

/* Newest first, as NCCL looks. */
static int find_abi(struct tuner *t) {
  char symbol[32];
  for (int version = 6; version >= 2; version--) {
    snprintf(symbol, sizeof symbol, "ncclTunerPlugin_v%d", version);
    t->abi = dlsym(t->handle, symbol);
    if (!t->abi) continue;
    t->version = version;
    t->name = *(const char *const *)t->abi; /* the first member of every version */
    return 0;
  }
  return -1;
}

/* dlsym gives an object pointer; POSIX says that it holds a function's as well. */
static void find_function(void *handle, const char *name, void *slot) {
  void *symbol = dlsym(handle, name);
  memcpy(slot, &symbol, sizeof symbol);
}

struct tuner *tuner_open(const char *path, struct err *e) {
  struct tuner *t = calloc(1, sizeof *t);
  if (!t) {
    err_set(e, "ENOMEM", "out of memory");
    return NULL;
  }
  t->users = 1;
  const int refused = sandbox_check_library(path, e);
  t->handle = refused ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (refused) {
    /* *e says it */
  } else if (!t->handle) {
    err_set(e, "no_library", "cannot open the plugin: %s", dlerror());
  } else if (find_abi(t)) {
    err_set(e, "no_symbol", "'%s' exports no ncclTunerPlugin_v2 to _v6", path);
  } else {
    find_function(t->handle, "nclua_tuner_force", &t->force);
    find_function(t->handle, "nclua_tuner_report", &t->report);
    find_function(t->handle, "nclua_tuner_flush", &t->flush);
    return t;
  }
  tuner_close(t);
  return NULL;
}

void tuner_close(struct tuner *t) {
  if (!t || --t->users) return;
  if (t->handle) dlclose(t->handle);
  free(t);
}

const char *tuner_name(const struct tuner *t) {
  return t->name ? t->name : "";
}

int tuner_version(const struct tuner *t) {
  return t->version;
}

/* The constants that version 5 may edit and the NVLink domain: neutral values, since there
   is no communicator behind the question. */
static int start_v5(const struct abi_v5 *abi, size_t ranks, size_t nodes, void **context) {
  int domain[3] = {1, (int)ranks, (int)ranks};
  double constants[1152 / sizeof(double)] = {0};
  return abi->init(context, 0, ranks, nodes, forward, domain, constants);
}

static int start(struct tuner_context *c, size_t ranks, size_t nodes) {
  const void *abi = c->tuner->abi;
  switch (c->tuner->version) {
    case 2: return ((const struct abi_v2 *)abi)->init(ranks, nodes, forward, &c->context);
    case 3: return ((const struct abi_v3 *)abi)->init(ranks, nodes, forward, &c->context);
    case 4: return ((const struct abi_v4 *)abi)->init(ranks, nodes, forward, &c->context);
    default: return start_v5(abi, ranks, nodes, &c->context);
  }
}

struct tuner_context *tuner_start(struct tuner *t, size_t ranks, size_t nodes,
                                  tuner_log log, struct err *e) {
  struct tuner_context *c = calloc(1, sizeof *c);
  if (!c) {
    err_set(e, "ENOMEM", "out of memory");
    return NULL;
  }
  c->tuner = t;
  current_log = log;
  int rc = start(c, ranks, nodes);
  if (!rc) {
    t->users++;
    return c;
  }
  err_set(e, "plugin", "the plugin's init returned %d", rc);
  free(c);
  return NULL;
}

void tuner_stop(struct tuner_context *c) {
  if (!c) return;
  const void *abi = c->tuner->abi;
  switch (c->tuner->version) {
    case 2: ((const struct abi_v2 *)abi)->destroy(c->context); break;
    case 3: ((const struct abi_v3 *)abi)->destroy(c->context); break;
    case 4: ((const struct abi_v4 *)abi)->destroy(c->context); break;
    default: ((const struct abi_v5 *)abi)->finalize(c->context); break;
  }
  tuner_close(c->tuner);
  free(c);
}

/* Version 2 names a cell instead of editing a table: NCCL makes that cell free. */
static int ask_v2(const struct abi_v2 *abi, void *context, struct tuner_question *q) {
  int algorithm = -1, protocol = -1;
  int rc = abi->get_coll_info(
    context, q->func, q->bytes, 0, 0, q->ops, &algorithm, &protocol, &q->channels);
  if (rc || algorithm < 0 || algorithm >= TUNER_ALGORITHMS || protocol < 0 ||
      protocol >= TUNER_PROTOCOLS) {
    return rc;
  }
  float *cell = &q->costs[algorithm * TUNER_PROTOCOLS + protocol];
  if (*cell >= 0) *cell = 0;
  return 0;
}

static int ask(struct tuner_context *c, struct tuner_question *q) {
  const void *abi = c->tuner->abi;
  float **table = (float **)(void *)q->costs;
  if (c->tuner->version == 2) return ask_v2(abi, c->context, q);
  if (c->tuner->version == 3) {
    return ((const struct abi_v3 *)abi)
      ->get_coll_info(c->context,
                      q->func,
                      q->bytes,
                      q->ops,
                      table,
                      TUNER_ALGORITHMS,
                      TUNER_PROTOCOLS,
                      &q->channels);
  }
  int (*get)(void *, int, size_t, int, float **, int, int, int, int *) =
    c->tuner->version == 4 ? ((const struct abi_v4 *)abi)->get_coll_info
                           : ((const struct abi_v5 *)abi)->get_coll_info;
  return get(c->context,
             q->func,
             q->bytes,
             q->ops,
             table,
             TUNER_ALGORITHMS,
             TUNER_PROTOCOLS,
             q->registered,
             &q->channels);
}

int tuner_ask(struct tuner_context *c, struct tuner_question *q, struct err *e) {
  q->channels = 0;
  int rc = ask(c, q);
  return rc ? err_set(e, "plugin", "the plugin returned %d", rc) : 0;
}

static int not_ours(const struct tuner *t, struct err *e) {
  return err_set(
    e, "ENOTSUP", "the plugin '%s' cannot be steered: it is not nclua's", tuner_name(t));
}

int tuner_force(struct tuner *t, int func, int algorithm, int protocol, int channels,
                struct err *e) {
  if (!t->force) return not_ours(t, e);
  if (!t->force(func, algorithm, protocol, channels)) return 0;
  return err_set(e, "EINVAL", "the plugin refuses this choice");
}

int tuner_report(struct tuner *t, struct tuner_counts *out, struct err *e) {
  if (!t->report) return not_ours(t, e);
  struct steer_report r;
  t->report(&r);
  *out = (struct tuner_counts){r.calls, r.forced, r.unavailable};
  return 0;
}

int tuner_flush(struct tuner *t, struct err *e) {
  if (!t->flush) return not_ours(t, e);
  t->flush();
  return 0;
}
