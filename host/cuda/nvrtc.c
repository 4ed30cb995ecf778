#include "host/cuda/nvrtc.h"

#include "host/cuda/driver.h"
#include "host/cuda/search.h"
#include "host/cuda/symbol.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { MOST_OPTIONS = 16, MOST_ARCHS = 256 };

typedef struct nvrtc_program *program;
typedef int result; /* nvrtcResult */

static struct {
  bool is_loaded;
  char include[PATH_MAX]; /* the option that names CUDA's headers, or "" */
  const char *(*get_error_string)(result rc);
  result (*get_num_supported_archs)(int *count);
  result (*get_supported_archs)(int *archs);
  result (*create_program)(program *p, const char *text, const char *name, int headers,
                           const char *const *header_texts,
                           const char *const *header_names);
  result (*destroy_program)(program *p);
  result (*add_name_expression)(program p, const char *expression);
  result (*compile_program)(program p, int count, const char *const *options);
  result (*get_lowered_name)(program p, const char *expression, const char **name);
  result (*get_program_log_size)(program p, size_t *bytes);
  result (*get_program_log)(program p, char *log);
  result (*get_cubin_size)(program p, size_t *bytes);
  result (*get_cubin)(program p, char *image);
  result (*get_ptx_size)(program p, size_t *bytes);
  result (*get_ptx)(program p, char *image);
} nvrtc;

static const struct symbol symbols[] = {
  {"nvrtcGetErrorString", &nvrtc.get_error_string},
  {"nvrtcGetNumSupportedArchs", &nvrtc.get_num_supported_archs}, /* 11.2, as the next */
  {"nvrtcGetSupportedArchs", &nvrtc.get_supported_archs},
  {"nvrtcCreateProgram", &nvrtc.create_program},
  {"nvrtcDestroyProgram", &nvrtc.destroy_program},
  {"nvrtcAddNameExpression", &nvrtc.add_name_expression},
  {"nvrtcCompileProgram", &nvrtc.compile_program},
  {"nvrtcGetLoweredName", &nvrtc.get_lowered_name},
  {"nvrtcGetProgramLogSize", &nvrtc.get_program_log_size},
  {"nvrtcGetProgramLog", &nvrtc.get_program_log},
  {"nvrtcGetCUBINSize", &nvrtc.get_cubin_size},
  {"nvrtcGetCUBIN", &nvrtc.get_cubin},
  {"nvrtcGetPTXSize", &nvrtc.get_ptx_size},
  {"nvrtcGetPTX", &nvrtc.get_ptx},
};

struct choice {
  char path[PATH_MAX];
  bool is_found;
};

/* The first one not newer than the driver, which could not load what a newer one makes. */
static bool choose(const struct search_hit *hit, void *context) {
  struct choice *c = context;
  bool is_newer = atoi(hit->version) > cuda_driver.version / 1000;
  if (c->is_found && is_newer) return true;
  snprintf(c->path, sizeof c->path, "%s", hit->path);
  c->is_found = true;
  return is_newer;
}

/* A toolkit and Python's wheels keep cuda_fp16.h and its like near the compiler. */
static void find_headers(const char *library) {
  static const char *const places[] = {
    "../include", "../../include", "../../cuda_runtime/include"};
  const char *name = strrchr(library, '/');
  for (size_t i = 0; name && i < COUNT(places); i++) {
    char header[PATH_MAX * 2];
    int folder = (int)(name - library);
    snprintf(header, sizeof header, "%.*s/%s/cuda_fp16.h", folder, library, places[i]);
    if (access(header, R_OK)) continue;
    snprintf(nvrtc.include,
             sizeof nvrtc.include,
             "--include-path=%.*s/%s",
             folder,
             library,
             places[i]);
    return;
  }
}

static int load(struct err *e) {
  if (nvrtc.is_loaded) return 0;
  struct choice c = {.is_found = false};
  if (!getenv("NCLUA_NVRTC_LIB")) search_each(SEARCH_NVRTC, choose, &c);
  void *library = search_open(SEARCH_NVRTC, c.is_found ? c.path : NULL, e);
  if (!library) return -1;
  search_path_of(dlsym(library, "nvrtcVersion"), c.path, sizeof c.path);
  const char *lacks = symbol_fill(library, symbols, COUNT(symbols));
  if (lacks) return err_set(e, "no_symbol", "'%s' lacks '%s'", c.path, lacks);
  find_headers(c.path);
  nvrtc.is_loaded = true;
  return 0;
}

static int fail(const char *what, result rc, struct err *e) {
  return err_set(e, "nvrtc", "%s: %s", what, nvrtc.get_error_string(rc));
}

/* The newest architecture that the compiler knows and the device can run from PTX. */
static int newest_known(int arch) {
  int count = 0, best = 0, archs[MOST_ARCHS];
  if (nvrtc.get_num_supported_archs(&count) || count > MOST_ARCHS) return 0;
  if (nvrtc.get_supported_archs(archs)) return 0;
  for (int i = 0; i < count; i++) {
    if (archs[i] <= arch && archs[i] > best) best = archs[i];
  }
  return best;
}

static result compile(program p, const struct nvrtc_source *source, const char *target) {
  const char *options[MOST_OPTIONS] = {target};
  int count = 1;
  if (nvrtc.include[0]) options[count++] = nvrtc.include;
  for (int i = 0; i < source->option_count && count < MOST_OPTIONS; i++) {
    options[count++] = source->options[i];
  }
  return nvrtc.compile_program(p, count, options);
}

static int take_log(program p, struct compiled *out) {
  size_t bytes = 0;
  if (nvrtc.get_program_log_size(p, &bytes) || bytes <= 1) return 0; /* only a NUL */
  out->log = malloc(bytes);
  return out->log && nvrtc.get_program_log(p, out->log) == 0 ? 0 : -1;
}

static int take_image(program p, bool is_ptx, struct compiled *out, struct err *e) {
  result rc =
    is_ptx ? nvrtc.get_ptx_size(p, &out->bytes) : nvrtc.get_cubin_size(p, &out->bytes);
  if (rc) return fail("the compiled image's size", rc, e);
  out->image = malloc(out->bytes);
  if (!out->image) return err_set(e, "ENOMEM", "no memory for a compiled kernel");
  rc = is_ptx ? nvrtc.get_ptx(p, out->image) : nvrtc.get_cubin(p, out->image);
  return rc ? fail("the compiled image", rc, e) : 0;
}

static int take_symbol(program p, const char *kernel, struct compiled *out, struct err *e) {
  const char *name = NULL;
  result rc = nvrtc.get_lowered_name(p, kernel, &name);
  if (rc) return fail(kernel, rc, e);
  if (!name) return err_set(e, "nvrtc", "'%s' is not a kernel's name", kernel);
  out->symbol = strdup(name);
  return out->symbol ? 0 : err_set(e, "ENOMEM", "no memory for a kernel's name");
}

/* One attempt for one target: machine code, or PTX that the driver compiles further. */
static int attempt(const struct nvrtc_source *source, int arch, bool is_ptx,
                   struct compiled *out, struct err *e) {
  char target[48];
  snprintf(
    target, sizeof target, "--gpu-architecture=%s_%d", is_ptx ? "compute" : "sm", arch);
  program p = NULL;
  result rc = nvrtc.create_program(&p,
                                   source->text,
                                   "kernel.cu",
                                   source->headers,
                                   source->header_texts,
                                   source->header_names);
  if (rc) return fail("nvrtcCreateProgram", rc, e);
  int failed = 0;
  if (source->kernel) rc = nvrtc.add_name_expression(p, source->kernel);
  if (!rc) rc = compile(p, source, target);
  if (rc) failed = fail("the CUDA compiler", rc, e);
  if (take_log(p, out)) failed = err_set(e, "ENOMEM", "no memory for a compiler's log");
  if (!failed) failed = take_image(p, is_ptx, out, e);
  if (!failed && source->kernel) failed = take_symbol(p, source->kernel, out, e);
  nvrtc.destroy_program(&p);
  return failed;
}

int nvrtc_compile(const struct nvrtc_source *source, struct compiled *out, struct err *e) {
  if (load(e)) return -1;
  int known = newest_known(source->arch);
  if (known == 0) {
    return err_set(
      e, "nvrtc", "this NVRTC knows no architecture up to sm_%d", source->arch);
  }
  return attempt(source, known, known != source->arch, out, e);
}
