#include "host/cpu/enabled.h"
#include "host/cpu/env.h"
#include "host/cpu/fail.h"

#include <string.h>
#include <strings.h>

const char *const cpu_function_names[CPU_FUNCTIONS] = {
  [CPU_BROADCAST] = "Broadcast",
  [CPU_REDUCE] = "Reduce",
  [CPU_ALL_GATHER] = "AllGather",
  [CPU_REDUCE_SCATTER] = "ReduceScatter",
  [CPU_ALL_REDUCE] = "AllReduce",
  [CPU_SEND_TO] = "Send",
  [CPU_RECV_FROM] = "Recv",
  [CPU_ALL_TO_ALL] = "AlltoAll",
  [CPU_SCATTER] = "Scatter",
  [CPU_GATHER] = "Gather",
};
const char *const cpu_algorithm_names[CPU_ALGORITHMS] = {
  "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
const char *const cpu_protocol_names[CPU_PROTOCOLS] = {"LL", "LL128", "Simple"};

/* A word of the variable, not terminated. */
struct word {
  const char *at;
  int length;
};

/* The next word up to one of `ends`, which may repeat; false if there is none. */
static bool next_word(const char **text, const char *limit, char ends, struct word *word) {
  while (*text < limit && **text == ends) (*text)++;
  word->at = *text;
  while (*text < limit && **text != ends) (*text)++;
  word->length = (int)(*text - word->at);
  return word->length > 0;
}

static int find_name(struct word word, const char *const *names, int count) {
  for (int i = 0; i < count; i++) {
    if (strlen(names[i]) != (size_t)word.length) continue;
    if (strncasecmp(word.at, names[i], (size_t)word.length) == 0) return i;
  }
  return -1;
}

/* The variable and where its values go: a row of `count` for each function. */
struct list {
  const char *text;
  const char *const *names;
  int count;
  unsigned char *rows;
};

/* One function's row, by "A,B" or "^A,B". */
static ncclResult_t fill_row(const struct list *l, struct word names, int function) {
  const char *at = names.at, *limit = names.at + names.length;
  unsigned char *row = l->rows + function * l->count;
  const bool inverted = *at == '^';
  struct word name;
  at += inverted;
  memset(row, inverted, (size_t)l->count);
  while (next_word(&at, limit, ',', &name)) {
    const int i = find_name(name, l->names, l->count);
    if (i < 0) {
      return cpu_fail(ncclInvalidUsage,
                      "Unrecognized element token \"%.*s\" when parsing \"%s\"",
                      name.length,
                      name.at,
                      l->text);
    }
    row[i] = !inverted;
  }
  return ncclSuccess;
}

/* "names" for all functions, or "function:names". */
static ncclResult_t take_segment(const struct list *l, struct word segment) {
  const char *at = segment.at, *limit = segment.at + segment.length;
  struct word prefix = {0}, names;
  next_word(&at, limit, ':', &prefix);
  if (!next_word(&at, limit, ':', &names)) {
    if (segment.at != l->text) {
      return cpu_fail(ncclInvalidUsage,
                      "All entries except the first must have a prefix: \"%s\"",
                      l->text);
    }
    ncclResult_t rc = ncclSuccess;
    for (int f = 0; f < CPU_MODELLED && !rc; f++) rc = fill_row(l, prefix, f);
    return rc;
  }
  const int function = find_name(prefix, cpu_function_names, CPU_MODELLED);
  if (function >= 0) return fill_row(l, names, function);
  return cpu_fail(ncclInvalidUsage,
                  "Unrecognized prefix token \"%.*s\" when parsing \"%s\"",
                  prefix.length,
                  prefix.at,
                  l->text);
}

static ncclResult_t parse(const struct list *l) {
  const char *at = l->text, *limit = l->text + strlen(l->text);
  struct word segment;
  ncclResult_t rc = ncclSuccess;
  while (!rc && next_word(&at, limit, ';', &segment)) rc = take_segment(l, segment);
  return rc;
}

ncclResult_t cpu_enabled_read(struct cpu_enabled *e) {
  memset(e, 1, sizeof *e);
  for (int f = 0; f < CPU_MODELLED; f++) e->protocols[f][CPU_LL128] = 2;
  const struct list protocols = {
    cpu_env_text("NCCL_PROTO"), cpu_protocol_names, CPU_PROTOCOLS, &e->protocols[0][0]};
  ncclResult_t rc = protocols.text ? parse(&protocols) : ncclSuccess;
  if (rc) return rc;
  const struct list algorithms = {
    cpu_env_text("NCCL_ALGO"), cpu_algorithm_names, CPU_ALGORITHMS, &e->algorithms[0][0]};
  e->is_set = protocols.text || algorithms.text;
  return algorithms.text ? parse(&algorithms) : ncclSuccess;
}
