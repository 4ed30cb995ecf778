#include "host/logscan_parts.h"

#include <ctype.h>
#include <string.h>

/* Finding "HOST:PID:TID [DEV] NCCL INFO " anywhere in a line: NCCL writes without a lock in
   some versions, and an application's own half line may stand before it. */

enum { MOST_PLACE = 256, MOST_DIGITS = 18, MOST_STAMP = 64 };

static const struct {
  const char *word;
  size_t length;
  enum logscan_level level;
} levels[] = {
  {"INFO", 4, LEVEL_INFO},
  {"WARN", 4, LEVEL_WARN},
  {"TRACE", 5, LEVEL_TRACE},
  {"CALL", 4, LEVEL_CALL},
};

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_alpha(char c) {
  return isalpha((unsigned char)c) != 0;
}

static bool is_host(char c) {
  return is_digit(c) || is_alpha(c) || c == '.' || c == '-' || c == '_';
}

/* The digits that end just before `end`: their value, and where they begin. */
static bool digits_before(const char *line, size_t from, size_t end, size_t *begin,
                          int64_t *value) {
  size_t at = end;
  while (at > from && end - at < MOST_DIGITS && is_digit(line[at - 1])) at--;
  if (at == end) return false;
  *begin = at;
  *value = 0;
  for (; at < end; at++) *value = *value * 10 + (line[at] - '0');
  return true;
}

/* The level and its blank; a message may be empty, and its blank trimmed off. */
static bool level_at(const char *line, size_t length, size_t at, struct logscan_prefix *p) {
  for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
    size_t end = at + levels[i].length;
    if (end > length || memcmp(line + at, levels[i].word, levels[i].length) != 0) continue;
    if (end < length && line[end] != ' ') return false;
    p->level = levels[i].level;
    p->message = end < length ? end + 1 : end;
    return true;
  }
  return false;
}

/* What may stand between "[DEV] " and "NCCL": "FILE:LINE ", with " (FUNCTION)" from 2.30,
   "FUNCTION, LINE " of patched builds, "MS.ffffff FUNCTION:LINE " at TRACE. */
static bool is_place(const char *text, size_t length) {
  if (!length) return true;
  for (size_t i = 1; i < length; i++) {
    bool is_mark =
      text[i - 1] == ':' || (text[i - 1] == ' ' && i > 1 && text[i - 2] == ',');
    if (is_mark && is_digit(text[i])) return true;
  }
  return false;
}

/* Reads backwards from `end`, just after "[DEV]". */
static bool device_before(const char *line, size_t from, size_t end, size_t *begin,
                          struct logscan_prefix *p) {
  int64_t device;
  size_t at;
  if (end < from + 3 || line[end - 1] != ']') return false;
  if (!digits_before(line, from, end - 1, &at, &device) || device > 1 << 20) return false;
  bool is_negative = at > from && line[at - 1] == '-';
  if (is_negative) at--;
  if (at < from + 2 || line[at - 1] != '[' || line[at - 2] != ' ') return false;
  p->device = is_negative ? -1 : (int)device;
  *begin = at - 2;
  return true;
}

/* HOST:PID:TID before `end`; the host's first character may still be another's. */
static bool ids_before(const char *line, size_t from, size_t end,
                       struct logscan_prefix *p) {
  size_t tid, pid;
  if (!digits_before(line, from, end, &tid, &p->tid) || tid == from) return false;
  if (line[tid - 1] != ':') return false;
  if (!digits_before(line, from, tid - 1, &pid, &p->pid) || pid == from) return false;
  if (line[pid - 1] != ':') return false;
  size_t host = pid - 1;
  while (host > from && pid - 1 - host < LOGSCAN_HOST - 1 && is_host(line[host - 1]))
    host--;
  p->host = host;
  p->host_length = pid - 1 - host;
  return p->host_length > 0;
}

static bool is_known(const struct logscan_hosts *h, int i, const char *text,
                     size_t length) {
  return h->lengths[i] == length && memcmp(h->names[i], text, length) == 0;
}

/* Most lines come from the host of the line before. */
static bool find_known(struct logscan_hosts *h, const char *text, size_t length) {
  if (h->count && is_known(h, h->last, text, length)) return true;
  for (int i = 0; i < h->count; i++) {
    if (!is_known(h, i, text, length)) continue;
    h->last = i;
    return true;
  }
  return false;
}

/* The length of the longest known host that the text ends with; 0 if with none. */
static size_t known_suffix(const struct logscan_hosts *h, const char *text, size_t length) {
  size_t best = 0;
  for (int i = 0; i < h->count; i++) {
    size_t own = h->lengths[i];
    if (own < length && own > best && !memcmp(h->names[i], text + length - own, own)) {
      best = own;
    }
  }
  return best;
}

/* The length of a number that a row ended with, if a letter follows: "-1node0". */
static size_t glued_number(const char *text, size_t length) {
  size_t at = length && text[0] == '-' ? 1 : 0, first = at;
  while (at < length && is_digit(text[at])) at++;
  if (at == first) return 0;
  if (at < length && text[at] == '.') {
    at++;
    while (at < length && is_digit(text[at])) at++;
  }
  return at < length && is_alpha(text[at]) ? at : 0;
}

/* A full table only means that a glued host is no longer told from what precedes it. */
static void add_host(struct logscan_hosts *h, const char *text, size_t length) {
  if (h->count == LOGSCAN_HOSTS) return;
  memcpy(h->names[h->count], text, length);
  h->lengths[h->count] = (uint8_t)length;
  h->last = h->count++;
}

/* Is the host the first of its line, or the first after a launcher's prefix? */
static bool is_front(const char *line, size_t host) {
  return host == 0 || (*line != ' ' && logscan_is_launcher(line, host));
}

/* Cuts off what belongs to the text before the host. */
static void settle_host(struct logscan_hosts *h, const char *line,
                        struct logscan_prefix *p) {
  const char *text = line + p->host;
  if (find_known(h, text, p->host_length)) return;
  size_t cut = 0, suffix = 0;
  if (!is_front(line, p->host)) {
    suffix = known_suffix(h, text, p->host_length);
    cut = suffix ? p->host_length - suffix : glued_number(text, p->host_length);
  }
  /* "N/A" ends a row whose check was off; '/' is in no host */
  if (!cut && p->host > 1 && text[0] == 'A' && !memcmp(text - 2, "N/", 2)) cut = 1;
  p->host += cut;
  p->host_length -= cut;
  char before = p->host ? line[p->host - 1] : ' ';
  if (p->host_length && !suffix && (before == ' ' || before == ':')) {
    add_host(h, line + p->host, p->host_length);
  }
}

/* A time stamp of 2.26 and newer, "[2026-01-31 10:00:00] ", belongs to the message. */
static size_t stamp_start(const char *line, size_t from, size_t host) {
  if (host < from + 2 || line[host - 1] != ' ' || line[host - 2] != ']') return host;
  for (size_t at = host - 2; at > from && host - at < MOST_STAMP; at--) {
    char c = line[at - 1];
    if (c == '[') return at - 1;
    if (!is_digit(c) && !strchr("-:. TZ+/", c)) break;
  }
  return host;
}

/* Is the "NCCL" at `at` the end of a prefix that begins at or after `from`? */
static bool prefix_at(struct logscan_hosts *hosts, const char *line, size_t length,
                      size_t from, size_t at, struct logscan_prefix *p) {
  if (at < from + 2 || line[at - 1] != ' ' || !level_at(line, length, at + 5, p))
    return false;
  size_t ids = at - 1;
  p->device = -1;
  p->place = at;
  p->place_length = 0;
  p->end = at - 1;
  if (p->level != LEVEL_CALL || line[at - 2] == ']') {
    size_t lowest = at > from + MOST_PLACE ? at - MOST_PLACE : from;
    const char *bracket = memrchr(line + lowest, ']', at - 1 - lowest);
    if (!bracket || bracket[1] != ' ') return false;
    p->end = (size_t)(bracket - line) + 1;
    p->place = p->end + 1;
    p->place_length = at > p->place ? at - 1 - p->place : 0;
    if (!is_place(line + p->place, p->place_length)) return false;
    if (!device_before(line, from, p->end, &ids, p)) return false;
  }
  if (!ids_before(line, from, ids, p)) return false;
  settle_host(hosts, line, p);
  p->start = stamp_start(line, from, p->host);
  return p->host_length > 0;
}

/* "NCCL " is the rarest part of a prefix, so it is sought first, then read backwards. */
bool logscan_prefix_find(struct logscan_hosts *hosts, const char *line, size_t length,
                         size_t from, struct logscan_prefix *p) {
  size_t at = from;
  for (;;) {
    const char *found = memmem(line + at, length - at, "NCCL ", 5);
    if (!found) return false;
    at = (size_t)(found - line);
    if (prefix_at(hosts, line, length, from, at, p)) return true;
    at += 5;
  }
}

/* Past digits; `at` itself if there are none. */
static size_t skip_digits(const char *text, size_t length, size_t at) {
  while (at < length && is_digit(text[at])) at++;
  return at;
}

bool logscan_is_launcher(const char *text, size_t length) {
  while (length && text[length - 1] == ' ') length--;
  while (length && *text == ' ') text++, length--;
  if (!length) return true;
  size_t digits = skip_digits(text, length, 0);
  if (digits) return digits + 1 == length && text[digits] == ':'; /* srun -l: "3:" */
  if (*text == '[') {
    const char *close = memchr(text, ']', length);
    size_t rest = close ? (size_t)(close - text) + 1 : length;
    if (rest == length) return close != NULL;            /* hydra: "[3]" */
    return text[rest] == '<' && text[length - 1] == ':'; /* OpenMPI: "[1,3]<stdout>:" */
  }
  return *text == '(' && text[length - 1] == ')' && memmem(text, length, "rank=", 5);
}
