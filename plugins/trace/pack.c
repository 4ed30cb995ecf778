#include "plugins/trace/pack.h"

#include <string.h>

struct head {
  uint32_t table, set, texts, bytes;
};

static size_t rounded(size_t bytes) {
  return (bytes + 7) & ~(size_t)7;
}

/* With its NUL, behind its length. */
static size_t text_size(const char *text) {
  return rounded(sizeof(uint64_t) + strnlen(text ? text : "", PACK_TEXT_MOST) + 1);
}

size_t pack_size(const struct trace_row *row) {
  size_t bytes = sizeof(struct head);
  for (int i = 0; i < TRACE_COLUMNS; i++) {
    if (!(row->set & 1u << i)) continue;
    bytes += row->texts & 1u << i ? text_size(row->cell[i].s) : sizeof(uint64_t);
  }
  return bytes;
}

static uint8_t *pack_text(uint8_t *out, const char *text) {
  const uint64_t length = strnlen(text ? text : "", PACK_TEXT_MOST);
  memcpy(out, &length, sizeof length);
  if (text) memcpy(out + sizeof length, text, length);
  out[sizeof length + length] = '\0';
  return out + rounded(sizeof length + length + 1);
}

void pack_row(const struct trace_row *row, uint8_t *out) {
  const struct head head = {
    (uint32_t)row->table, row->set, row->texts, (uint32_t)pack_size(row)};
  memcpy(out, &head, sizeof head);
  out += sizeof head;
  for (int i = 0; i < TRACE_COLUMNS; i++) {
    if (!(row->set & 1u << i)) continue;
    if (row->texts & 1u << i) {
      out = pack_text(out, row->cell[i].s);
      continue;
    }
    memcpy(out, &row->cell[i], sizeof row->cell[i]);
    out += sizeof row->cell[i];
  }
}

size_t pack_read(const uint8_t *data, struct trace_row *row) {
  struct head head;
  memcpy(&head, data, sizeof head);
  *row = (struct trace_row){(enum trace_table)head.table, head.set, head.texts, {{0}}};
  const uint8_t *at = data + sizeof head;
  for (int i = 0; i < TRACE_COLUMNS; i++) {
    if (!(head.set & 1u << i)) continue;
    uint64_t word;
    memcpy(&word, at, sizeof word);
    if (head.texts & 1u << i) {
      row->cell[i].s = (const char *)at + sizeof word;
      at += rounded(sizeof word + word + 1);
      continue;
    }
    memcpy(&row->cell[i], &word, sizeof word);
    at += sizeof word;
  }
  return head.bytes;
}
