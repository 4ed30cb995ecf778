/* What the virtual devices say of themselves: the processor's properties, and identities
   that are made up but differ between devices and machines. */

#include "host/cpu/device.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
  CUresult rc;
  const char *name, *text;
} errors[] = {
  {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
  {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
  {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
  {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
  {CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
  {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no device is detected"},
  {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
  {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
  {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
  {CUDA_ERROR_ILLEGAL_STATE,
   "CUDA_ERROR_ILLEGAL_STATE",
   "the operation cannot be performed in the present state"},
  {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
  {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
  {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "illegal memory access"},
  {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
  {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
  {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
   "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
   "operation not permitted when stream is capturing"},
  {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
   "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
   "operation failed due to a previous error during capture"},
  {CUDA_ERROR_STREAM_CAPTURE_MERGE,
   "CUDA_ERROR_STREAM_CAPTURE_MERGE",
   "operation would result in a merge of separate capture sequences"},
  {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
   "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
   "capture was not ended in the same stream as it began"},
  {CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
   "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
   "capturing stream has unjoined work"},
  {CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
   "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
   "dependency created on uncaptured work in another stream"},
  {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
   "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
   "operation would make the legacy stream depend on a capturing blocking stream"},
  {CUDA_ERROR_CAPTURED_EVENT,
   "CUDA_ERROR_CAPTURED_EVENT",
   "operation not permitted on an event last recorded in a capturing stream"},
  {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
   "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
   "attempt to terminate a thread-local capture sequence from another thread"},
  {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int find_error(CUresult rc) {
  for (size_t i = 0; i < COUNT(errors); i++) {
    if (errors[i].rc == rc) return (int)i;
  }
  return -1;
}

CUresult cpu_error_name(CUresult rc, const char **name) {
  const int i = find_error(rc);
  *name = i < 0 ? NULL : errors[i].name;
  return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cpu_error_string(CUresult rc, const char **text) {
  const int i = find_error(rc);
  *text = i < 0 ? NULL : errors[i].text;
  return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* The value of the first "key : value" line of /proc/cpuinfo that has one of the keys. */
static bool read_cpuinfo(const char *key, char *value, size_t bytes) {
  char line[512];
  bool is_found = false;
  FILE *file = fopen("/proc/cpuinfo", "re");
  if (!file) return false;
  while (!is_found && fgets(line, sizeof line, file)) {
    const char *colon = strchr(line, ':');
    if (!colon || strncmp(line, key, strlen(key)) != 0) continue;
    const char *start = colon + 1 + strspn(colon + 1, " \t");
    snprintf(value, bytes, "%.*s", (int)strcspn(start, "\n"), start);
    is_found = true;
  }
  fclose(file);
  return is_found;
}

static bool is_device(CUdevice device) {
  return device >= 0 && device < cpu_device_count();
}

CUresult cpu_device_get_name(char *name, int bytes, CUdevice device) {
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!name || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
  char model[200] = "CPU"; /* Arm's /proc/cpuinfo has no model name */
  read_cpuinfo("model name", model, sizeof model);
  snprintf(name, (size_t)bytes, "%s (nclua CPU backend)", model);
  return CUDA_SUCCESS;
}

/* FNV-1a of the first line of a file that tells machines apart. */
static uint64_t hash_machine(void) {
  static const char *const paths[] = {"/etc/machine-id", "/proc/sys/kernel/random/boot_id"};
  uint64_t hash = UINT64_C(14695981039346656037);
  char line[128] = "";
  for (size_t i = 0; i < COUNT(paths) && !line[0]; i++) {
    FILE *file = fopen(paths[i], "re");
    if (!file) continue;
    if (!fgets(line, sizeof line, file)) line[0] = 0;
    fclose(file);
  }
  for (const char *c = line; *c; c++) {
    hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
  }
  return hash;
}

/* Version 8 of RFC 9562, "custom": the machine's hash, and the ordinal. */
CUresult cpu_device_get_uuid(CUuuid *uuid, CUdevice device) {
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!uuid) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t machine = hash_machine();
  memset(uuid, 0, sizeof *uuid);
  memcpy(uuid->bytes, &machine, 6);
  uuid->bytes[6] = (char)0x80;
  uuid->bytes[8] = (char)0x80;
  memcpy(uuid->bytes + 9, "nclua", 5);
  uuid->bytes[15] = (char)device;
  return CUDA_SUCCESS;
}

CUresult cpu_device_get_pci_bus_id(char *id, int bytes, CUdevice device) {
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!id || bytes < 13) return CUDA_ERROR_INVALID_VALUE;
  snprintf(id, (size_t)bytes, "0000:%02X:00.0", (unsigned)device + 1);
  return CUDA_SUCCESS;
}

static int count_cores(void) {
  cpu_set_t cpus;
  return sched_getaffinity(0, sizeof cpus, &cpus) ? 1 : CPU_COUNT(&cpus);
}

static int clock_khz(void) {
  char mhz[64];
  if (!read_cpuinfo("cpu MHz", mhz, sizeof mhz)) return 0;
  return (int)(strtod(mhz, NULL) * 1000);
}

/* There is no compute capability: 0.0. */
CUresult cpu_device_get_attribute(int *value, int attribute, CUdevice device) {
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = count_cores(); break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = clock_khz(); break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      *value = (int)sysconf(_SC_LEVEL2_CACHE_SIZE);
      break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: *value = device + 1; break;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
