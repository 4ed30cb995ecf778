#include "host/logscan_parts.h"

#include <stdlib.h>
#include <string.h>

/* The kinds of which a log has millions: operations, selections, connections, neighbours.
 */

struct cursor {
  const char *at, *end;
};

static bool literal(struct cursor *c, const char *word) {
  size_t length = strlen(word);
  if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) return false;
  c->at += length;
  return true;
}

static void spaces(struct cursor *c) {
  while (c->at < c->end && *c->at == ' ') c->at++;
}

/* 19 digits always fit; a longer number is not one that NCCL prints. */
static bool decimal(struct cursor *c, uint64_t *value) {
  const char *first = c->at;
  uint64_t n = 0;
  for (; c->at < c->end && *c->at >= '0' && *c->at <= '9' && c->at - first < 19; c->at++) {
    n = n * 10 + (uint64_t)(*c->at - '0');
  }
  *value = n;
  return c->at > first;
}

static bool integer(struct cursor *c, int32_t *value) {
  uint64_t n;
  bool is_negative = c->at < c->end && *c->at == '-';
  if (is_negative) c->at++;
  if (!decimal(c, &n) || n > INT32_MAX) return false;
  *value = is_negative ? -(int32_t)n : (int32_t)n;
  return true;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool hexadecimal(struct cursor *c, uint64_t *value) {
  const char *first = c->at;
  uint64_t n = 0;
  for (; c->at < c->end && c->at - first < 16 && hex_digit(*c->at) >= 0; c->at++) {
    n = n << 4 | (uint64_t)hex_digit(*c->at);
  }
  *value = n;
  return c->at > first;
}

/* glibc prints a null pointer as (nil). */
static bool pointer(struct cursor *c, uint64_t *value) {
  *value = 0;
  if (literal(c, "(nil)")) return true;
  return literal(c, "0x") && hexadecimal(c, value);
}

/* Up to the next blank. */
static bool word(struct cursor *c, struct cursor *w) {
  w->at = c->at;
  while (c->at < c->end && *c->at != ' ') c->at++;
  w->end = c->at;
  return w->end > w->at;
}

/* -1 where no more strings fit: the record then lacks the name, and still counts. */
static int keep(struct logscan_book *b, struct cursor w) {
  return logscan_strings_add(&b->strings, w.at, (size_t)(w.end - w.at));
}

/* " sendbuff 0x.. recvbuff 0x.. count 4 datatype 7 op 0 root 0 comm 0x.." */
static bool operation_fields(struct cursor *c, struct logscan_key *key) {
  struct cursor send, receive; /* only whether they are the same counts */
  if (!literal(c, " sendbuff ") || !word(c, &send)) return false;
  if (!literal(c, " recvbuff ") || !word(c, &receive)) return false;
  if (!literal(c, " count ") || !decimal(c, &key->of.operation.count)) return false;
  if (!literal(c, " datatype ") || !integer(c, &key->of.operation.datatype)) return false;
  if (!literal(c, " op ") || !integer(c, &key->of.operation.op)) return false;
  if (!literal(c, " root ") || !integer(c, &key->of.operation.root)) return false;
  if (!literal(c, " comm ") || !pointer(c, &key->of.operation.comm)) return false;
  size_t length = (size_t)(send.end - send.at);
  key->of.operation.in_place = length == (size_t)(receive.end - receive.at) &&
                               memcmp(send.at, receive.at, length) == 0;
  return true;
}

/* "AllReduce: opCount 1f sendbuff ... [nranks=4] stream 0x55bb00", 2.4 and newer. */
static enum logscan_parsed operation(struct logscan_book *b, struct cursor name,
                                     struct cursor c, struct logscan_key *key,
                                     uint64_t *op_count) {
  key->topic = LOGSCAN_OPERATION;
  if (!hexadecimal(&c, op_count) || !operation_fields(&c, key)) return PARSED_CUT;
  key->name = keep(b, name);
  key->of.operation.ranks = -1; /* cut after the communicator: still an operation */
  if (!literal(&c, " [nranks=")) return PARSED_YES;
  if (!integer(&c, &key->of.operation.ranks)) key->of.operation.ranks = -1;
  return PARSED_YES;
}

static bool channel_range(struct cursor *c, struct logscan_key *key) {
  return literal(c, "channel{Lo..Hi}={") && integer(c, &key->of.selection.low) &&
         literal(c, "..") && integer(c, &key->of.selection.high);
}

static bool predicted_time(struct cursor *c, struct logscan_key *key) {
  if (!literal(c, "time ")) return false;
  char text[32] = ""; /* strtod wants an end */
  size_t length = (size_t)(c->end - c->at);
  memcpy(text, c->at, length < sizeof text ? length : sizeof text - 1);
  char *end;
  key->of.selection.time_us = strtod(text, &end);
  return end > text;
}

/* "Algo RING proto LL channel{Lo..Hi}={0..3}", or numbers and "time 12.5" up to 2.23. */
static bool plain_choice(struct logscan_book *b, struct cursor c, struct logscan_key *key) {
  struct cursor algorithm, protocol;
  if (!literal(&c, "Algo ") || !word(&c, &algorithm)) return false;
  if (!literal(&c, " proto ") || !word(&c, &protocol)) return false;
  spaces(&c);
  key->of.selection.low = key->of.selection.high = -1;
  if (!channel_range(&c, key) && !predicted_time(&c, key)) return false;
  key->of.selection.algorithm = keep(b, algorithm);
  key->of.selection.protocol = keep(b, protocol);
  return true;
}

/* 2.27 and newer: "Kernel NAME nchannels 8 nthreads 512" */
static bool symmetric_choice(struct logscan_book *b, struct cursor c,
                             struct logscan_key *key) {
  struct cursor kernel;
  if (!literal(&c, "Kernel ") || !word(&c, &kernel)) return false;
  if (!literal(&c, " nchannels ") || !integer(&c, &key->of.selection.high)) return false;
  if (!literal(&c, " nthreads ") || !integer(&c, &key->of.selection.threads)) return false;
  key->of.selection.high--; /* channels 0 to n - 1, as the other form says it */
  key->of.selection.form = LOGSCAN_SYMMETRIC;
  key->of.selection.algorithm = keep(b, kernel);
  key->of.selection.protocol = -1;
  return true;
}

/* 2.29 and newer: "cudaMemcpy..." or "RMA proxy + CE", to the end of the line */
static bool copy_choice(struct logscan_book *b, struct cursor c, struct logscan_key *key) {
  struct cursor probe = c;
  if (!literal(&probe, "cudaMemcpy") && !literal(&probe, "RMA ")) return false;
  key->of.selection.form = LOGSCAN_COPY_ENGINE;
  key->of.selection.algorithm = keep(b, c);
  key->of.selection.protocol = key->of.selection.low = key->of.selection.high = -1;
  return true;
}

/* "[AllReduce: ]65536 Bytes -> ..."; published copies pad or drop the blanks. */
static enum logscan_parsed selection(struct logscan_book *b, struct cursor name,
                                     struct cursor c, struct logscan_key *key) {
  key->topic = LOGSCAN_SELECTION;
  key->of.selection.time_us = -1;
  if (!decimal(&c, &key->of.selection.bytes)) return PARSED_NO;
  spaces(&c);
  if (!literal(&c, "Bytes")) return PARSED_NO;
  spaces(&c);
  if (c.at == c.end) return PARSED_CUT;
  if (!literal(&c, "->")) return PARSED_NO;
  spaces(&c);
  key->name = name.end > name.at ? keep(b, name) : -1;
  bool is_whole =
    plain_choice(b, c, key) || symmetric_choice(b, c, key) || copy_choice(b, c, key);
  return is_whole ? PARSED_YES : PARSED_CUT;
}

static bool peer(struct cursor *c, int32_t *rank, int64_t *id) {
  uint64_t bracket;
  *id = -1;
  if (!integer(c, rank)) return false;
  if (!literal(c, "[")) return true;
  if (!hexadecimal(c, &bracket) || !literal(c, "]")) return false;
  *id = (int64_t)(bracket & INT64_MAX);
  return true;
}

/* "0[0] -> 1[1] [send] via P2P/IPC" */
static enum logscan_parsed connection(struct logscan_book *b, struct cursor c,
                                      struct logscan_key *key) {
  key->topic = LOGSCAN_CONNECTION;
  if (!peer(&c, &key->of.connection.from, &key->of.connection.from_id)) return PARSED_NO;
  if (!literal(&c, " -> ")) return PARSED_NO;
  if (!peer(&c, &key->of.connection.to, &key->of.connection.to_id)) return PARSED_CUT;
  if (literal(&c, " [send]"))
    key->of.connection.direction = 1;
  else if (literal(&c, " [receive]"))
    key->of.connection.direction = 2;
  if (!literal(&c, " via ")) return PARSED_NO; /* "Ring 00 : 0 -> 1 -> 2" */
  while (c.end > c.at && c.end[-1] == ' ') c.end--;
  if (c.end == c.at) return PARSED_CUT;
  key->of.connection.via = keep(b, c);
  return PARSED_YES;
}

/* "0 -> 1 -> 2" of a ring, "0 -> 1 -> 2/3/-1" of a tree */
static enum logscan_parsed neighbours(struct cursor c, bool is_tree,
                                      struct logscan_key *key) {
  memset(&key->of, 0, sizeof key->of);
  key->topic = LOGSCAN_LINK;
  key->of.link.is_tree = is_tree;
  key->of.link.down[1] = key->of.link.down[2] = -1;
  if (!integer(&c, &key->of.link.up) || !literal(&c, " -> ")) return PARSED_CUT;
  if (!integer(&c, &key->of.link.rank) || !literal(&c, " -> ")) return PARSED_CUT;
  if (!integer(&c, &key->of.link.down[0])) return PARSED_CUT;
  for (int i = 1; is_tree && i < 3; i++) {
    if (!literal(&c, "/") || !integer(&c, &key->of.link.down[i])) return PARSED_CUT;
  }
  return PARSED_YES;
}

/* "Channel 03/0 : ", "Ring 00 : ", "Tree 1 : ": the channel, then who talks to whom. The
   order of all ranks, "Channel 00/24 : 0 1 2", is the caller's. */
static enum logscan_parsed channel(struct logscan_book *b, struct cursor c,
                                   struct logscan_key *key, uint64_t *number) {
  bool is_tree = literal(&c, "Tree ");
  bool is_ring = !is_tree && literal(&c, "Ring ");
  uint64_t second;
  if (!is_tree && !is_ring && !literal(&c, "Channel ")) return PARSED_NO;
  if (!decimal(&c, number)) return PARSED_NO;
  if (literal(&c, "/") && !decimal(&c, &second)) return PARSED_NO;
  if (!literal(&c, " : ")) return PARSED_NO;
  enum logscan_parsed is = is_tree ? PARSED_NO : connection(b, c, key);
  if (is != PARSED_NO || !(is_tree || is_ring)) return is;
  return neighbours(c, is_tree, key);
}

enum { MOST_NAME = 48 };

enum logscan_parsed logscan_parse(struct logscan_book *b, const char *text, size_t length,
                                  struct logscan_key *key, uint64_t *value) {
  struct cursor c = {text, text + length}, none = {text, text};
  *key = (struct logscan_key){.name = -1};
  *value = 0;
  if (c.at == c.end) return PARSED_NO;
  if (*c.at >= '0' && *c.at <= '9') return selection(b, none, c, key);
  enum logscan_parsed is = channel(b, c, key, value);
  if (is != PARSED_NO) return is;
  size_t reach = length < MOST_NAME ? length : MOST_NAME;
  const char *colon = memchr(text, ':', reach);
  if (!colon) return PARSED_NO;
  struct cursor name = {text, colon};
  c.at = colon + 1;
  if (!literal(&c, " ")) return PARSED_NO;
  if (literal(&c, "opCount ")) return operation(b, name, c, key, value);
  spaces(&c);
  return selection(b, name, c, key);
}
