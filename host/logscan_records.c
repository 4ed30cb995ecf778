#include "host/logscan_parts.h"

#include <stdlib.h>
#include <string.h>

/* Limits keep the memory constant: at most some 20 MiB for a log of any size. */
enum { MOST_STRINGS = 1 << 16, MOST_STRING_BYTES = 1 << 21, FIRST_ROOM = 1 << 8 };

static int most_records(int topic) {
  switch (topic) {
    case LOGSCAN_OPERATION: return 1 << 14;
    case LOGSCAN_OTHER: return 1 << 10;
    default: return 1 << 13;
  }
}

static uint64_t mix(uint64_t h) {
  h ^= h >> 32;
  h *= 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

/* Eight bytes at a time; keys are 56 bytes, most strings under 32. */
static uint64_t hash_bytes(const char *text, size_t length) {
  uint64_t h = length, part;
  for (; length >= 8; text += 8, length -= 8) {
    memcpy(&part, text, 8);
    h = mix(h ^ part);
  }
  part = 0;
  memcpy(&part, text, length);
  return mix(h ^ part);
}

/* An index entry: most misses are seen without a look at what it points to. */
static uint64_t entry_of(uint64_t hash, int id) {
  return (hash & 0xffffffff00000000u) | (uint64_t)(id + 1);
}

static bool may_be(uint64_t entry, uint64_t hash) {
  return (entry ^ hash) >> 32 == 0;
}

static int id_of(uint64_t entry) {
  return (int)(entry & 0xffffffffu) - 1;
}

static void enter(uint64_t *index, int slots, uint64_t hash, int id) {
  uint64_t mask = (uint64_t)slots - 1, at = hash;
  while (index[at & mask]) at++;
  index[at & mask] = entry_of(hash, id);
}

/* Doubles an index and enters all ids again; `hash_of` gives an id's hash. */
static int rehash(uint64_t **index, int *slots, int count, const void *owner,
                  uint64_t (*hash_of)(const void *owner, int id)) {
  int wider = *slots ? *slots * 2 : FIRST_ROOM * 2;
  uint64_t *fresh = calloc((size_t)wider, sizeof *fresh);
  if (!fresh) return -1;
  for (int id = 0; id < count; id++) enter(fresh, wider, hash_of(owner, id), id);
  free(*index);
  *index = fresh;
  *slots = wider;
  return 0;
}

static uint64_t string_hash(const void *owner, int id) {
  const struct logscan_strings *s = owner;
  return hash_bytes(s->bytes + s->offsets[id], s->lengths[id]);
}

static int grow(void **array, size_t room, size_t each) {
  void *wider = realloc(*array, room * each);
  if (!wider) return -1;
  *array = wider;
  return 0;
}

/* Room for one more string of this length. Strings move when the bytes grow: an id stays.
 */
static int strings_grow(struct logscan_strings *s, size_t length) {
  if (s->count == MOST_STRINGS || s->used + length > MOST_STRING_BYTES) return -1;
  if (s->count * 2 >= s->slots && rehash(&s->index, &s->slots, s->count, s, string_hash)) {
    return -1;
  }
  if (s->count == s->room) {
    size_t room = s->room ? (size_t)s->room * 2 : FIRST_ROOM;
    if (grow((void **)&s->offsets, room, sizeof *s->offsets)) return -1;
    if (grow((void **)&s->lengths, room, sizeof *s->lengths)) return -1;
    s->room = (int)room;
  }
  if (!s->bytes || s->used + length > s->size) {
    size_t size = s->size * 2 + length + 4096;
    if (grow((void **)&s->bytes, size, 1)) return -1;
    s->size = size;
  }
  return 0;
}

int logscan_strings_add(struct logscan_strings *s, const char *text, size_t length) {
  uint64_t hash = hash_bytes(text, length), mask = (uint64_t)s->slots - 1, entry;
  for (uint64_t at = hash; s->slots && (entry = s->index[at & mask]); at++) {
    int id = id_of(entry);
    if (may_be(entry, hash) && s->lengths[id] == length &&
        !memcmp(s->bytes + s->offsets[id], text, length)) {
      return id;
    }
  }
  if (strings_grow(s, length)) return -1;
  enter(s->index, s->slots, hash, s->count);
  s->offsets[s->count] = (uint32_t)s->used;
  s->lengths[s->count] = (uint32_t)length;
  memcpy(s->bytes + s->used, text, length);
  s->used += length;
  return s->count++;
}

static uint64_t record_hash(const void *owner, int row) {
  const struct logscan_records *r = owner;
  return hash_bytes((const char *)&r->rows[row].key, sizeof r->rows[row].key);
}

static int records_grow(struct logscan_records *r) {
  if (r->count * 2 >= r->slots && rehash(&r->index, &r->slots, r->count, r, record_hash)) {
    return -1;
  }
  if (r->count < r->room) return 0;
  size_t room = r->room ? (size_t)r->room * 2 : FIRST_ROOM;
  if (grow((void **)&r->rows, room, sizeof *r->rows)) return -1;
  r->room = (int)room;
  return 0;
}

/* A kind that is full keeps counting what it knows; new ones are the caller's overflow. */
static int records_insert(struct logscan_records *r, const struct logscan_key *key,
                          uint64_t hash) {
  int topic = key->topic;
  if (r->counts[topic] == most_records(topic) || records_grow(r)) return -1;
  enter(r->index, r->slots, hash, r->count);
  r->counts[topic]++;
  r->rows[r->count] = (struct logscan_record){.key = *key};
  return r->count++;
}

/* Operations keep the first and the last value, all else the range. */
static void keep(struct logscan_record *row, uint64_t value) {
  if (row->count == 1) row->low = row->high = value;
  if (row->key.topic == LOGSCAN_OPERATION || value > row->high) row->high = value;
  if (row->key.topic != LOGSCAN_OPERATION && value < row->low) row->low = value;
}

static int records_find(const struct logscan_records *r, const struct logscan_key *key,
                        uint64_t hash) {
  uint64_t mask = (uint64_t)r->slots - 1, entry;
  for (uint64_t at = hash; r->slots && (entry = r->index[at & mask]); at++) {
    int row = id_of(entry);
    if (may_be(entry, hash) && !memcmp(&r->rows[row].key, key, sizeof *key)) return row;
  }
  return -1;
}

int logscan_records_add(struct logscan_records *r, const struct logscan_key *key,
                        uint64_t line, uint64_t value) {
  uint64_t hash = hash_bytes((const char *)key, sizeof *key);
  int row = records_find(r, key, hash);
  if (row < 0) row = records_insert(r, key, hash);
  if (row < 0) return -1;
  struct logscan_record *record = &r->rows[row];
  if (!record->count++) record->first_line = line;
  record->last_line = line;
  keep(record, value);
  return row;
}
