#ifndef PLUGINS_TRACE_STRINGS_H
#define PLUGINS_TRACE_STRINGS_H

/* Texts with the ids they have in StringIds. */

#include <stddef.h>
#include <stdint.h>

struct strings_entry {
  char *text; /* NULL: a free place */
  uint64_t hash;
  int64_t id;
  int64_t demangled, brief; /* ids, 0 until somebody asked */
};

struct strings {
  struct strings_entry *entries;
  size_t room, count; /* room is a power of two, or 0 */
};

/* The text's entry; a new one has id 0, for the caller to fill. Valid until the next call.
   NULL if memory is short. */
struct strings_entry *strings_find(struct strings *strings, const char *text);

void strings_free(struct strings *strings);

#endif
