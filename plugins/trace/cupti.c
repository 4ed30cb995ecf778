#include "plugins/trace/cupti.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A library must fit the driver: one that is older than the driver works, one that is much
   newer may not. The process's own comes first, since two of them do not live together. */
static const char *const names[] = {"libcupti.so.13",
                                    "libcupti.so.12",
                                    "libcupti.so.11.8",
                                    "libcupti.so.11.7",
                                    "libcupti.so.11.6",
                                    "libcupti.so.11.5",
                                    "libcupti.so.11.4",
                                    "libcupti.so.11.3",
                                    "libcupti.so.11.2",
                                    "libcupti.so.11.1",
                                    "libcupti.so.11.0",
                                    "libcupti.so"};

/* Patterns of glob(3); a row that begins with $NAME is left out if NAME is not set. */
static const char *const folders[] = {
  "$CUDA_HOME/extras/CUPTI/lib64",
  "$CUDA_HOME/lib64",
  "$CUDA_PATH/extras/CUPTI/lib64",
  "$CUDA_PATH/lib64",
  "/usr/local/cuda/extras/CUPTI/lib64",
  "/usr/local/cuda/lib64",
  "/usr/local/cuda/targets/*-linux/lib",
  "/usr/local/cuda-*/extras/CUPTI/lib64",
  "/usr/local/cuda-*/targets/*-linux/lib",
  "/usr/local/cuda-*/lib64",
  "/opt/cuda/extras/CUPTI/lib64",
  "/opt/nvidia/hpc_sdk/Linux_*/*/cuda/extras/CUPTI/lib64",
  "$CONDA_PREFIX/lib",
  "$CONDA_PREFIX/lib/python3*/site-packages/nvidia/*/lib",
  "$VIRTUAL_ENV/lib/python3*/site-packages/nvidia/*/lib",
  "$HOME/.local/lib/python3*/site-packages/nvidia/*/lib",
  "/usr/{local/,}lib/python3*/{site,dist}-packages/nvidia/*/lib",
  "/opt/{*/,*/.venv/,}lib/python3*/site-packages/nvidia/*/lib",
};

static const struct symbol {
  const char *name;
  size_t slot;
  bool is_optional;
} symbols[] = {
  {"cuptiGetVersion", offsetof(struct cupti, get_version), false},
  {"cuptiGetTimestamp", offsetof(struct cupti, get_timestamp), false},
  {"cuptiGetResultString", offsetof(struct cupti, get_result_string), false},
  {"cuptiSubscribe", offsetof(struct cupti, subscribe), false},
  {"cuptiUnsubscribe", offsetof(struct cupti, unsubscribe), false},
  {"cuptiActivityEnable", offsetof(struct cupti, activity_enable), false},
  {"cuptiActivityDisable", offsetof(struct cupti, activity_disable), false},
  {"cuptiActivityRegisterCallbacks",
   offsetof(struct cupti, activity_register_callbacks),
   false},
  {"cuptiActivityGetNextRecord", offsetof(struct cupti, activity_get_next_record), false},
  {"cuptiActivityGetNumDroppedRecords",
   offsetof(struct cupti, activity_get_num_dropped_records),
   false},
  {"cuptiActivityFlushAll", offsetof(struct cupti, activity_flush_all), false},
  {"cuptiGetCallbackName", offsetof(struct cupti, get_callback_name), false},
  {"cuptiSetThreadIdType", offsetof(struct cupti, set_thread_id_type), true},
  {"cuptiActivityEnableDriverApi", offsetof(struct cupti, activity_enable_driver), true},
  {"cuptiActivityEnableRuntimeApi", offsetof(struct cupti, activity_enable_runtime), true},
};

static bool expand(const char *pattern, char *out, size_t size) {
  if (pattern[0] != '$') return snprintf(out, size, "%s", pattern) < (int)size;
  const size_t length = strcspn(pattern, "/");
  char name[32];
  memcpy(name, pattern + 1, length - 1);
  name[length - 1] = '\0';
  const char *value = getenv(name);
  return value && *value &&
         snprintf(out, size, "%s%s", value, pattern + length) < (int)size;
}

static void *open_in(const char *folder, const char *name) {
  char base[2048], pattern[4096];
  if (!expand(folder, base, sizeof base)) return NULL;
  snprintf(pattern, sizeof pattern, "%s/%s", base, name);
  glob_t found;
  void *library = NULL;
  if (glob(pattern, GLOB_BRACE | GLOB_NOSORT, NULL, &found)) return NULL;
  for (size_t i = 0; i < found.gl_pathc && !library; i++) {
    library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
  }
  globfree(&found);
  return library;
}

static void *open_loaded(void) {
  void *library = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++) {
    library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
  }
  return library;
}

static void *open_any(void) {
  void *library = open_loaded();
  for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++) {
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t f = 0; f < sizeof folders / sizeof *folders && !library; f++) {
      library = open_in(folders[f], names[i]);
    }
  }
  return library;
}

int cupti_open(struct cupti *c, char *why, size_t size) {
  const char *named = getenv("NCLUA_CUPTI_LIB");
  const bool is_named = named && *named;
  void *library = is_named ? dlopen(named, RTLD_NOW | RTLD_LOCAL) : open_any();
  if (!library && is_named) {
    snprintf(why, size, "cannot open '%s': %s", named, dlerror());
    return -1;
  }
  if (!library) {
    snprintf(why,
             size,
             "no CUPTI: libcupti.so is neither on the loader's path nor in a usual folder "
             "(NCLUA_CUPTI_LIB can name the file)");
    return -1;
  }
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *symbol = dlsym(library, symbols[i].name);
    if (!symbol && !symbols[i].is_optional) {
      snprintf(why, size, "CUPTI lacks '%s'", symbols[i].name);
      return -1;
    }
    memcpy((char *)c + symbols[i].slot, &symbol, sizeof symbol);
  }
  return 0;
}

int cupti_explain(const struct cupti *c, const char *what, CUptiResult rc, char *why,
                  size_t size) {
  const char *text = NULL;
  if (rc == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ||
      rc == CUPTI_ERROR_MAX_LIMIT_REACHED) {
    snprintf(
      why,
      size,
      "another profiler holds CUPTI in this process (nsys, ncu, PyTorch's profiler?): "
      "end it, or trace without it");
    return -1;
  }
  if (rc == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES) {
    snprintf(why,
             size,
             "the driver lets only administrators profile (NVreg_Restrict"
             "ProfilingToAdminUsers)");
    return -1;
  }
  if (c->get_result_string(rc, &text) || !text) text = "unknown error";
  snprintf(why, size, "%s: %s (%d)", what, text, rc);
  return -1;
}
