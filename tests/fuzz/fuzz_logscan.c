#include "host/logscan.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Any bytes, in one piece and cut into pieces: both tell the same. */

struct told {
  uint64_t events, hash;
  struct logscan *scan;
};

static void mix(struct told *t, const void *bytes, size_t length) {
  const unsigned char *at = bytes;
  for (size_t i = 0; i < length; i++) t->hash = (t->hash ^ at[i]) * 1099511628211u;
}

static void take(struct told *t) {
  struct logscan_event e;
  while (logscan_next(t->scan, &e) != LOGSCAN_NONE) {
    t->events++;
    mix(t, &e.topic, sizeof e.topic);
    mix(t, &e.line, sizeof e.line);
    mix(t, e.text, e.length);
    mix(t, e.place, e.place_length);
    if (e.thread >= 0) assert(logscan_thread(t->scan, e.thread)->pid >= 0);
    if (e.record >= 0) assert(logscan_record(t->scan, e.record)->count > 0);
  }
}

/* Copies each piece, so that a sanitizer sees any look beyond it. */
static struct told scan(const uint8_t *data, size_t size, size_t piece) {
  struct told t = {.scan = logscan_new(true)};
  assert(t.scan);
  for (size_t at = 0; at < size; at += piece) {
    size_t length = size - at < piece ? size - at : piece;
    char *copy = malloc(length);
    assert(copy);
    memcpy(copy, data + at, length);
    logscan_give(t.scan, copy, length);
    take(&t);
    free(copy);
  }
  logscan_end(t.scan);
  take(&t);
  return t;
}

static void check_records(struct logscan *scan) {
  const struct logscan_totals *totals = logscan_totals(scan);
  for (int i = 0; i < totals->records; i++) {
    const struct logscan_record *r = logscan_record(scan, i);
    size_t length = 0;
    if (r->key.name >= 0) logscan_string(scan, r->key.name, &length);
    if (r->key.process >= 0) logscan_string(scan, r->key.process, &length);
    assert(r->first_line <= r->last_line && r->last_line <= totals->lines);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!size) return 0;
  struct told whole = scan(data + 1, size - 1, size),
              parts = scan(data + 1, size - 1, data[0] % 32 + 1u);
  assert(whole.events == parts.events && whole.hash == parts.hash);
  assert(logscan_totals(whole.scan)->records == logscan_totals(parts.scan)->records);
  check_records(whole.scan);
  logscan_free(whole.scan);
  logscan_free(parts.scan);
  return 0;
}
