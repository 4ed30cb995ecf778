#ifndef HOST_INVENTORY_H
#define HOST_INVENTORY_H

/* What this machine has for CUDA and NCCL, for `nclua doctor`. This process initialises
   nothing: the devices are asked by a child. */

#include "host/err.h"

#include <stdbool.h>

enum inventory_library {
  INVENTORY_DRIVER,
  INVENTORY_NCCL,
  INVENTORY_NVRTC,
  INVENTORY_CUPTI,
  INVENTORY_LIBRARIES
};

/* "CUDA driver", "NCCL", ... */
const char *inventory_title(enum inventory_library library);

/* Each file of that library, the one that would be opened first; `version` may be "".
   Until `visit` returns false. */
void inventory_each(enum inventory_library library,
                    bool (*visit)(const char *path, const char *version, void *context),
                    void *context);

struct inventory_device {
  char name[96], uuid[48], bus_id[32], compute_capability[8];
  unsigned long long memory_bytes;
};

enum { INVENTORY_MOST_DEVICES = 64 };

struct inventory_devices {
  int driver_version; /* 13000 is CUDA 13.0 */
  int count;
  struct inventory_device list[INVENTORY_MOST_DEVICES];
};

/* Starts the driver in a child that ends at once, for at most `timeout_s` seconds (a broken
   driver may hang). -1: no driver, no device, no answer. */
int inventory_read_devices(int timeout_s, struct inventory_devices *out, struct err *e);

#endif
