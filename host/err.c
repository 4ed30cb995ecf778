#include "host/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, const char *code, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  e->code = code;
  vsnprintf(e->text, sizeof e->text, fmt, args);
  va_end(args);
  return -1;
}

const char *err_symbol(int number) {
  const char *name = strerrorname_np(number); /* glibc 2.32 */
  return name ? name : "EUNKNOWN";
}

int err_errno(struct err *e, const char *fmt, ...) {
  int number = errno;
  va_list args;
  va_start(args, fmt);
  e->code = err_symbol(number);
  int used = vsnprintf(e->text, sizeof e->text, fmt, args);
  va_end(args);
  if (used >= 0 && (size_t)used < sizeof e->text) {
    snprintf(e->text + used, sizeof e->text - (size_t)used, ": %s", strerror(number));
  }
  errno = number;
  return -1;
}
