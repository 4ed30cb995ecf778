#ifndef HOST_CUDA_SEARCH_H
#define HOST_CUDA_SEARCH_H

/* Where CUDA's shared libraries lie on a machine: the loader's path, CUDA's and the
   distribution's folders, Python wheels. */

#include "host/err.h"

#include <stdbool.h>

enum search_library { SEARCH_DRIVER, SEARCH_NCCL, SEARCH_NVRTC, SEARCH_CUPTI };

struct search_hit {
  const char *path;    /* of the file itself, links resolved; valid during the call */
  const char *version; /* "2.28.9+cuda13.0", "580.65.06"; "" if it does not say */
};

/* Opens a library and never closes it. `name` is a file, a folder, or NULL: the file that
   the environment names (NCLUA_CUDA_LIB, NCLUA_NCCL_LIB, NCLUA_NVRTC_LIB), else the first
   that opens. A named file that does not open is an error, not a reason to go on. */
void *search_open(enum search_library library, const char *name, struct err *e);

/* Shows every file of that library on this machine, in search_open's order, each once,
   until `visit` returns false. Nothing of CUDA is initialised. */
void search_each(enum search_library library,
                 bool (*visit)(const struct search_hit *hit, void *context), void *context);

/* The file that holds the function or object at `address`, links resolved, or "". */
void search_path_of(const void *address, char *path, unsigned size);

#endif
