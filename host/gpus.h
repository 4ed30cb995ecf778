#ifndef HOST_GPUS_H
#define HOST_GPUS_H

/* The GPUs that CUDA would show, told from /proc, /sys and /dev: nothing is initialised, so
   a parent may ask before it forks ranks. */

#include "host/err.h"

enum { GPUS_MOST = 64 };

struct gpu {
  char bus_id[16]; /* "0000:19:00.0", as a folder of /sys/bus/pci/devices */
  char uuid[48];   /* "GPU-..."; "" if the machine does not tell */
};

/* Those that this process may use, in CUDA's order as far as it is known: by bus, then as
   CUDA_VISIBLE_DEVICES says. `root` is "" but in tests. Returns their number, or -1. */
int gpus_visible(const char *root, struct gpu gpus[GPUS_MOST], struct err *e);

#endif
