#include "host/cuda/driver.h"

#include "host/backend.h"
#include "host/cuda/compile.h"
#include "host/cuda/kernels.h"
#include "host/cuda/nvtx.h"
#include "host/cuda/search.h"
#include "host/cuda/symbol.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct driver cuda_driver;
static char driver_path[PATH_MAX];

static const struct symbol symbols[] = {
#define ROW(name, slot) {#name, &slot},
#define NEWER(name, before, slot) {#name, &slot, .older = #before},
#define MAYBE(name, slot) {#name, &slot, .is_optional = true},
#include "host/cuda/driver.def"
};

/* Drivers of CUDA 11.0 to 11.3. No flag existed then. */
static CUresult graph_instantiate_11_0(CUgraphExec *exec, CUgraph graph,
                                       unsigned long long flags) {
  if (flags) return CUDA_ERROR_NOT_SUPPORTED;
  return cuda_driver.graph_instantiate_11_0(exec, graph, NULL, NULL, 0);
}

/* Our kernels live in the context, so they must not outlive our hold on it. */
static CUresult primary_ctx_release(CUdevice device) {
  kernels_unload(device);
  return cuda_driver.primary_ctx_release(device);
}

static const char *library_path(void) {
  return driver_path;
}

static int too_old(const char *lacks, struct err *e) {
  return err_set(e,
                 "driver_too_old",
                 "the CUDA driver '%s' lacks '%s': nclua needs one of CUDA 11 or newer",
                 driver_path,
                 lacks);
}

/* A stub that only serves linking names no error, not even its own. */
const char *driver_error_name(CUresult rc) {
  const char *name = NULL;
  cuda_device.get_error_name(rc, &name);
  if (name) return name;
  return rc == CUDA_ERROR_STUB_LIBRARY ? "CUDA_ERROR_STUB_LIBRARY" : "CUDA_ERROR_UNKNOWN";
}

static int start(struct err *e) {
  CUresult rc = cuda_device.init(0);
  if (rc) {
    const char *name = driver_error_name(rc), *text = NULL;
    cuda_device.get_error_string(rc, &text);
    return err_set(e,
                   name,
                   "the CUDA driver '%s' does not start: %s (%s)",
                   driver_path,
                   text ? text : "it gives no reason",
                   name);
  }
  rc = cuda_device.driver_get_version(&cuda_driver.version);
  if (rc || cuda_driver.version >= 11000) return 0;
  return err_set(e,
                 "driver_too_old",
                 "the CUDA driver '%s' is for CUDA %d.%d: nclua needs 11 or newer",
                 driver_path,
                 cuda_driver.version / 1000,
                 cuda_driver.version % 1000 / 10);
}

static void add_our_own(void) {
  cuda_device.primary_ctx_release = primary_ctx_release;
  if (!cuda_device.graph_instantiate && cuda_driver.graph_instantiate_11_0) {
    cuda_device.graph_instantiate = graph_instantiate_11_0;
  }
  cuda_device.fill = kernels_fill;
  cuda_device.fill_pattern = kernels_pattern;
  cuda_device.compare = kernels_compare;
  cuda_device.spin = kernels_spin;
  cuda_device.compile = compile_script;
  nvtx_open(&cuda_device);
}

static int load(const char *library, struct err *e) {
  static bool is_loaded;
  if (is_loaded) return 0;
  void *driver = search_open(SEARCH_DRIVER, library, e);
  if (!driver) return -1;
  void *known = dlsym(driver, "cuInit");
  search_path_of(known, driver_path, sizeof driver_path);
  const char *lacks = symbol_fill(driver, symbols, COUNT(symbols));
  if (lacks) return too_old(lacks, e);
  if (start(e)) return -1;
  add_our_own();
  is_loaded = true;
  return 0;
}

struct device_api cuda_device = {
  .name = "cuda",
  .load = load,
  .library_path = library_path,
};
