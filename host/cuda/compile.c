#include "host/cuda/compile.h"

#include "host/cuda/cache.h"
#include "host/cuda/driver.h"

#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Embedded at build time, each with a NUL at its end. */
extern const char cuda_kernels_cu[], cuda_half_c[], cuda_half_h[];

/* NVRTC has no C headers, and its memcpy is a builtin. */
static const char STDINT_H[] = "typedef signed char int8_t;\n"
                               "typedef unsigned char uint8_t;\n"
                               "typedef unsigned short uint16_t;\n"
                               "typedef int int32_t;\n"
                               "typedef unsigned uint32_t;\n"
                               "typedef long long int64_t;\n"
                               "typedef unsigned long long uint64_t;\n";

static int current_arch(int *arch, struct err *e) {
  CUdevice device;
  int major = 0, minor = 0;
  CUresult rc = cuda_driver.ctx_get_device(&device);
  if (!rc) {
    rc = cuda_device.device_get_attribute(
      &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  }
  if (!rc) {
    rc = cuda_device.device_get_attribute(
      &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  }
  *arch = 10 * major + minor;
  if (!rc) return 0;
  const char *name = driver_error_name(rc);
  return err_set(e, name, "the current device cannot be asked what it is: %s", name);
}

static int compile(struct nvrtc_source *source, struct compiled *out, struct err *e) {
  *out = (struct compiled){0};
  if (current_arch(&source->arch, e)) return -1;
  if (cache_load(source, out) == 0) return 0;
  if (nvrtc_compile(source, out, e)) return -1;
  cache_store(source, out);
  return 0;
}

int compile_script(const char *source, const char *kernel, struct compiled *out,
                   struct err *e) {
  static const char *const options[] = {"--std=c++17"};
  return compile(
    &(struct nvrtc_source){
      .text = source, .kernel = kernel, .options = options, .option_count = COUNT(options)},
    out,
    e);
}

int compile_own(struct compiled *out, struct err *e) {
  static const char *const names[] = {"host/half.c", "host/half.h", "stdint.h", "string.h"};
  static const char *const texts[] = {cuda_half_c, cuda_half_h, STDINT_H, ""};
  static const char *const options[] = {"--std=c++17", "-default-device"};
  return compile(&(struct nvrtc_source){.text = cuda_kernels_cu,
                                        .header_names = names,
                                        .header_texts = texts,
                                        .headers = COUNT(names),
                                        .options = options,
                                        .option_count = COUNT(options)},
                 out,
                 e);
}

void compile_free(struct compiled *c) {
  free(c->image);
  free(c->symbol);
  free(c->log);
  *c = (struct compiled){0};
}
