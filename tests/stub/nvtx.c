/* A profiler for tests: what NVTX_INJECTION64_PATH may name. Says on stderr what it sees.
 */
#include "tests/stub/stub.h"

#include <stdio.h>

typedef void any_function(void);

static int push(const char *text) {
  fprintf(stderr, "push %s\n", text);
  return 0;
}

static int pop(void) {
  fprintf(stderr, "pop\n");
  return 0;
}

/* As the vendor's tools do it: every slot of a module's table gets a function. */
EXPORT int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t));
EXPORT int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t)) {
  const struct {
    size_t size;
    int (*get)(int module, any_function ****table, unsigned *size);
  } *callbacks = get_export_table(1);
  any_function ***table = NULL;
  unsigned count = 0;
  if (!callbacks || callbacks->get(99, &table, &count)) return 0;
  for (int module = 1; module <= 6; module++) {
    if (!callbacks->get(module, &table, &count)) return 0;
    for (unsigned i = 1; i < count; i++) *table[i] = (any_function *)pop;
  }
  if (!callbacks->get(1, &table, &count) || count < 12) return 0;
  *table[9] = (any_function *)push;
  *table[11] = (any_function *)pop;
  return 1;
}
