#include "host/backend.h"

#include "host/forkable.h"
#include "host/trace.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The choice is the process's: both tables are global to it. */
static const char *chosen = "auto";
static const char *nccl_library;

int backend_choose(const char *name, const char *library, struct err *e) {
  if (strcmp(name, "auto") != 0 && strcmp(name, "cpu") != 0 && strcmp(name, "cuda") != 0) {
    return err_set(
      e, "EINVAL", "unknown backend '%s': expected 'auto', 'cpu' or 'cuda'", name);
  }
  chosen = name[0] == 'a' ? "auto" : name[1] == 'p' ? "cpu" : "cuda";
  if (library) nccl_library = library;
  return 0;
}

/* Is this /dev/nvidia0, /dev/nvidia1, ... and not /dev/nvidiactl? */
static bool is_gpu_node(const char *name) {
  const char *digits = name + strlen("nvidia");
  return strncmp(name, "nvidia", strlen("nvidia")) == 0 && *digits &&
         strspn(digits, "0123456789") == strlen(digits);
}

static int count_gpu_nodes(void) {
  int count = 0;
  DIR *dev = opendir("/dev");
  if (!dev) return 0;
  for (struct dirent *entry; (entry = readdir(dev));) count += is_gpu_node(entry->d_name);
  closedir(dev);
  return count;
}

/* CUDA_VISIBLE_DEVICES: a list; what follows an unknown entry is ignored by the driver, but
   here only the length matters: a rank that gets no device says so itself. */
static int count_visible(int nodes) {
  const char *list = getenv("CUDA_VISIBLE_DEVICES");
  if (!list) return nodes;
  int count = *list && *list != '-';
  for (; *list; list++) count += *list == ',' && list[1] != '-';
  return count < nodes ? count : nodes;
}

/* NCLUA_CUDA_DEVICES says it where /dev does not: WSL, some containers, tests. */
static int count_gpus(void) {
  const char *told = getenv("NCLUA_CUDA_DEVICES");
  if (told && *told) return atoi(told) > 0 ? atoi(told) : 0;
  int nodes = count_gpu_nodes();
  return nodes ? count_visible(nodes) : 0;
}

static bool has_gpu(void) {
  if (count_gpus() == 0) return false;
  const char *named = getenv("NCLUA_CUDA_LIB");
  if (!named || !*named) named = "libcuda.so.1";
  void *driver = dlopen(named, RTLD_LAZY | RTLD_LOCAL); /* initialises nothing */
  if (driver) dlclose(driver);
  return driver != NULL;
}

const char *backend_name(void) {
  if (strcmp(chosen, "auto") == 0) chosen = has_gpu() ? "cuda" : "cpu";
  return chosen;
}

static bool is_cuda(void) {
  return strcmp(backend_name(), "cuda") == 0;
}

const struct device_api *backend_device(struct err *e) {
  static const struct device_api *loaded;
  if (loaded) return loaded;
  struct device_api *api = is_cuda() ? &cuda_device : &cpu_device;
  if (api->load(NULL, e) || trace_attach(api, e)) return NULL;
  forkable_hold("a device in use (use devices, streams and buffers inside the ranks only)");
  loaded = api;
  return api;
}

const struct coll_api *backend_coll(struct err *e) {
  static const struct coll_api *loaded;
  if (loaded) return loaded;
  struct coll_api *api = is_cuda() ? &cuda_coll : &cpu_coll;
  if (api->load(nccl_library, e)) return NULL;
  loaded = api;
  return api;
}

int backend_device_guess(void) {
  if (is_cuda()) return count_gpus();
  struct err e;
  int count = 0;
  if (cpu_device.load(NULL, &e) || cpu_device.device_get_count(&count)) return 0;
  return count;
}
