#ifndef TESTS_STUB_STUB_H
#define TESTS_STUB_STUB_H

/* libcuda.so.1 and libnccl.so.2 look-alikes: the vendors' names and signatures, the CPU
   backend's work. They drive host/cuda/ where there is no GPU. */

#include "host/backend.h"

#define EXPORT __attribute__((visibility("default")))

/* In the driver's look-alike, for NCCL's: both must share one CPU backend. */
const struct device_api *stub_device(void);
const struct coll_api *stub_coll(void);

#endif
