#include "plugins/trace/devices.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* CUdevice_attribute. */
enum {
  CLOCK_RATE = 13,
  MULTIPROCESSORS = 16,
  MEMORY_CLOCK_RATE = 36,
  MEMORY_BUS_WIDTH = 37,
  L2_CACHE_BYTES = 38,
  COMPUTE_MAJOR = 75,
  COMPUTE_MINOR = 76
};

struct driver {
  int (*get_count)(int *count);
  int (*get)(int *device, int ordinal);
  int (*get_name)(char *name, int bytes, int device);
  int (*get_uuid)(unsigned char uuid[16], int device);
  int (*get_bus)(char *bus, int bytes, int device);
  int (*get_memory)(size_t *bytes, int device);
  int (*get_attribute)(int *value, int attribute, int device);
};

static const struct {
  const char *name;
  size_t slot;
} symbols[] = {
  {"cuDeviceGetCount", offsetof(struct driver, get_count)},
  {"cuDeviceGet", offsetof(struct driver, get)},
  {"cuDeviceGetName", offsetof(struct driver, get_name)},
  {"cuDeviceGetUuid", offsetof(struct driver, get_uuid)},
  {"cuDeviceGetPCIBusId", offsetof(struct driver, get_bus)},
  {"cuDeviceTotalMem_v2", offsetof(struct driver, get_memory)},
  {"cuDeviceGetAttribute", offsetof(struct driver, get_attribute)},
};

static int open_driver(struct driver *d) {
  void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return -1;
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *symbol = dlsym(library, symbols[i].name);
    if (!symbol) return -1;
    memcpy((char *)d + symbols[i].slot, &symbol, sizeof symbol);
  }
  return 0;
}

static int attribute(const struct driver *d, int device, int which) {
  int value = 0;
  return d->get_attribute(&value, which, device) ? 0 : value;
}

/* As nvidia-smi prints it. */
static void print_uuid(const unsigned char uuid[16], char text[64]) {
  int n = sprintf(text, "GPU-");
  for (int i = 0; i < 16; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text[n++] = '-';
    n += sprintf(text + n, "%02x", uuid[i]);
  }
}

static void store_gpu(struct store *store, const struct driver *d, int index, int device,
                      const char *uuid) {
  char name[256] = "", bus[32] = "";
  size_t bytes = 0;
  d->get_name(name, sizeof name, device);
  d->get_bus(bus, sizeof bus, device);
  d->get_memory(&bytes, device);
  const int64_t bits = attribute(d, device, MEMORY_BUS_WIDTH);
  const int64_t khz = attribute(d, device, MEMORY_CLOCK_RATE);
  struct trace_row row = {.table = TRACE_GPU};
  PUT(&row, GPU, id, index);
  PUT_TEXT(&row, GPU, name, name);
  PUT_TEXT(&row, GPU, busLocation, bus);
  PUT(&row, GPU, isDiscrete, 1);
  PUT(&row, GPU, l2CacheSize, attribute(d, device, L2_CACHE_BYTES));
  PUT(&row, GPU, totalMemory, bytes);
  PUT(&row, GPU, memoryBandwidth, khz * 1000 * 2 * bits / 8); /* double data rate */
  PUT(&row, GPU, clockRate, (int64_t)attribute(d, device, CLOCK_RATE) * 1000);
  PUT(&row, GPU, smCount, attribute(d, device, MULTIPROCESSORS));
  PUT_TEXT(&row, GPU, uuid, uuid);
  PUT(&row, GPU, computeMajor, attribute(d, device, COMPUTE_MAJOR));
  PUT(&row, GPU, computeMinor, attribute(d, device, COMPUTE_MINOR));
  store_insert(store, &row);
}

static void store_device(struct store *store, const struct driver *d, int index) {
  unsigned char bytes[16] = {0};
  char uuid[64];
  int device;
  if (d->get(&device, index)) return;
  d->get_uuid(bytes, device);
  print_uuid(bytes, uuid);
  store_gpu(store, d, index, device, uuid);
  struct trace_row row = {.table = TRACE_DEVICE};
  PUT(&row, DEVICE, gpuId, index);
  PUT(&row, DEVICE, cudaId, index);
  PUT(&row, DEVICE, pid, getpid());
  PUT_TEXT(&row, DEVICE, uuid, uuid);
  PUT(&row, DEVICE, numMultiprocessors, attribute(d, device, MULTIPROCESSORS));
  store_insert(store, &row);
}

int devices_store(struct store *store) {
  struct driver d;
  int count = 0;
  if (open_driver(&d) || d.get_count(&count)) return -1;
  for (int i = 0; i < count; i++) store_device(store, &d, i);
  return 0;
}
