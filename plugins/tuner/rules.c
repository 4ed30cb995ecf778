#include "plugins/tuner/rules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const rules_functions[] = {
  "broadcast", "reduce", "allgather", "reducescatter", "allreduce", NULL};
const char *const rules_algorithms[] = {
  "tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat", NULL};
const char *const rules_protocols[] = {"ll", "ll128", "simple", NULL};

enum { FIELDS = 10, LEAST_FIELDS = 6, LINE = 512, WORD = 32 };

static int fail(char *why, size_t size, const char *format, ...)
  __attribute__((format(printf, 3, 4)));

static int fail(char *why, size_t size, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(why, size, format, args);
  va_end(args);
  return -1;
}

/* The index of a word, its underscores left out; -1 if it is none of the names. */
static int find(const char *word, const char *const names[]) {
  char plain[WORD];
  size_t n = 0;
  for (; *word && n + 1 < sizeof plain; word++) {
    if (*word != '_') plain[n++] = *word;
  }
  plain[n] = '\0';
  for (int i = 0; names[i]; i++) {
    if (strcasecmp(plain, names[i]) == 0) return i;
  }
  return -1;
}

/* A whole decimal number, with K, M or G for powers of 1024. */
static int number(const char *text, int64_t *value) {
  char *end;
  errno = 0;
  long long n = strtoll(text, &end, 10);
  if (errno || end == text) return -1;
  const char *units = "KMG";
  const char *unit = *end ? strchr(units, *end) : NULL;
  if (unit) {
    int shift = 10 * (int)(unit - units + 1);
    if (n < 0 || n > INT64_MAX >> shift) return -1;
    n <<= shift;
    end++;
  }
  *value = n;
  return *end ? -1 : 0;
}

static char *trim(char *text) {
  text += strspn(text, " \t\r\n");
  size_t length = strlen(text);
  while (length && strchr(" \t\r\n", text[length - 1])) text[--length] = '\0';
  return text;
}

/* Splits at commas; an eleventh field and what follows is counted but not kept. */
static int split(char *line, char *fields[FIELDS]) {
  int count = 0;
  for (char *next = line; next; count++) {
    char *field = strsep(&next, ",");
    if (count < FIELDS) fields[count] = trim(field);
  }
  return count;
}

static int add(struct rules *r, const struct rule *rule) {
  struct rule *rows = realloc(r->rows, (r->count + 1) * sizeof *rows);
  if (!rows) return -1;
  r->rows = rows;
  rows[r->count++] = *rule;
  return 0;
}

/* The named part of a rule: what must be one of NCCL's words. */
static int name_parts(struct rule *rule, const char *func, const char *algorithm,
                      const char *protocol, char *why, size_t size) {
  rule->func = find(func, rules_functions);
  if (rule->func < 0) return fail(why, size, "unknown collective '%s'", func);
  rule->algorithm = find(algorithm, rules_algorithms);
  if (rule->algorithm < 0) return fail(why, size, "unknown algorithm '%s'", algorithm);
  rule->protocol = find(protocol, rules_protocols);
  if (rule->protocol < 0) return fail(why, size, "unknown protocol '%s'", protocol);
  return 0;
}

/* A number field; missing or empty means ANY. */
static int optional(char *fields[], int count, int at, int64_t *value, char *why,
                    size_t size) {
  *value = ANY;
  if (at >= count || !*fields[at]) return 0;
  if (number(fields[at], value) || *value < ANY) {
    return fail(why, size, "field %d: '%s' is not a number", at + 1, fields[at]);
  }
  return 0;
}

static int row_of(char *fields[], int count, struct rule *rule, char *why, size_t size) {
  int64_t n[FIELDS];
  if (name_parts(rule, fields[0], fields[3], fields[4], why, size)) return -1;
  static const int numbers[] = {1, 2, 5, 6, 7, 8, 9};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    int at = numbers[i];
    if (optional(fields, count, at, &n[at], why, size)) return -1;
  }
  if (n[5] > 1024) return fail(why, size, "%lld channels", (long long)n[5]);
  rule->min_bytes = n[1] < 0 ? 0 : (uint64_t)n[1];
  rule->max_bytes = n[2] < 0 ? UINT64_MAX : (uint64_t)n[2];
  rule->channels = n[5] < 0 ? 0 : (int)n[5];
  rule->nodes = n[6];
  rule->ranks = n[7];
  rule->ops = n[8];
  rule->registered = n[9];
  if (rule->min_bytes > rule->max_bytes) return fail(why, size, "minbytes > maxbytes");
  return 0;
}

static int read_line(struct rules *r, char *line, char *why, size_t size) {
  char *text = trim(line);
  if (!*text || *text == '#' || strncasecmp(text, "colltype", 8) == 0) return 0;
  char *fields[FIELDS];
  int count = split(text, fields);
  if (count < LEAST_FIELDS || count > FIELDS) {
    return fail(why, size, "%d fields, expected %d to %d", count, LEAST_FIELDS, FIELDS);
  }
  struct rule rule;
  if (row_of(fields, count, &rule, why, size)) return -1;
  return add(r, &rule) ? fail(why, size, "out of memory") : 0;
}

int rules_read(struct rules *r, const char *path, char *why, size_t size) {
  FILE *file = fopen(path, "re");
  if (!file) return fail(why, size, "cannot open '%s': %s", path, strerror(errno));
  char line[LINE], reason[128];
  int rc = 0;
  for (int n = 1; !rc && fgets(line, sizeof line, file); n++) {
    bool is_cut = !strchr(line, '\n') && !feof(file);
    if (is_cut)
      rc = fail(reason, sizeof reason, "longer than %d bytes", LINE - 2);
    else
      rc = read_line(r, line, reason, sizeof reason);
    if (rc) fail(why, size, "'%s' line %d: %s", path, n, reason);
  }
  fclose(file);
  if (rc) rules_free(r);
  return rc;
}

/* FUNCTION:ALGORITHM/PROTOCOL[/CHANNELS][:MIN-MAX] */
static int parse_one(struct rules *r, char *text, char *why, size_t size) {
  char *rest = text;
  char *func = strsep(&rest, ":"), *what = strsep(&rest, ":"), *range = rest;
  char *algorithm = what ? strsep(&what, "/") : NULL, *protocol = strsep(&what, "/");
  if (!algorithm || !protocol) {
    return fail(
      why, size, "'%s': expected FUNCTION:ALGORITHM/PROTOCOL[/CHANNELS][:MIN-MAX]", func);
  }
  char *low = range ? strsep(&range, "-") : NULL, *high = range;
  char empty[] = "", *fields[FIELDS] = {func,
                                        low ? low : empty,
                                        high ? high : empty,
                                        algorithm,
                                        protocol,
                                        what ? what : empty};
  struct rule rule;
  if (row_of(fields, LEAST_FIELDS, &rule, why, size)) return -1;
  return add(r, &rule) ? fail(why, size, "out of memory") : 0;
}

int rules_parse_force(struct rules *r, const char *text, char *why, size_t size) {
  char *copy = strdup(text), *rest = copy;
  if (!copy) return fail(why, size, "out of memory");
  int rc = 0;
  for (char *one; !rc && (one = strsep(&rest, ";"));) {
    if (*trim(one)) rc = parse_one(r, trim(one), why, size);
  }
  free(copy);
  if (rc) rules_free(r);
  return rc;
}

void rules_free(struct rules *r) {
  free(r->rows);
  *r = (struct rules){0};
}

static bool is_or_any(int64_t wanted, int64_t got) {
  return wanted == ANY || wanted == got;
}

bool rules_match(const struct rule *rule, const struct call *call) {
  return rule->func == call->func && call->bytes >= rule->min_bytes &&
         call->bytes <= rule->max_bytes && is_or_any(rule->nodes, call->nodes) &&
         is_or_any(rule->ranks, call->ranks) && is_or_any(rule->ops, call->ops) &&
         is_or_any(rule->registered, call->registered);
}
