#include "plugins/tuner/rules.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A rules file and a text of forced choices: what is accepted holds sane rules. */

static void check(const struct rules *r) {
  for (size_t i = 0; i < r->count; i++) {
    const struct rule *rule = &r->rows[i];
    assert(rule->func >= 0 && rule->func < 5);
    assert(rule->algorithm >= 0 && rule->algorithm < 7);
    assert(rule->protocol >= 0 && rule->protocol < 3);
    assert(rule->min_bytes <= rule->max_bytes && rule->channels >= 0);
    struct call call = {.func = rule->func, .bytes = rule->min_bytes};
    rules_match(rule, &call);
  }
}

static void read_file(const uint8_t *data, size_t size) {
  struct rules r = {0};
  char why[256], path[64];
  int fd = memfd_create("rules", MFD_CLOEXEC);
  assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (!rules_read(&r, path, why, sizeof why)) check(&r);
  rules_free(&r);
  close(fd);
}

static void read_force(const uint8_t *data, size_t size) {
  struct rules r = {0};
  char why[256], *text = malloc(size + 1);
  assert(text);
  memcpy(text, data, size);
  text[size] = '\0';
  if (!rules_parse_force(&r, text, why, sizeof why)) check(&r);
  rules_free(&r);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  read_file(data, size);
  read_force(data, size);
  return 0;
}
