#include "host/trace_plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "libnclua-trace.so"

static const char *carried, *carried_end;

void trace_plugin_carried(const char *begin, const char *end) {
  carried = begin;
  carried_end = end;
}

static int find(const char *folder, const char *place, char *path, size_t size) {
  char pattern[PATH_MAX + 64];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s%s/" FILE_NAME, folder, place);
  if (glob(pattern, GLOB_NOSORT, NULL, &found)) return -1;
  const int n = snprintf(path, size, "%s", found.gl_pathv[0]);
  globfree(&found);
  return n < (int)size ? 0 : -1;
}

static int find_beside(char *path, size_t size) {
  static const char *const places[] = {"/plugins", "", "/../lib/nclua", "/../lib/*/nclua"};
  char folder[PATH_MAX] = "";
  const ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  folder[length > 0 ? length : 0] = '\0';
  char *slash = strrchr(folder, '/');
  if (slash) *slash = '\0';
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    if (find(folder, places[i], path, size) == 0) return 0;
  }
  return -1;
}

/* FNV-1a: the name of a copy, so that versions do not meet in one cache. */
static uint64_t hash(const char *from, const char *to) {
  uint64_t h = 0xcbf29ce484222325u;
  for (; from < to; from++) h = (h ^ (unsigned char)*from) * 0x100000001b3u;
  return h;
}

static int cache_folder(char *path, size_t size) {
  const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  const int has_base = base && *base;
  if (!has_base && (!home || !*home)) return -1;
  const int n = snprintf(path,
                         size,
                         "%s%s",
                         has_base ? base : home,
                         has_base ? "/nclua/plugins" : "/.cache/nclua/plugins");
  if (n >= (int)size) return -1;
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(path, 0777); /* the last one tells whether it worked */
    *slash = '/';
  }
  return mkdir(path, 0777) && errno != EEXIST ? -1 : 0;
}

static int write_whole(const char *path) {
  const size_t bytes = (size_t)(carried_end - carried);
  FILE *file = fopen(path, "wbe");
  if (!file) return -1;
  const size_t written = fwrite(carried, 1, bytes, file);
  return fclose(file) || written != bytes ? -1 : 0;
}

/* Under another name first: a reader sees the whole file or none. */
static int unpack(char *path, size_t size) {
  char folder[PATH_MAX], temporary[PATH_MAX + 32];
  struct stat st;
  if (!carried || cache_folder(folder, sizeof folder)) return -1;
  const unsigned long long number = hash(carried, carried_end);
  const int n = snprintf(path, size, "%s/%016llx-" FILE_NAME, folder, number);
  if (n >= (int)size) return -1;
  if (stat(path, &st) == 0 && st.st_size == carried_end - carried) return 0;
  snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
  if (write_whole(temporary) == 0 && rename(temporary, path) == 0) return 0;
  unlink(temporary);
  return -1;
}

int trace_plugin_path(char *path, size_t size, struct err *e) {
  const char *named = getenv("NCLUA_PLUGIN_DIR");
  const int rc = named ? find(named, "", path, size) : find_beside(path, size);
  if (rc == 0 || (!named && unpack(path, size) == 0)) return 0;
  return err_set(e,
                 "no_library",
                 "no '" FILE_NAME "' in '%s' (NCLUA_PLUGIN_DIR names its "
                 "folder)",
                 named ? named : "the usual folders");
}
