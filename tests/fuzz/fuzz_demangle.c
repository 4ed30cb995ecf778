#include "plugins/trace/demangle.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Any kernel's name, mangled or not. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char brief[32], *name = malloc(size + 1);
  assert(name);
  memcpy(name, data, size);
  name[size] = '\0';
  demangle_brief(name, brief, sizeof brief);
  assert(strlen(brief) < sizeof brief);
  free(name);
  return 0;
}
