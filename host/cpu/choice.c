#include "host/cpu/choice.h"

struct cpu_part cpu_choice_part(const struct cpu_choice *choice, int i) {
  if (i == 0) return (struct cpu_part){0, choice->low};
  size_t first = choice->low + (size_t)(i - 1) * choice->middle;
  bool is_last = i == choice->channels - 1;
  return (struct cpu_part){first, is_last ? choice->high : choice->middle};
}
