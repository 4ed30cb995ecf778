#include "host/cuda/kernels.h"

#include "host/cuda/compile.h"
#include "host/cuda/driver.h"
#include "host/cuda/through_host.h"
#include "host/dtype.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { MOST_DEVICES = 64, BLOCK = 256, BLOCKS_A_MULTIPROCESSOR = 8 };
enum kernel { FILL, PATTERN, COMPARE, SPIN, KERNELS };

static const char *const names[KERNELS] = {
  "nclua_fill", "nclua_pattern", "nclua_compare", "nclua_spin"};

/* What is loaded on each device; a module belongs to the device's primary context. */
static struct loaded {
  bool is_tried;
  CUmodule module; /* NULL: no kernels here */
  CUfunction functions[KERNELS];
  CUdeviceptr result; /* two 64-bit words for the comparison */
  unsigned most_blocks;
} devices[MOST_DEVICES];

static int driver_failed(const char *what, CUresult rc, struct err *e) {
  const char *name = driver_error_name(rc);
  return err_set(e, name, "%s: %s", what, name);
}

static int load_image(struct loaded *l, const void *image, struct err *e) {
  CUresult rc = cuda_device.module_load_data(&l->module, image);
  if (rc) return driver_failed("cuModuleLoadData", rc, e);
  for (int i = 0; i < KERNELS && !rc; i++) {
    rc = cuda_device.module_get_function(&l->functions[i], l->module, names[i]);
  }
  if (!rc) rc = cuda_device.mem_alloc(&l->result, 2 * sizeof(uint64_t));
  if (!rc) return 0;
  cuda_device.module_unload(l->module);
  l->module = NULL;
  return driver_failed("a module of kernels", rc, e);
}

static int load(struct loaded *l, CUdevice device, struct err *e) {
  int multiprocessors = 1;
  cuda_device.device_get_attribute(
    &multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  l->most_blocks = (unsigned)multiprocessors * BLOCKS_A_MULTIPROCESSOR;
  struct compiled c;
  int rc = compile_own(&c, e);
  if (!rc) rc = load_image(l, c.image, e);
  compile_free(&c);
  return rc;
}

/* A first use may be inside a capture, which loading a module would break. */
static int load_uncaptured(struct loaded *l, CUdevice device, struct err *e) {
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  cuda_driver.thread_exchange_stream_capture_mode(&mode);
  int rc = load(l, device, e);
  cuda_driver.thread_exchange_stream_capture_mode(&mode);
  return rc;
}

static void announce(const struct err *e) {
  static bool is_said;
  if (is_said) return;
  is_said = true;
  fprintf(stderr,
          "nclua: no kernels on this GPU, so patterns and comparisons go through the host, "
          "slowly: %s\n",
          e->text);
}

/* The current device's kernels, or NULL. */
static struct loaded *here(void) {
  CUdevice device;
  struct err e;
  if (cuda_driver.ctx_get_device(&device) || device >= MOST_DEVICES) return NULL;
  struct loaded *l = &devices[device];
  if (!l->is_tried) {
    l->is_tried = true;
    if (load_uncaptured(l, device, &e)) announce(&e);
  }
  return l->module ? l : NULL;
}

void kernels_unload(CUdevice device) {
  CUcontext before = NULL, context = NULL;
  if (device < 0 || device >= MOST_DEVICES) return;
  struct loaded *l = &devices[device];
  if (l->module && !cuda_device.primary_ctx_retain(&context, device)) {
    cuda_device.ctx_get_current(&before);
    cuda_device.ctx_set_current(context);
    cuda_device.mem_free(l->result);
    cuda_device.module_unload(l->module);
    cuda_device.ctx_set_current(before);
    cuda_driver.primary_ctx_release(device);
  }
  *l = (struct loaded){0};
}

static CUresult launch(const struct loaded *l, enum kernel k, size_t count,
                       void **arguments, CUstream stream) {
  size_t wanted = (count + BLOCK - 1) / BLOCK;
  unsigned blocks = wanted < l->most_blocks ? (unsigned)wanted : l->most_blocks;
  return cuda_device.launch_kernel(
    l->functions[k], blocks, 1, 1, BLOCK, 1, 1, 0, stream, arguments, NULL);
}

static CUresult fill_wide(CUdeviceptr dst, size_t count, uint64_t bits, CUstream stream) {
  struct loaded *l = here();
  if (!l) return through_host_fill(dst, count, bits, stream);
  uint64_t elements = count;
  void *arguments[] = {&dst, &elements, &bits};
  return launch(l, FILL, count, arguments, stream);
}

/* The driver's own fills, where they are wide enough, need no compiler. */
CUresult kernels_fill(CUdeviceptr dst, size_t count, size_t element_bytes, uint64_t bits,
                      CUstream stream) {
  if (count == 0) return CUDA_SUCCESS;
  switch (element_bytes) {
    case 1: return cuda_device.memset_d8_async(dst, (unsigned char)bits, count, stream);
    case 2: return cuda_driver.memset_d16_async(dst, (unsigned short)bits, count, stream);
    case 4: return cuda_driver.memset_d32_async(dst, (unsigned)bits, count, stream);
    case 8:
      if (bits >> 32 != (bits & UINT32_MAX)) return fill_wide(dst, count, bits, stream);
      return cuda_driver.memset_d32_async(dst, (unsigned)bits, 2 * count, stream);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult kernels_pattern(CUdeviceptr dst, size_t count, ncclDataType_t type,
                         const struct pattern *p, CUstream stream) {
  if (p->modulus == 0 || (unsigned)type >= ncclNumTypes) return CUDA_ERROR_INVALID_VALUE;
  if (count == 0) return CUDA_SUCCESS;
  struct loaded *l = here();
  if (!l) return through_host_pattern(dst, count, type, p, stream);
  struct pattern pattern = *p;
  uint64_t elements = count;
  int number = (int)type;
  void *arguments[] = {
    &dst, &elements, &number, &pattern.start, &pattern.step, &pattern.modulus};
  return launch(l, PATTERN, count, arguments, stream);
}

static uint64_t low_bytes(uint64_t bits, size_t bytes) {
  return bytes < sizeof bits ? bits & ((UINT64_C(1) << 8 * bytes) - 1) : bits;
}

static CUresult run_compare(struct loaded *l, const struct compare *what,
                            struct mismatch *out, CUstream stream) {
  CUdeviceptr a = what->a, b = what->b, result = l->result;
  uint64_t elements = what->count, value = low_bytes(what->value, dtype_size(what->type));
  int number = (int)what->type;
  double tolerance = what->tolerance;
  void *arguments[] = {&a, &b, &elements, &number, &value, &tolerance, &result};
  CUresult rc = cuda_driver.memset_d32_async(result, 0, 2, stream);
  if (!rc) rc = cuda_driver.memset_d32_async(result + 8, UINT32_MAX, 2, stream);
  if (!rc) rc = launch(l, COMPARE, what->count, arguments, stream);
  if (!rc) rc = cuda_device.memcpy_dtoh_async(out, result, sizeof *out, stream);
  CUresult synchronised = cuda_device.stream_synchronize(stream);
  return rc ? rc : synchronised;
}

CUresult kernels_compare(const struct compare *what, struct mismatch *out,
                         CUstream stream) {
  *out = (struct mismatch){0};
  if ((unsigned)what->type >= ncclNumTypes) return CUDA_ERROR_INVALID_VALUE;
  if (what->count == 0) return cuda_device.stream_synchronize(stream);
  struct loaded *l = here();
  return l ? run_compare(l, what, out, stream) : through_host_compare(what, out, stream);
}

CUresult kernels_spin(unsigned microseconds, CUstream stream) {
  struct loaded *l = here();
  if (!l) return CUDA_ERROR_NOT_SUPPORTED;
  uint64_t ns = UINT64_C(1000) * microseconds;
  void *arguments[] = {&ns};
  return cuda_device.launch_kernel(
    l->functions[SPIN], 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}
