#ifndef HOST_CUDA_CACHE_H
#define HOST_CUDA_CACHE_H

/* Compiled kernels on disk, in $XDG_CACHE_HOME/nclua or ~/.cache/nclua. The key is what was
   compiled and for what, not by what: a kernel found here needs no compiler at all. */

#include "host/backend.h"
#include "host/cuda/nvrtc.h"

/* 0: found, image and symbol filled. A missing, foreign or damaged file is -1. */
int cache_load(const struct nvrtc_source *source, struct compiled *out);

/* Best effort: a full or read-only disk costs a compilation next time, nothing else. */
void cache_store(const struct nvrtc_source *source, const struct compiled *made);

#endif
