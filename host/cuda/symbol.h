#ifndef HOST_CUDA_SYMBOL_H
#define HOST_CUDA_SYMBOL_H

/* A library's functions, written into the members of a table. */

#include <stdbool.h>
#include <stddef.h>

struct symbol {
  const char *name;
  void *slot;        /* the function pointer to write */
  bool is_optional;  /* absent: the member stays as it is */
  const char *older; /* the name to try next, with the same signature */
};

/* NULL, or the name of the first required function that the library lacks. */
const char *symbol_fill(void *library, const struct symbol *rows, size_t count);

#endif
