#include "host/cpu/fail.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char text[512];

ncclResult_t cpu_fail(ncclResult_t rc, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  return rc;
}

const char *cpu_fail_text(void) {
  return text;
}
