#include "host/cuda/symbol.h"

#include <dlfcn.h>
#include <string.h>

const char *symbol_fill(void *library, const struct symbol *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    void *found = dlsym(library, rows[i].name);
    if (!found && rows[i].older) found = dlsym(library, rows[i].older);
    if (!found && !rows[i].is_optional) return rows[i].name;
    if (found) memcpy(rows[i].slot, &found, sizeof found); /* POSIX: same size */
  }
  return NULL;
}
