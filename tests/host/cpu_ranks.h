#ifndef TESTS_HOST_CPU_RANKS_H
#define TESTS_HOST_CPU_RANKS_H

/* Ranks of the CPU backend for tests: threads of this process or forked processes. */

#include "host/backend.h"

struct rank {
  int index, count;
  ncclUniqueId id;
  ncclComm_t comm;
  void *argument;
  char *failure; /* shared by all; "" while all is well */
};

typedef void rank_function(struct rank *r);

/* Run `fn` on `count` ranks, rank i on device i; a failed EXPECT fails the cmocka test, and
   so does a rank that dies of anything but SIGKILL. */
void ranks_as_threads(int count, rank_function *fn, void *argument);
void ranks_as_processes(int count, rank_function *fn, void *argument);

/* What the above do for each process and each rank. */
bool rank_start_backend(struct rank *r);
bool rank_take_device(struct rank *r, CUdevice device);

/* Within a rank: makes r->comm, and closes it. */
bool rank_open(struct rank *r);
void rank_close(struct rank *r);

/* Waits for the rank's default stream. */
void rank_sync(struct rank *r);

/* Notes the first failure of all ranks; always false. */
bool rank_fail(struct rank *r, const char *file, int line, const char *fmt, ...)
  __attribute__((format(printf, 4, 5)));

#define EXPECT(r, condition) rank_check((r), __FILE__, __LINE__, #condition, (condition))
#define EXPECT_RC(r, call, wanted)                                                         \
  rank_expect((r), __FILE__, __LINE__, #call, (int)(call), (int)(wanted))

bool rank_check(struct rank *r, const char *file, int line, const char *text, bool holds);
bool rank_expect(struct rank *r, const char *file, int line, const char *call, int got,
                 int wanted);

#endif
