#include "plugins/trace/kinds.h"

#include "plugins/trace/tracer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What NCLUA_TRACE_KINDS may name: without "api" and "launch" the launching threads are
   left alone. */
static const struct choice {
  const char *word;
  uint32_t kinds[2];
  bool is_default;
} choices[] = {
  {"kernel", {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL}, true},
  {"memcpy", {CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2}, true},
  {"memset", {CUPTI_ACTIVITY_KIND_MEMSET}, true},
  {"api", {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER}, true},
  {"sync", {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION}, false},
  {"graph", {CUPTI_ACTIVITY_KIND_GRAPH_TRACE}, false}, /* whole graphs, not their nodes */
};

static bool is_chosen(const char *word, bool is_default) {
  const char *list = getenv("NCLUA_TRACE_KINDS");
  if (!list || !*list) return is_default;
  const size_t length = strlen(word);
  for (const char *at = list; (at = strstr(at, word)); at += length) {
    const bool begins = at == list || at[-1] == ',';
    if (begins && (at[length] == ',' || !at[length])) return true;
  }
  return false;
}

static int enable(const struct cupti *c, const struct choice *choice, char *why,
                  size_t size) {
  for (int k = 0; k < 2 && choice->kinds[k]; k++) {
    const CUptiResult rc = c->activity_enable(choice->kinds[k]);
    if (rc) return cupti_explain(c, choice->word, rc, why, size);
  }
  return 0;
}

/* Only calls that bring about work on a GPU: a tenth of all, and enough to tie kernels to
   threads and ranges. Before CUDA 12 it is all calls or none. */
static int enable_launches(const struct cupti *c, char *why, size_t size) {
  static const struct choice all = {
    "launch", {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER}, false};
  if (!c->activity_enable_driver || !c->activity_enable_runtime) {
    return enable(c, &all, why, size);
  }
  CUptiResult rc = CUPTI_SUCCESS;
  for (int i = 0; abi_driver_launches[i] && !rc; i++) {
    rc = c->activity_enable_driver(abi_driver_launches[i], 1);
  }
  for (int i = 0; abi_runtime_launches[i] && !rc; i++) {
    rc = c->activity_enable_runtime(abi_runtime_launches[i], 1);
  }
  return rc ? cupti_explain(c, "launch", rc, why, size) : 0;
}

/* A trace without kernels is none; without the rest it is one that says so. */
int kinds_enable(const struct cupti *c, char *why, size_t size) {
  for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
    if (!is_chosen(choices[i].word, choices[i].is_default)) continue;
    if (enable(c, &choices[i], why, size) == 0) continue;
    if (i == 0) return -1;
    tracer_say("not recorded: %s", why);
  }
  if (is_chosen("launch", false) && enable_launches(c, why, size)) {
    tracer_say("not recorded: %s", why);
  }
  return 0;
}

static void disable_launches(const struct cupti *c) {
  if (!c->activity_enable_driver || !c->activity_enable_runtime) return;
  for (int i = 0; abi_driver_launches[i]; i++) {
    c->activity_enable_driver(abi_driver_launches[i], 0);
  }
  for (int i = 0; abi_runtime_launches[i]; i++) {
    c->activity_enable_runtime(abi_runtime_launches[i], 0);
  }
}

void kinds_disable(const struct cupti *c) {
  static const uint32_t kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                   CUPTI_ACTIVITY_KIND_MEMCPY,
                                   CUPTI_ACTIVITY_KIND_MEMCPY2,
                                   CUPTI_ACTIVITY_KIND_MEMSET,
                                   CUPTI_ACTIVITY_KIND_RUNTIME,
                                   CUPTI_ACTIVITY_KIND_DRIVER,
                                   CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                   CUPTI_ACTIVITY_KIND_GRAPH_TRACE};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    c->activity_disable(kinds[i]); /* one that is not on is no matter */
  }
  if (is_chosen("launch", false)) disable_launches(c);
}
