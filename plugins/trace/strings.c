#include "plugins/trace/strings.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_MIN = 1024 };

/* Eight bytes a step: kernel names are long, and each record has one. */
static uint64_t hash_of(const char *text, size_t length) {
  uint64_t hash = length * 0x9e3779b97f4a7c15u;
  for (size_t at = 0; at < length; at += sizeof hash) {
    const size_t left = length - at;
    uint64_t word = 0;
    memcpy(&word, text + at, left < sizeof word ? left : sizeof word);
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

/* The text's place, or the free one where it belongs. */
static struct strings_entry *place(const struct strings *s, const char *text,
                                   uint64_t hash) {
  for (size_t at = hash & (s->room - 1);; at = (at + 1) & (s->room - 1)) {
    struct strings_entry *e = &s->entries[at];
    if (!e->text || (e->hash == hash && strcmp(e->text, text) == 0)) return e;
  }
}

static int grow(struct strings *s) {
  struct strings larger = {.room = s->room ? 2 * s->room : ROOM_MIN, .count = s->count};
  larger.entries = calloc(larger.room, sizeof *larger.entries);
  if (!larger.entries) return -1;
  for (size_t i = 0; i < s->room; i++) {
    const struct strings_entry *e = &s->entries[i];
    if (e->text) *place(&larger, e->text, e->hash) = *e;
  }
  free(s->entries);
  *s = larger;
  return 0;
}

struct strings_entry *strings_find(struct strings *s, const char *text) {
  const size_t length = strlen(text);
  const uint64_t hash = hash_of(text, length);
  if (2 * s->count >= s->room && grow(s)) return NULL;
  struct strings_entry *e = place(s, text, hash);
  if (e->text) return e;
  e->text = malloc(length + 1);
  if (!e->text) return NULL;
  memcpy(e->text, text, length + 1);
  e->hash = hash;
  s->count++;
  return e;
}

void strings_free(struct strings *s) {
  for (size_t i = 0; i < s->room; i++) free(s->entries[i].text);
  free(s->entries);
  *s = (struct strings){0};
}
