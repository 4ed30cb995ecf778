#include "host/cpu/log_settings.h"
#include "host/cpu/log.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define DEFAULT_STAMP "[%F %T] "
#define DEFAULT_SUBSYSTEMS 0x1081ull /* INIT, ENV, BOOTSTRAP */

struct word {
  const char *name;
  uint64_t bits;
};

static const struct word levels[] = {
  {"VERSION", CPU_LOG_VERSION},
  {"WARN", CPU_LOG_WARN},
  {"INFO", CPU_LOG_INFO},
  {"ABORT", CPU_LOG_ABORT},
  {"TRACE", CPU_LOG_TRACE},
  {NULL, 0},
};

static const struct word level_bits[] = {
  {"VERSION", 1 << CPU_LOG_VERSION},
  {"WARN", 1 << CPU_LOG_WARN},
  {"INFO", 1 << CPU_LOG_INFO},
  {"ABORT", 1 << CPU_LOG_ABORT},
  {"TRACE", 1 << CPU_LOG_TRACE},
  {"ALL", UINT64_MAX},
  {NULL, 0},
};

static const struct word subsystems[] = {
  {"INIT", 0x1},
  {"COLL", 0x2},
  {"P2P", 0x4},
  {"SHM", 0x8},
  {"NET", 0x10},
  {"GRAPH", 0x20},
  {"TUNING", 0x40},
  {"ENV", 0x80},
  {"ALLOC", 0x100},
  {"CALL", 0x200},
  {"PROXY", 0x400},
  {"NVLS", 0x800},
  {"BOOTSTRAP", 0x1000},
  {"REG", 0x2000},
  {"PROFILE", 0x4000},
  {"RAS", 0x8000},
  {"ALL", UINT64_MAX},
  {NULL, 0},
};

/* 0 for a word that is not there. */
static uint64_t find_word(const struct word *words, const char *name, size_t length) {
  for (; words->name; words++) {
    if (strlen(words->name) == length && !strncasecmp(words->name, name, length)) {
      return words->bits;
    }
  }
  return 0;
}

/* "A,B" is those two, "^A,B" all but those; unknown words count for nothing, as in NCCL. */
static uint64_t parse_list(const char *text, const struct word *words) {
  const bool inverted = *text == '^';
  uint64_t bits = 0;
  for (text += inverted; *text; text += *text == ',') {
    const size_t length = strcspn(text, ",");
    bits |= find_word(words, text, length);
    text += length;
  }
  return inverted ? ~bits : bits;
}

/* "%h", "%p" and "%%" are replaced. Once `path` is full, the rest is left out. */
static void expand_path(const char *text, const char *host, char *path, size_t bytes) {
  char number[16];
  size_t length = 0;
  snprintf(number, sizeof number, "%d", (int)getpid());
  for (; *text && length + 1 < bytes; text++) {
    const char kind = *text == '%' ? text[1] : 0;
    const char *what = kind == 'h' ? host : kind == 'p' ? number : NULL;
    if (what) {
      length += (size_t)snprintf(path + length, bytes - length, "%s", what);
      if (length >= bytes) length = bytes - 1;
    } else {
      path[length++] = *text;
    }
    text += what || kind == '%';
  }
  path[length] = 0;
}

static FILE *open_file(const struct cpu_log_settings *s) {
  const char *text = getenv("NCCL_DEBUG_FILE");
  char path[PATH_MAX] = "";
  if (!text || s->level <= CPU_LOG_VERSION) return stdout;
  expand_path(text, s->host, path, sizeof path);
  FILE *file = *path ? fopen(path, "we") : NULL;
  return file ? file : stdout;
}

static void read_stamp(struct cpu_log_settings *s) {
  const char *list = getenv("NCCL_DEBUG_TIMESTAMP_LEVELS");
  const char *format = getenv("NCCL_DEBUG_TIMESTAMP_FORMAT");
  s->stamped = list ? (unsigned)parse_list(list, level_bits) : 1u << CPU_LOG_WARN;
  if (!format || strlen(format) >= sizeof s->stamp - 9) format = DEFAULT_STAMP;
  strcpy(s->stamp, format);
  for (char *c = s->stamp; *c; c++) {
    if (*c == '_') *c = ' '; /* a space is hard to give on a command line */
  }
}

void cpu_log_settings_read(struct cpu_log_settings *s) {
  const char *level = getenv("NCCL_DEBUG"), *list = getenv("NCCL_DEBUG_SUBSYS");
  s->level = level ? (int)find_word(levels, level, strlen(level)) : 0;
  s->subsystems = list ? parse_list(list, subsystems) : DEFAULT_SUBSYSTEMS;
  if (gethostname(s->host, sizeof s->host)) strcpy(s->host, "unknown");
  s->host[sizeof s->host - 1] = 0;
  s->host[strcspn(s->host, ".")] = 0;
  read_stamp(s);
  s->file = open_file(s);
}

/* The first "%1f" to "%9f" of the format becomes digits of the second. */
static void insert_digits(const char *format, long nanoseconds, char *out, size_t bytes) {
  const char *at = format;
  while (*at && !(at[0] == '%' && at[1] >= '1' && at[1] <= '9' && at[2] == 'f')) {
    at += at[0] == '%' && at[1] ? 2 : 1;
  }
  if (!*at) {
    snprintf(out, bytes, "%s", format);
    return;
  }
  char digits[16];
  snprintf(digits, sizeof digits, "%09ld", nanoseconds);
  snprintf(
    out, bytes, "%.*s%.*s%s", (int)(at - format), format, at[1] - '0', digits, at + 3);
}

size_t cpu_log_settings_stamp(const struct cpu_log_settings *s, const struct timespec *now,
                              char *out, size_t room) {
  char format[sizeof s->stamp + 16];
  struct tm calendar;
  localtime_r(&now->tv_sec, &calendar);
  insert_digits(s->stamp, now->tv_nsec, format, sizeof format);
  return *format ? strftime(out, room, format, &calendar) : 0;
}
