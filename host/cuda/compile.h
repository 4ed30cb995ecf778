#ifndef HOST_CUDA_COMPILE_H
#define HOST_CUDA_COMPILE_H

/* Compiling for the current device, by way of the cache. */

#include "host/backend.h"

/* struct device_api's `compile`: a script's source. */
int compile_script(const char *source, const char *kernel, struct compiled *out,
                   struct err *e);

/* host/cuda/kernels.cu; its functions have their plain names, out->symbol is NULL. */
int compile_own(struct compiled *out, struct err *e);

void compile_free(struct compiled *c);

#endif
