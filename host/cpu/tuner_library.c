#include "host/cpu/tuner_library.h"
#include "host/cpu/log.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAME_BYTES 255 /* NCCL's; a longer one is cut */
#define TOPIC (CPU_LOG_INIT | CPU_LOG_TUNING)

/* What has been tried and is not there. */
struct misses {
  char names[2 * NAME_BYTES + 3];
};

/* Any beginning of the word will do, as in NCCL. */
static bool is_static_plugin(const char *name) {
  return strncasecmp(name, "STATIC_PLUGIN", strlen(name)) == 0;
}

static void *try_open(const char *name, struct misses *misses) {
  void *handle = dlopen(is_static_plugin(name) ? NULL : name, RTLD_NOW | RTLD_LOCAL);
  if (handle) return handle;
  const char *why = dlerror();
  const size_t used = strlen(misses->names);
  if (strstr(why, name) && strstr(why, "No such file or directory"))
    snprintf(misses->names + used, sizeof misses->names - used, " %s", name);
  else
    cpu_log(TOPIC, "TUNER/Plugin: %s: %.255s", name, why);
  return NULL;
}

/* Neither a path nor the name of a library: "nclua" of libnccl-tuner-nclua.so. */
static bool is_short_name(const char *name) {
  const size_t length = strlen(name);
  const bool is_library =
    strncmp(name, "lib", 3) == 0 && length >= 3 && strcmp(name + length - 3, ".so") == 0;
  return length > 0 && !strchr(name, '/') && !is_library;
}

void *cpu_tuner_library_open(const char *name, char **path) {
  char library[NAME_BYTES];
  struct misses misses = {""};
  const bool is_given = name && *name;
  snprintf(library, sizeof library, "%s", is_given ? name : "libnccl-tuner.so");
  void *handle = try_open(library, &misses);
  if (!handle && is_given && is_short_name(name)) {
    snprintf(library, sizeof library, "libnccl-tuner-%s.so", name);
    handle = try_open(library, &misses);
  }
  struct link_map *map = NULL;
  if (handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0) *path = strdup(map->l_name);
  if (handle) return handle;
  if (*misses.names)
    cpu_log(
      TOPIC, "TUNER/Plugin: Could not find:%s. Using internal tuner plugin.", misses.names);
  else
    cpu_log(TOPIC, "TUNER/Plugin: Using internal tuner plugin.");
  return NULL;
}
