#include "host/cpu/fail.h"
#include "host/cpu/log.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char sentence[512];

ncclResult_t cpu_fail_at(const char *file, int line, ncclResult_t rc, const char *fmt,
                         ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(sentence, sizeof sentence, fmt, args);
  va_end(args);
  cpu_log_warn(file, line, sentence);
  return rc;
}

ncclResult_t cpu_fail_again(ncclResult_t rc, const char *text) {
  if (text != sentence) snprintf(sentence, sizeof sentence, "%s", text);
  return rc;
}

const char *cpu_fail_text(void) {
  return sentence;
}
