#ifndef HOST_CUDA_NVRTC_H
#define HOST_CUDA_NVRTC_H

/* CUDA C++ to machine code, by NVRTC where the machine has it. */

#include "host/backend.h"

struct nvrtc_source {
  const char *text;
  const char *kernel; /* an expression, such as "axpy<float>"; NULL: none to look up */
  const char *const *header_names, *const *header_texts;
  int headers;
  const char *const *options;
  int option_count;
  int arch; /* 90 is compute capability 9.0 */
};

/* 0; or -1 with *e filled and, if the compiler spoke, out->log. Frees nothing. */
int nvrtc_compile(const struct nvrtc_source *source, struct compiled *out, struct err *e);

#endif
