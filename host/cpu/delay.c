#include "host/cpu/delay.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

static struct coll_delay delays[MOST];
static size_t delay_count;

int cpu_delay_set(const struct coll_delay *list, size_t count, struct err *e) {
  if (count > MOST) return err_set(e, "EINVAL", "more than %d delays", MOST);
  if (count) memcpy(delays, list, count * sizeof *list);
  delay_count = count;
  return 0;
}

size_t cpu_delay_count(void) {
  return delay_count;
}

static bool is_meant(const struct coll_delay *d, const struct coll_step *s) {
  return (d->rank < 0 || d->rank == s->rank) && (d->step < 0 || d->step == s->step) &&
         (d->channel < 0 || d->channel == s->channel) &&
         (d->call < 0 || (uint64_t)d->call == s->call);
}

int64_t cpu_delay_ns(const struct coll_step *step) {
  int64_t ns = 0;
  for (size_t i = 0; i < delay_count; i++) {
    if (is_meant(&delays[i], step)) ns += (int64_t)delays[i].us * 1000;
  }
  return ns;
}

/* One number or *, which is -1; NULL if there is neither. */
static const char *read_number(const char *at, int *value) {
  if (*at == '*') {
    *value = -1;
    return at + 1;
  }
  char *end;
  long number = strtol(at, &end, 10);
  if (end == at || *at < '0' || *at > '9' || number > 1000000000) return NULL;
  *value = (int)number;
  return end;
}

/* Up to five numbers with colons between them; NULL if that is not what is there. */
static const char *read_delay(const char *at, struct coll_delay *d) {
  int n[5] = {-1, -1, -1, -1, -1}, count = 0;
  for (;;) {
    at = read_number(at, &n[count++]);
    if (!at || *at != ':' || count == 5) break;
    at++;
  }
  *d = (struct coll_delay){.rank = n[0], .step = n[1], .us = n[2], n[3], n[4]};
  return count >= 3 && d->us >= 0 ? at : NULL;
}

int cpu_delay_parse(const char *text, struct err *e) {
  struct coll_delay list[MOST];
  size_t count = 0;
  const char *at = text;
  while (*at && count < MOST) {
    at = read_delay(at, &list[count++]);
    if (!at || (*at && *at != ';')) break;
    at += *at == ';';
  }
  if (at && !*at) return cpu_delay_set(list, count, e);
  return err_set(e,
                 "EINVAL",
                 "NCLUA_CPU_DELAY='%s': expected up to %d times "
                 "rank:step:microseconds[:channel[:call]] with ; in between",
                 text,
                 MOST);
}
