#ifndef HOST_CUDA_CONFIG_H
#define HOST_CUDA_CONFIG_H

/* A communicator's configuration for the NCCL at hand: the host speaks 2.28's layout. */

#include "host/abi_nccl.h"

/* The loaded library's version code, such as 21805. */
void config_set_version(int code);

/* Cuts the configuration down to the library's layout. -1 with `why` filled if it asks for
   something that the library does not have. */
int config_adapt(ncclConfig_t *config, char *why, size_t size);

#endif
