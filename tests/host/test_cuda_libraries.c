/* host/cuda/ against the real libraries, as far as a machine without a GPU lets it: NCCL is
   opened and its errors are walked, kernels are compiled. What is not installed is skipped,
   and said. */
#include "host/backend.h"
#include "host/cuda/cache.h"
#include "host/cuda/compile.h"
#include "host/cuda/driver.h"
#include "host/cuda/elf.h"
#include "host/cuda/search.h"
#include "host/inventory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The file that would be opened. */
static struct { char path[512], version[64]; } first;

static bool keep_first(const struct search_hit *hit, void *context) {
  (void)context;
  snprintf(first.path, sizeof first.path, "%s", hit->path);
  snprintf(first.version, sizeof first.version, "%s", hit->version);
  return false;
}

static void need(enum search_library library, const char *title) {
  first.path[0] = '\0';
  search_each(library, keep_first, NULL);
  if (first.path[0]) return;
  printf("skipped: no %s on this machine\n", title);
  skip();
}

static void test_nccl(void **state) {
  struct err e;
  int code = 0, major = 0, minor = 0, patch = 0;
  ncclUniqueId id;
  ncclComm_t comm = NULL;
  (void)state;
  need(SEARCH_NCCL, "NCCL");
  assert_int_equal(cuda_coll.load(first.path, &e), 0);
  assert_string_equal(cuda_coll.library_path(), first.path);
  assert_int_equal(cuda_coll.get_version(&code), ncclSuccess);
  /* What the file says without being opened is what the library says. */
  assert_int_equal(sscanf(first.version, "%d.%d.%d", &major, &minor, &patch), 3);
  assert_int_equal(code, 10000 * major + 100 * minor + patch);
  assert_non_null(strstr(cuda_coll.get_error_string(ncclInvalidUsage), "invalid usage"));
  assert_int_equal(cuda_coll.get_unique_id(&id), ncclSuccess);
  /* Without a device the call fails as a call, with a reason. */
  if (cuda_coll.comm_init_rank(&comm, 1, id, 0)) {
    assert_true(strlen(cuda_coll.get_last_error(NULL)) > 0);
  } else {
    assert_int_equal(cuda_coll.comm_abort(comm), ncclSuccess);
  }
  assert_int_equal(cuda_coll.comm_count(NULL, &code), ncclInvalidArgument);
}

static void test_nccl_named_wrongly(void **state) {
  struct err e;
  (void)state;
  assert_null(search_open(SEARCH_NCCL, "/dev/null/libnccl.so.2", &e));
  assert_string_equal(e.code, "no_library");
  assert_non_null(strstr(e.text, "/dev/null/libnccl.so.2"));
  assert_null(search_open(SEARCH_NCCL, "/dev/null/none", &e));
}

static void test_driver_missing(void **state) {
  struct err e;
  (void)state;
  assert_int_equal(cuda_device.load("/dev/null/libcuda.so.1", &e), -1);
  assert_string_equal(e.code, "no_library");
  assert_int_equal(cuda_device.load("libm.so.6", &e), -1); /* not a driver at all */
  assert_string_equal(e.code, "driver_too_old");
  assert_non_null(strstr(e.text, "cuInit"));
}

static void test_elf(void **state) {
  static const char *const wrong[] = {
    "/dev/null/none", "/proc/self/cmdline", "/etc/passwd"};
  char word[64];
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(elf_find_version(wrong[i], "version ", word, sizeof word), -1);
  }
}

/* Damages a real library's headers byte by byte: whatever they say, nothing crashes. */
static void test_elf_damaged(void **state) {
  char name[] = "/tmp/nclua-elf-XXXXXX", word[64];
  static unsigned char bytes[1 << 16];
  (void)state;
  FILE *self = fopen("/proc/self/exe", "rb");
  size_t size = fread(bytes, 1, sizeof bytes, self);
  fclose(self);
  int fd = mkstemp(name);
  assert_true(fd >= 0);
  for (unsigned at = 0; at < 64; at++) {
    for (unsigned value = 0; value < 256; value += 51) {
      unsigned char before = bytes[at];
      bytes[at] = (unsigned char)value;
      assert_int_equal(pwrite(fd, bytes, size, 0), size);
      elf_find_version(name, "version ", word, sizeof word);
      bytes[at] = before;
    }
  }
  close(fd);
  unlink(name);
}

static int arch = 80;

static CUresult get_device(CUdevice *device) {
  *device = 0;
  return CUDA_SUCCESS;
}

static CUresult get_attribute(int *value, int attribute, CUdevice device) {
  (void)device;
  *value =
    attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? arch / 10 : arch % 10;
  return CUDA_SUCCESS;
}

static char cache[64];

static void count_cached(int want) {
  char command[128];
  snprintf(command, sizeof command, "test $(ls '%s/nclua' | wc -l) = %d", cache, want);
  assert_int_equal(system(command), 0);
}

/* A device that is only asked what it is, an empty cache. */
static int pretend_device(void **state) {
  (void)state;
  cuda_driver.ctx_get_device = get_device;
  cuda_driver.version = 99000;
  cuda_device.device_get_attribute = get_attribute;
  snprintf(cache, sizeof cache, "/tmp/nclua-cache-XXXXXX");
  return mkdtemp(cache) && setenv("XDG_CACHE_HOME", cache, 1) == 0 ? 0 : -1;
}

static int remove_cache(void **state) {
  char command[128];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", cache);
  return system(command);
}

static void test_own_kernels(void **state) {
  static const int archs[] = {80, 90, 999}; /* the last from PTX */
  struct compiled c, again;
  struct err e;
  (void)state;
  need(SEARCH_NVRTC, "NVRTC");
  for (int i = 0; i < 3; i++) {
    arch = archs[i];
    if (compile_own(&c, &e)) fail_msg("%s\n%s", e.text, c.log ? c.log : "");
    if (c.log) fail_msg("the compiler is not silent: %s", c.log);
    const char *wanted = arch == 999 ? "//\n// Generated" : "\177ELF";
    assert_memory_equal(c.image, wanted, 4);
    count_cached(i + 1);
    assert_int_equal(compile_own(&again, &e), 0);
    assert_int_equal(again.bytes, c.bytes);
    assert_memory_equal(again.image, c.image, c.bytes);
    compile_free(&c);
    compile_free(&again);
  }
}

static void test_scripts_kernel(void **state) {
  static const char source[] =
    "#include <cuda_fp16.h>\n"
    "template <class T> __global__ void axpy(T *x, T a) { x[threadIdx.x] += a; }\n";
  struct compiled c;
  struct err e;
  (void)state;
  need(SEARCH_NVRTC, "NVRTC");
  arch = 90;
  if (compile_script(source, "axpy<__half>", &c, &e)) {
    printf("skipped: %s\n", c.log ? c.log : e.text); /* a compiler without its headers */
    compile_free(&c);
    skip();
  }
  assert_non_null(strstr(c.symbol, "axpy"));
  compile_free(&c);
  assert_int_equal(compile_script("__global__ void k(int *x) { *x = y; }", "k", &c, &e),
                   -1);
  assert_string_equal(e.code, "nvrtc");
  assert_non_null(strstr(c.log, "\"y\" is undefined"));
  compile_free(&c);
  assert_int_equal(compile_script("int x;", "nothing", &c, &e), -1);
  compile_free(&c);
}

/* Cuts and flips: a damaged file is no file. */
static void test_cache_damaged(void **state) {
  static const char *const damages[] = {
    "truncate -s 20",
    "truncate -s 4000",
    "truncate -s 0",
    "sh -c 'printf x | dd of=\"$0\" bs=1 seek=3 conv=notrunc status=none'",
    "sh -c 'printf x | dd of=\"$0\" bs=1 seek=100 conv=notrunc status=none'",
  };
  struct nvrtc_source source = {.text = "source", .kernel = "kernel", .arch = 90};
  char image[5000] = "an image";
  struct compiled made = {.image = image, .bytes = sizeof image, .symbol = "symbol"}, got;
  char command[256];
  (void)state;
  for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
    cache_store(&source, &made);
    assert_int_equal(cache_load(&source, &got), 0);
    assert_string_equal(got.symbol, "symbol");
    compile_free(&got);
    snprintf(command, sizeof command, "%s %s/nclua/*", damages[i], cache);
    assert_int_equal(system(command), 0);
    assert_int_equal(cache_load(&source, &got), -1);
  }
  source.arch = 80;
  assert_int_equal(cache_load(&source, &got), -1);
}

static void test_inventory(void **state) {
  static struct inventory_devices devices;
  struct err e = {.code = ""};
  (void)state;
  /* With a GPU it lists it, without one it says why; both within the limit. */
  if (inventory_read_devices(20, &devices, &e)) {
    assert_true(strlen(e.code) > 0);
    return;
  }
  assert_in_range(devices.driver_version, 11000, 99000);
  for (int i = 0; i < devices.count; i++) {
    assert_true(strlen(devices.list[i].name) > 1);
    assert_true(devices.list[i].memory_bytes > 1 << 20);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_inventory), /* first: it forks */
    cmocka_unit_test(test_driver_missing),
    cmocka_unit_test(test_nccl_named_wrongly),
    cmocka_unit_test(test_elf),
    cmocka_unit_test(test_elf_damaged),
    cmocka_unit_test_setup_teardown(test_own_kernels, pretend_device, remove_cache),
    cmocka_unit_test_setup_teardown(test_scripts_kernel, pretend_device, remove_cache),
    cmocka_unit_test_setup_teardown(test_cache_damaged, pretend_device, remove_cache),
    cmocka_unit_test(test_nccl),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
