#include "host/logscan_parts.h"

#include <string.h>

/* Telling messages apart by their first words. Source: the format strings of NCCL 2.4 to
   2.30. */

const char *const logscan_topics[LOGSCAN_TOPICS] = {
  [LOGSCAN_NONE] = "none",
  [LOGSCAN_TEXT] = "text",
  [LOGSCAN_ISSUE] = "issue",
  [LOGSCAN_OPERATION] = "operation",
  [LOGSCAN_SELECTION] = "selection",
  [LOGSCAN_CONNECTION] = "connection",
  [LOGSCAN_LINK] = "link",
  [LOGSCAN_OTHER] = "other",
  [LOGSCAN_WARN] = "warn",
  [LOGSCAN_CHANNELS] = "channels",
  [LOGSCAN_CONNECTED] = "connected",
  [LOGSCAN_DRIVER] = "driver",
  [LOGSCAN_ENV] = "env",
  [LOGSCAN_GRAPH] = "graph",
  [LOGSCAN_HOPS] = "hops",
  [LOGSCAN_INIT] = "init",
  [LOGSCAN_MATRIX] = "matrix",
  [LOGSCAN_NETWORK] = "network",
  [LOGSCAN_NODE] = "node",
  [LOGSCAN_ORDER] = "order",
  [LOGSCAN_PATHS] = "paths",
  [LOGSCAN_PLUGIN] = "plugin",
  [LOGSCAN_SYSTEM] = "system",
  [LOGSCAN_TABLE] = "table",
  [LOGSCAN_THRESHOLDS] = "thresholds",
  [LOGSCAN_TIMINGS] = "timings",
  [LOGSCAN_TREES] = "trees",
  [LOGSCAN_VERSION] = "version",
};

/* `within` must also occur, for words that other messages begin with too. */
static const struct {
  const char *start, *within;
  enum logscan_topic topic;
} rules[] = {
  {"+ ", "[", LOGSCAN_NODE},
  {"=== System", NULL, LOGSCAN_SYSTEM},
  {"====", NULL, LOGSCAN_SYSTEM},
  {"Algorithm ", "|", LOGSCAN_TABLE},
  {"AllGather |", NULL, LOGSCAN_TABLE},
  {"AllReduce |", NULL, LOGSCAN_TABLE},
  {"Broadcast |", NULL, LOGSCAN_TABLE},
  {"CPU/", " (", LOGSCAN_NODE},
  {"Channel ", " : ", LOGSCAN_ORDER},
  {"Closing profiler plugin", NULL, LOGSCAN_PLUGIN},
  {"Closing tuner", NULL, LOGSCAN_PLUGIN},
  {"Connected ", NULL, LOGSCAN_CONNECTED},
  {"Could not find a path for pattern", NULL, LOGSCAN_GRAPH},
  {"Enabled NCCL Func/Proto/Algo Matrix", NULL, LOGSCAN_MATRIX},
  {"External profiler plugin", NULL, LOGSCAN_PLUGIN},
  {"External tuner plugin", NULL, LOGSCAN_PLUGIN},
  {"GPU/", " :", LOGSCAN_PATHS},
  {"Init timings", NULL, LOGSCAN_TIMINGS},
  {"Latency/AlgBw |", NULL, LOGSCAN_TABLE},
  {"Max NThreads |", NULL, LOGSCAN_TABLE},
  {"NCCL version ", NULL, LOGSCAN_VERSION},
  {"NCCL git version ", NULL, LOGSCAN_VERSION},
  {"NCCL_", " set by environment", LOGSCAN_ENV},
  {"NCCL_TUNER_PLUGIN set to", NULL, LOGSCAN_PLUGIN},
  {"NET/", " :GPU/", LOGSCAN_PATHS},
  {"NET/", " :NET/", LOGSCAN_PATHS},
  {"NVS/", " :", LOGSCAN_PATHS},
  {"Opened tuner", NULL, LOGSCAN_PLUGIN},
  {"PROFILER/Plugin", NULL, LOGSCAN_PLUGIN},
  {"Pattern ", NULL, LOGSCAN_GRAPH},
  {"Profiler event mask", NULL, LOGSCAN_PLUGIN},
  {"Profiler init failed", NULL, LOGSCAN_PLUGIN},
  {"Protocol ", "|", LOGSCAN_TABLE},
  {"Reduce |", NULL, LOGSCAN_TABLE},
  {"ReduceScatter |", NULL, LOGSCAN_TABLE},
  {"Successfully loaded external profiler", NULL, LOGSCAN_PLUGIN},
  {"Successfully loaded external tuner", NULL, LOGSCAN_PLUGIN},
  {"TUNER/Plugin", NULL, LOGSCAN_PLUGIN},
  {"Trees", NULL, LOGSCAN_TREES},
  {"Tuner: ", NULL, LOGSCAN_PLUGIN},
  {"Using network ", NULL, LOGSCAN_NETWORK},
  {"Using tuner plugin", NULL, LOGSCAN_PLUGIN},
  {"[Rank ", " comm ", LOGSCAN_INIT},
  {"comm ", " rank ", LOGSCAN_INIT},
  {"cudaDriverVersion ", NULL, LOGSCAN_DRIVER},
  {"ncclComm", " comm ", LOGSCAN_INIT},
  {"threadThresholds ", NULL, LOGSCAN_THRESHOLDS},
};

/* What begins with a number: "24 coll channels, ...", "10 : GPU/0 GPU/1". */
static enum logscan_topic numbered(const char *text, size_t length) {
  size_t at = 0;
  while (at < length && text[at] >= '0' && text[at] <= '9') at++;
  if (at == length || text[at] != ' ') return LOGSCAN_OTHER;
  if (memmem(text + at, length - at, " coll channels", 14)) return LOGSCAN_CHANNELS;
  bool is_hops = length - at > 3 && text[at + 1] == ':' && text[at + 2] == ' ';
  return is_hops ? LOGSCAN_HOPS : LOGSCAN_OTHER;
}

enum logscan_topic logscan_classify(const char *text, size_t length) {
  while (length && *text == ' ') text++, length--;
  if (!length) return LOGSCAN_OTHER;
  if (*text >= '0' && *text <= '9') return numbered(text, length);
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    const char *start = rules[i].start, *within = rules[i].within;
    if (*start != *text) continue;
    size_t own = strlen(start);
    if (own > length || memcmp(start, text, own) != 0) continue;
    if (!within || memmem(text, length, within, strlen(within))) return rules[i].topic;
  }
  return LOGSCAN_OTHER;
}

enum { MOST_SHAPE = 96 };

static bool is_number_part(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') ||
         c == 'x';
}

/* A word with a digit in it stands for any number: 0x7f00, 3[4], 64. */
uint64_t logscan_shape(const char *text, size_t length) {
  uint64_t h = 14695981039346656037u;
  if (length > MOST_SHAPE) length = MOST_SHAPE;
  for (size_t at = 0; at < length;) {
    size_t end = at;
    bool has_digit = false;
    for (; end < length && is_number_part(text[end]); end++) {
      has_digit |= text[end] >= '0' && text[end] <= '9';
    }
    if (has_digit) {
      h = (h ^ '#') * 1099511628211u;
      at = end;
    } else {
      h = (h ^ (unsigned char)text[at]) * 1099511628211u;
      at++;
    }
  }
  return h;
}
