#ifndef HOST_CPU_FAIL_H
#define HOST_CPU_FAIL_H

/* NCCL's way of failing: a result code, a sentence that ncclGetLastError gives, and a WARN
   in the log. */

#include "host/abi_nccl.h"

/* Keeps the sentence for this thread and returns rc: return cpu_fail(rc, "...", ...);
   A macro, since the log names the place. */
#define cpu_fail(rc, ...) cpu_fail_at(__FILE__, __LINE__, rc, __VA_ARGS__)

ncclResult_t cpu_fail_at(const char *file, int line, ncclResult_t rc, const char *fmt, ...)
  __attribute__((format(printf, 4, 5)));

/* The same for what has been told before, or need not be: nothing is logged. */
ncclResult_t cpu_fail_again(ncclResult_t rc, const char *text);

/* This thread's last sentence; "" if nothing has failed yet. */
const char *cpu_fail_text(void);

#endif
