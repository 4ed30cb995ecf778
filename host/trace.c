#include "host/trace.h"

#include "host/backend.h"
#include "host/sandbox.h"
#include "host/trace_cpu.h"
#include "host/trace_plugin.h"
#include "plugins/trace/merge.h"
#include "plugins/trace/store.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct plugin {
  void *handle;
  int (*start)(const char *path, char *why, size_t size);
  int (*stop)(char *why, size_t size);
  void (*push)(const char *text);
  void (*pop)(void);
};

static struct {
  bool is_asked; /* trace_start was called, trace_stop not yet */
  bool is_shared, has_collectives;
  pid_t owner;  /* who was asked; ranks are its forks */
  pid_t writer; /* the process that has opened its file, 0: none yet */
  char path[PATH_MAX];
  char own[PATH_MAX];     /* this process's */
  struct session session; /* from trace_start on, for a file that no device opened */
  struct device_api *api;
  struct plugin plugin;
} trace;

static CUresult push_plugin(const char *text) {
  trace.plugin.push(text);
  return CUDA_SUCCESS;
}

static CUresult pop_plugin(void) {
  trace.plugin.pop();
  return CUDA_SUCCESS;
}

static int open_plugin(struct plugin *p, struct err *e) {
  char path[PATH_MAX];
  if (p->handle) return 0;
  if (trace_plugin_path(path, sizeof path, e)) return -1;
  p->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!p->handle) return err_set(e, "no_library", "cannot open '%s': %s", path, dlerror());
  const struct {
    const char *name;
    void *slot;
  } symbols[] = {{"nclua_trace_start", &p->start},
                 {"nclua_trace_stop", &p->stop},
                 {"nclua_trace_push", &p->push},
                 {"nclua_trace_pop", &p->pop}};
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *symbol = dlsym(p->handle, symbols[i].name);
    if (!symbol) return err_set(e, "no_symbol", "'%s' lacks '%s'", path, symbols[i].name);
    memcpy(symbols[i].slot, &symbol, sizeof symbol);
  }
  return 0;
}

/* A rank's file is the parent's with its process number; the owner's has the name itself.
 */
static int name_own(struct err *e) {
  int n;
  if (trace.is_shared) {
    n = session_name(trace.path, trace.own, sizeof trace.own) ? PATH_MAX : 0;
  } else if (getpid() == trace.owner) {
    n = snprintf(trace.own, sizeof trace.own, "%s", trace.path);
  } else {
    n = snprintf(trace.own, sizeof trace.own, "%s.%d", trace.path, (int)getpid());
  }
  if (n < PATH_MAX) return 0;
  return err_set(e, "ENAMETOOLONG", "the name '%.64s...' is too long", trace.path);
}

static void stop_at_exit(void) {
  struct err e;
  if (trace_stop(&e)) fprintf(stderr, "nclua: %s\n", e.text);
}

static int open_cuda(struct device_api *api, struct err *e) {
  char why[512];
  if (open_plugin(&trace.plugin, e)) return -1;
  if (trace.plugin.start(trace.own, why, sizeof why)) return err_set(e, "trace", "%s", why);
  static bool is_stopping_in_time;
  if (!is_stopping_in_time) atexit(stop_at_exit); /* before CUPTI's own end */
  is_stopping_in_time = true;
  if (api->range_push) return 0; /* there is a collector of ranges already */
  api->range_push = push_plugin;
  api->range_pop = pop_plugin;
  return 0;
}

/* This process begins to write. */
static int open_own(struct device_api *api, struct err *e) {
  if (name_own(e)) return -1;
  if (api == &cpu_device ? trace_cpu_start(api, trace.own, e) : open_cuda(api, e))
    return -1;
  trace.writer = getpid();
  return 0;
}

int trace_attach(struct device_api *api, struct err *e) {
  trace.api = api;
  return trace.is_asked && trace.writer != getpid() ? open_own(api, e) : 0;
}

/* CUDA's injection records this process already: the driver has been told to. */
static bool is_injected(void) {
  const char *library = getenv("CUDA_INJECTION64_PATH");
  return trace.is_shared && library && *library && strcmp(backend_name(), "cuda") == 0;
}

int trace_start(const struct trace_options *o, struct err *e) {
  static bool is_stopping_at_exit;
  if (trace.is_asked) return err_set(e, "busy", "a trace is running already");
  if (sandbox_check_path(o->path, true, e)) return -1;
  if (snprintf(trace.path, sizeof trace.path, "%s", o->path) >= PATH_MAX) {
    return err_set(e, "ENAMETOOLONG", "the name '%.64s...' is too long", o->path);
  }
  trace.is_shared = o->is_shared;
  trace.has_collectives = o->has_collectives;
  if (is_injected()) return 0;
  if (!o->is_shared && trace_prepare(trace.path, e)) return -1;
  trace.session = session_new();
  trace.owner = getpid();
  trace.writer = 0;
  if (trace.api && open_own(trace.api, e)) return -1;
  trace.is_asked = true;
  if (!is_stopping_at_exit) atexit(stop_at_exit);
  is_stopping_at_exit = true;
  return 0;
}

bool trace_wants_collectives(void) {
  return trace.has_collectives;
}

static int close_own(struct err *e) {
  char why[256] = "";
  if (trace.writer != getpid()) return 0;
  trace.writer = 0;
  if (trace.api == &cpu_device)
    trace_cpu_stop(trace.api, why, sizeof why);
  else
    trace.plugin.stop(why, sizeof why);
  return why[0] ? err_set(e, "trace", "'%s' is not complete: %s", trace.own, why) : 0;
}

int trace_merge(const char *into, const char *from, struct err *e) {
  char why[512];
  return merge_traces(into, from, why, sizeof why) ? err_set(e, "trace", "%s", why) : 0;
}

/* Parts are PATH.PID. */
static bool is_part(const char *file, const char *path) {
  const char *digits = file + strlen(path) + 1;
  return *digits && digits[strspn(digits, "0123456789")] == '\0';
}

static int find_parts(const char *path, glob_t *found) {
  char pattern[PATH_MAX + 16];
  snprintf(pattern, sizeof pattern, "%s.[0-9]*", path);
  return glob(pattern, 0, NULL, found);
}

/* A part that cannot be taken in stays where it is. */
int trace_merge_parts(const char *path, struct err *e) {
  glob_t found;
  int rc = 0;
  if (find_parts(path, &found)) return 0;
  for (size_t i = 0; i < found.gl_pathc; i++) {
    const char *part = found.gl_pathv[i];
    if (!is_part(part, path)) continue;
    if (trace_merge(path, part, e))
      rc = -1;
    else
      store_delete(part);
  }
  globfree(&found);
  return rc;
}

int trace_prepare(const char *path, struct err *e) {
  glob_t found;
  if (store_delete(path))
    return err_set(e, "EEXIST", "'%s' exists and is not a trace", path);
  if (find_parts(path, &found)) return 0;
  for (size_t i = 0; i < found.gl_pathc; i++) {
    if (is_part(found.gl_pathv[i], path)) store_delete(found.gl_pathv[i]);
  }
  globfree(&found);
  return 0;
}

/* A trace of a process that never used a device is an empty one. */
static int make_empty(struct err *e) {
  char why[512];
  struct store *store = store_open(trace.path, &trace.session, why, sizeof why);
  if (!store) return err_set(e, "trace", "%s", why);
  store_close(store);
  return 0;
}

int trace_stop(struct err *e) {
  if (!trace.is_asked) return 0;
  const bool was_open = trace.writer == getpid();
  trace.is_asked = trace.has_collectives = false;
  if (close_own(e)) return -1;
  if (trace.is_shared || trace.owner != getpid()) return 0;
  if (!was_open && make_empty(e)) return -1;
  return trace_merge_parts(trace.path, e);
}

bool trace_holds(const char *path) {
  struct stat a, b;
  return trace.writer == getpid() && trace.api != &cpu_device && !stat(path, &a) &&
         !stat(trace.own, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

const char *trace_path(void) {
  return trace.is_asked && !trace.is_shared ? trace.path : NULL;
}
