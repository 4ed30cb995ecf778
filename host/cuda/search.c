#include "host/cuda/search.h"

#include "host/cuda/elf.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_NAMES = 8, MOST_HITS = 64 };

/* Newest first: what a driver cannot take from the newest is tried by the next call. */
static const struct library {
  const char *title, *variable;
  const char *names[MOST_NAMES];
} libraries[] = {
  [SEARCH_DRIVER] = {"CUDA driver", "NCLUA_CUDA_LIB", {"libcuda.so.1"}},
  [SEARCH_NCCL] = {"NCCL", "NCLUA_NCCL_LIB", {"libnccl.so.2"}},
  [SEARCH_NVRTC] = {"NVRTC",
                    "NCLUA_NVRTC_LIB",
                    {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"}},
  [SEARCH_CUPTI] = {"CUPTI",
                    "NCLUA_CUPTI_LIB",
                    {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"}},
};

/* Patterns of glob(3). A row that begins with $NAME is left out if NAME is not set. */
static const char *const folders[] = {
  "$CUDA_HOME/lib64",
  "$CUDA_PATH/lib64",
  "$NCCL_HOME/lib",
  "/usr/local/cuda/lib64",
  "/usr/local/cuda/extras/CUPTI/lib64",
  "/usr/lib/*-linux-gnu",
  "/usr/lib64",
  "/usr/lib",
  "/usr/lib/wsl/lib",
  "/usr/local/lib",
  "/usr/local/nvidia/lib64",
  "/usr/local/cuda-*/lib64",
  "/usr/local/cuda-*/lib",
  "/usr/local/cuda-*/targets/*-linux/lib",
  "/usr/local/cuda-*/extras/CUPTI/lib64",
  "/opt/cuda/lib64",
  "/opt/cuda/extras/CUPTI/lib64",
  "/opt/nvidia/hpc_sdk/Linux_*/*/cuda/lib64",
  "/opt/nvidia/hpc_sdk/Linux_*/*/comm_libs/nccl/lib",
  "$CONDA_PREFIX/lib",
  "$VIRTUAL_ENV/lib/python3*/site-packages/nvidia/*/lib",
  "$CONDA_PREFIX/lib/python3*/site-packages/nvidia/*/lib",
  "$HOME/.local/lib/python3*/site-packages/nvidia/*/lib",
  "$HOME/{mini,ana}conda3/lib/python3*/site-packages/nvidia/*/lib",
  "$HOME/{mini,ana}conda3/envs/*/lib/python3*/site-packages/nvidia/*/lib",
  "/usr/{local/,}lib/python3*/{site,dist}-packages/nvidia/*/lib",
  "/opt/{*/,}lib/python3*/site-packages/nvidia/*/lib",
  "/opt/conda/envs/*/lib/python3*/site-packages/nvidia/*/lib",
};

/* Visits `path` if it opens in this process; true: go on. */
typedef bool try_path(const char *path, void *context);

/* "$NAME/rest" with NAME's value, or the pattern itself; false: leave the row out. */
static bool expand(const char *pattern, char *out, size_t size) {
  if (pattern[0] != '$') return snprintf(out, size, "%s", pattern) < (int)size;
  size_t length = strcspn(pattern, "/");
  char name[32];
  if (length > sizeof name) return false;
  memcpy(name, pattern + 1, length - 1);
  name[length - 1] = '\0';
  const char *value = getenv(name);
  if (!value || !*value) return false;
  return snprintf(out, size, "%s%s", value, pattern + length) < (int)size;
}

static bool try_folder(const char *folder, const char *name, try_path *visit,
                       void *context) {
  char base[PATH_MAX / 2], pattern[PATH_MAX];
  if (!expand(folder, base, sizeof base)) return true;
  snprintf(pattern, sizeof pattern, "%s/%s", base, name);
  glob_t found;
  bool go_on = true;
  if (glob(pattern, GLOB_BRACE | GLOB_NOSORT, NULL, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc && go_on; i++) {
      go_on = visit(found.gl_pathv[i], context);
    }
    globfree(&found);
  }
  return go_on;
}

/* Every path that may be the library: bare names first, which the loader looks up. */
static void try_all(const struct library *l, try_path *visit, void *context) {
  for (int i = 0; i < MOST_NAMES && l->names[i]; i++) {
    if (!visit(l->names[i], context)) return;
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
      if (!try_folder(folders[f], l->names[i], visit, context)) return;
    }
  }
}

/* A folder stands for the library in it. */
static bool try_named(const struct library *l, const char *name, try_path *visit,
                      void *context) {
  char path[PATH_MAX];
  struct stat s;
  if (stat(name, &s) || !S_ISDIR(s.st_mode)) return visit(name, context);
  for (int i = 0; i < MOST_NAMES && l->names[i]; i++) {
    snprintf(path, sizeof path, "%s/%s", name, l->names[i]);
    if (!visit(path, context)) return false;
  }
  return true;
}

static bool open_path(const char *path, void *context) {
  void **handle = context;
  *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return *handle == NULL;
}

static void *open_named(const struct library *l, const char *name, struct err *e) {
  void *handle = NULL;
  if (try_named(l, name, open_path, &handle)) {
    err_set(e, "no_library", "cannot open %s: %s", l->title, dlerror());
  }
  return handle;
}

void *search_open(enum search_library library, const char *name, struct err *e) {
  const struct library *l = &libraries[library];
  if (!name) name = getenv(l->variable);
  if (name && *name) return open_named(l, name, e);
  void *handle = NULL;
  try_all(l, open_path, &handle);
  if (!handle) {
    err_set(e,
            "no_library",
            "no %s on this machine: '%s' is neither on the loader's path nor in a usual "
            "folder (%s can name the file)",
            l->title,
            l->names[0],
            l->variable);
  }
  return handle;
}

void search_path_of(const void *address, char *path, unsigned size) {
  Dl_info info;
  char resolved[PATH_MAX];
  path[0] = '\0';
  if (!dladdr(address, &info) || !info.dli_fname) return;
  const char *file = realpath(info.dli_fname, resolved);
  snprintf(path, size, "%s", file ? file : info.dli_fname);
}

struct listing {
  enum search_library library;
  bool (*visit)(const struct search_hit *hit, void *context);
  void *context;
  struct stat seen[MOST_HITS];
  int count;
};

static bool is_new(struct listing *l, const char *path) {
  struct stat s;
  if (stat(path, &s) || l->count == MOST_HITS) return false;
  for (int i = 0; i < l->count; i++) {
    if (l->seen[i].st_dev == s.st_dev && l->seen[i].st_ino == s.st_ino) return false;
  }
  l->seen[l->count++] = s;
  return true;
}

/* What the loader makes of a bare name; a constructor runs, but nothing is initialised. */
static bool resolve(const char *name, char *path) {
  if (strchr(name, '/')) return realpath(name, path) != NULL;
  /* Kept mapped: what a library's constructors allocate is not released by dlclose. */
  void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) return false;
  char folder[PATH_MAX], joined[PATH_MAX * 2];
  bool known = dlinfo(handle, RTLD_DI_ORIGIN, folder) == 0;
  snprintf(joined, sizeof joined, "%s/%s", known ? folder : "", name);
  dlclose(handle);
  return known && realpath(joined, path) != NULL;
}

/* NCCL says its version in its read-only data, the others in the file's name. */
static void read_version(enum search_library library, const char *path, char *version,
                         size_t size) {
  version[0] = '\0';
  if (library == SEARCH_NCCL) {
    elf_find_version(path, "NCCL version ", version, size);
    return;
  }
  const char *suffix = strstr(path, ".so.");
  if (suffix) snprintf(version, size, "%s", suffix + strlen(".so."));
}

static bool list_path(const char *name, void *context) {
  struct listing *l = context;
  char path[PATH_MAX], version[64];
  if (!resolve(name, path) || !is_new(l, path)) return true;
  read_version(l->library, path, version, sizeof version);
  return l->visit(&(struct search_hit){path, version}, l->context);
}

void search_each(enum search_library library,
                 bool (*visit)(const struct search_hit *hit, void *context),
                 void *context) {
  struct listing listing = {library, visit, context};
  const struct library *l = &libraries[library];
  const char *named = getenv(l->variable);
  if (named && *named && !try_named(l, named, list_path, &listing)) return;
  try_all(l, list_path, &listing);
}
