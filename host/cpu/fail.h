#ifndef HOST_CPU_FAIL_H
#define HOST_CPU_FAIL_H

/* NCCL's way of failing: a result code, and a sentence that ncclGetLastError gives. */

#include "host/abi_nccl.h"

/* Keeps the sentence for this thread and returns rc: return cpu_fail(rc, ...); */
ncclResult_t cpu_fail(ncclResult_t rc, const char *fmt, ...)
  __attribute__((format(printf, 2, 3)));

/* This thread's last sentence; "" if nothing has failed yet. */
const char *cpu_fail_text(void);

#endif
