#ifndef TESTS_HOST_KERNELS_ON_HOST_H
#define TESTS_HOST_KERNELS_ON_HOST_H

/* host/cuda/kernels.cu, compiled as C and run on the host: for tests without a GPU. */

#include <stdbool.h>
#include <stddef.h>

struct kernels_grid {
  unsigned grid_x, block_x; /* the others are 1 */
};

/* Runs one of its kernels with parameters as cuLaunchKernel takes them. */
typedef void kernels_function(const struct kernels_grid *grid, void **parameters);

/* The kernel of that name, or NULL. `sizes` gets its parameters' sizes, ended by 0. */
kernels_function *kernels_on_host(const char *name, const size_t **sizes);

#endif
