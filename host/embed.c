#include "host/embed.h"

#include <string.h>

const struct embedded *embed_find(const char *name) {
  for (const struct embedded *f = embedded_files; f->name; f++) {
    if (strcmp(f->name, name) == 0) return f;
  }
  return NULL;
}
