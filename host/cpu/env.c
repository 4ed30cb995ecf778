#include "host/cpu/env.h"
#include "host/cpu/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_MOST 32

/* Numbers that have been told. */
static struct {
  const char *name; /* a literal */
  int64_t value;
} told[TOLD_MOST];
static int told_count;
static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_news(const char *name, int64_t value) {
  pthread_mutex_lock(&told_lock);
  int i = 0;
  while (i < told_count && strcmp(told[i].name, name) != 0) i++;
  const bool is_new = i == told_count || told[i].value != value;
  if (i < TOLD_MOST) {
    told[i].name = name;
    told[i].value = value;
    if (i == told_count) told_count++;
  }
  pthread_mutex_unlock(&told_lock);
  return is_new;
}

int64_t cpu_env_number(const char *name, int64_t fallback) {
  const char *text = getenv(name);
  if (!text || !*text) return fallback;
  char *end;
  errno = 0;
  const int64_t value = strtoll(text, &end, 0);
  const bool is_bad = errno || end == text;
  if (!is_news(name, is_bad ? fallback : value)) return is_bad ? fallback : value;
  if (is_bad) {
    cpu_log(CPU_LOG_ALL,
            "Invalid value %s for %s, using default %lld.",
            text,
            name,
            (long long)fallback);
    return fallback;
  }
  cpu_log(CPU_LOG_ENV, "%s set by environment to %lld.", name, (long long)value);
  return value;
}

const char *cpu_env_text(const char *name) {
  const char *text = getenv(name);
  if (text) cpu_log(CPU_LOG_ENV, "%s set by environment to %s", name, text);
  return text;
}
