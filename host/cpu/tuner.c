#include "host/cpu/tuner.h"
#include "host/cpu/fail.h"
#include "host/cpu/log.h"
#include "host/cpu/tuner_library.h"
#include "plugins/tuner/abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define TOPIC (CPU_LOG_INIT | CPU_LOG_TUNING)
enum { OLDEST = 2, NEWEST = 5 };

/* The process has one plugin for all its communicators. A failed load is not tried again.
 */
static struct {
  enum { READY, LOADED, FAILED } state;
  void *library;
  int version;
  const void *abi; /* struct abi_vN */
  int references;
} plugin;
static pthread_mutex_t plugin_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *plugin_name(void) {
  return *(const char *const *)plugin.abi; /* the first member of every version */
}

static bool find_abi(void *library) {
  char symbol[32];
  plugin.abi = NULL;
  for (int version = NEWEST; version >= OLDEST && !plugin.abi; version--) {
    snprintf(symbol, sizeof symbol, "ncclTunerPlugin_v%d", version);
    plugin.abi = dlsym(library, symbol);
    plugin.version = version;
  }
  return plugin.abi != NULL;
}

/* The path is named by the log even where the variable gave a short name. */
static bool load(void) {
  const char *name = getenv("NCCL_TUNER_PLUGIN");
  char *path = NULL;
  if (name) {
    cpu_log(
      CPU_LOG_ENV | CPU_LOG_TUNING, "NCCL_TUNER_PLUGIN set by environment to %s", name);
    if (strcasecmp(name, "none") == 0) return false;
  }
  plugin.library = cpu_tuner_library_open(name, &path);
  if (!plugin.library) return false;
  const bool is_found = find_abi(plugin.library);
  if (is_found) {
    cpu_log(TOPIC, "TUNER/Plugin: Using %s (v%d)", plugin_name(), plugin.version);
    cpu_log(TOPIC, "Successfully loaded external tuner plugin %s", path ? path : name);
  } else {
    cpu_log(TOPIC, "External tuner plugin %s is unsupported", path ? path : name);
    dlclose(plugin.library);
  }
  free(path);
  return is_found;
}

/* True: there is a plugin, which stays loaded until as many calls of let_go. */
static bool hold(void) {
  pthread_mutex_lock(&plugin_lock);
  if (plugin.state == READY) plugin.state = load() ? LOADED : FAILED;
  const bool is_there = plugin.state == LOADED;
  if (is_there) plugin.references++;
  pthread_mutex_unlock(&plugin_lock);
  return is_there;
}

static void let_go(void) {
  pthread_mutex_lock(&plugin_lock);
  if (--plugin.references == 0) {
    cpu_log(TOPIC, "TUNER/Plugin: Closing tuner: '%s'", plugin_name());
    dlclose(plugin.library);
    plugin.state = READY;
  }
  pthread_mutex_unlock(&plugin_lock);
}

static int start(void **context, const struct cpu_tuner_birth *b) {
  const size_t ranks = (size_t)b->ranks, nodes = 1;
  struct cpu_nvl_domain domain = {1, b->ranks, b->ranks};
  switch (plugin.version) {
    case 2: {
      const struct abi_v2 *v2 = plugin.abi;
      return v2->init(ranks, nodes, cpu_log_plugin, context);
    }
    case 3: {
      const struct abi_v3 *v3 = plugin.abi;
      return v3->init(ranks, nodes, cpu_log_plugin, context);
    }
    case 4: {
      const struct abi_v4 *v4 = plugin.abi;
      return v4->init(ranks, nodes, cpu_log_plugin, context);
    }
    default: {
      const struct abi_v5 *v5 = plugin.abi;
      return v5->init(
        context, b->comm_id, ranks, nodes, cpu_log_plugin, &domain, b->constants);
    }
  }
}

ncclResult_t cpu_tuner_start(struct cpu_tuner *t, const struct cpu_tuner_birth *birth) {
  *t = (struct cpu_tuner){0};
  if (!hold()) return ncclSuccess;
  const int rc = start(&t->context, birth);
  t->is_on = rc == 0;
  if (t->is_on) return ncclSuccess;
  cpu_fail(
    (ncclResult_t)rc, "the init of tuner plugin '%s' returned %d", plugin_name(), rc);
  let_go();
  return (ncclResult_t)rc;
}

void cpu_tuner_stop(struct cpu_tuner *t) {
  if (!t->is_on) return;
  t->is_on = false;
  switch (plugin.version) {
    case 2: ((const struct abi_v2 *)plugin.abi)->destroy(t->context); break;
    case 3: ((const struct abi_v3 *)plugin.abi)->destroy(t->context); break;
    case 4: ((const struct abi_v4 *)plugin.abi)->destroy(t->context); break;
    default: ((const struct abi_v5 *)plugin.abi)->finalize(t->context); break;
  }
  let_go();
}

/* Version 2 names a cell instead of editing a table: that cell becomes free. */
static int ask_v2(const struct abi_v2 *abi, void *context, struct cpu_question *q) {
  const int coll_net = q->costs[3][CPU_SIMPLE] >= 0;
  const int nvls = q->costs[4][CPU_SIMPLE] >= 0 || q->costs[5][CPU_SIMPLE] >= 0;
  int a = -1, p = -1;
  const int rc = abi->get_coll_info(
    context, (int)q->function, q->bytes, coll_net, nvls, q->ops, &a, &p, &q->channels);
  const bool is_cell = a >= 0 && a < CPU_ALGORITHMS && p >= 0 && p < CPU_PROTOCOLS;
  if (!rc && is_cell && q->costs[a][p] >= 0) q->costs[a][p] = 0;
  return rc;
}

static int ask_v3(const struct abi_v3 *abi, void *context, struct cpu_question *q) {
  return abi->get_coll_info(context,
                            (int)q->function,
                            q->bytes,
                            q->ops,
                            (float **)(void *)q->costs,
                            CPU_ALGORITHMS,
                            CPU_PROTOCOLS,
                            &q->channels);
}

/* Versions 4 and 5 have the same question. */
static int ask_v5(void *context, struct cpu_question *q) {
  int (*get)(void *, int, size_t, int, float **, int, int, int, int *) =
    plugin.version == 4 ? ((const struct abi_v4 *)plugin.abi)->get_coll_info
                        : ((const struct abi_v5 *)plugin.abi)->get_coll_info;
  return get(context,
             (int)q->function,
             q->bytes,
             q->ops,
             (float **)(void *)q->costs,
             CPU_ALGORITHMS,
             CPU_PROTOCOLS,
             q->is_registered,
             &q->channels);
}

ncclResult_t cpu_tuner_ask(const struct cpu_tuner *t, struct cpu_question *q) {
  q->channels = 0;
  const int rc = plugin.version == 2   ? ask_v2(plugin.abi, t->context, q)
                 : plugin.version == 3 ? ask_v3(plugin.abi, t->context, q)
                                       : ask_v5(t->context, q);
  if (rc == 0) return ncclSuccess;
  return cpu_fail((ncclResult_t)rc, "tuner plugin '%s' returned %d", plugin_name(), rc);
}
