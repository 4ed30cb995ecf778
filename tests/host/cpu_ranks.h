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

/* Run `fn` on `count` ranks, with or without a communicator made for it; a failed EXPECT
   or a dead rank fails the cmocka test. */
void ranks_as_threads(int count, rank_function *fn, void *argument);
void ranks_as_processes(int count, rank_function *fn, void *argument);

/* Within a rank: makes r->comm, and closes it. */
bool rank_open(struct rank *r);
void rank_close(struct rank *r);

/* Waits for the rank's default stream. */
void rank_sync(struct rank *r);

/* Notes the first failure of all ranks; always false. */
bool rank_fail(struct rank *r, const char *file, int line, const char *fmt, ...)
  __attribute__((format(printf, 4, 5)));

#define EXPECT(r, condition)                                                               \
  ((condition) || rank_fail((r), __FILE__, __LINE__, "%s", #condition))
#define EXPECT_RC(r, call, wanted)                                                         \
  rank_expect((r), __FILE__, __LINE__, #call, (int)(call), (int)(wanted))

bool rank_expect(struct rank *r, const char *file, int line, const char *call, int got,
                 int wanted);

#endif
