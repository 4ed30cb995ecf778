#ifndef TESTS_HOST_CPU_CASES_H
#define TESTS_HOST_CPU_CASES_H

/* One collective with known inputs, held against a serial reference in double. */

#include "tests/host/cpu_ranks.h"

enum function {
  ALL_REDUCE,
  REDUCE,
  BROADCAST,
  ALL_GATHER,
  REDUCE_SCATTER,
  ALL_TO_ALL,
  GATHER,
  SCATTER,
  FUNCTIONS
};

/* As an operator of cpu_case: a sum whose inputs are doubled first. */
enum { DOUBLED_SUM = 100 };

struct cpu_case {
  enum function function;
  ncclDataType_t type;
  int op;
  size_t count;
  int root;
  bool in_place;
};

/* Room for cases of up to that many bytes a buffer. */
struct buffers {
  CUdeviceptr send, recv;
  size_t bytes;
};
bool buffers_open(struct rank *r, struct buffers *b, size_t bytes);
void buffers_close(struct rank *r, struct buffers *b);

/* The most bytes that a buffer of the case needs. */
size_t case_bytes(const struct cpu_case *c, int ranks);

/* Enqueues it on the default stream: separate, so that cases can be grouped. */
bool case_start(struct rank *r, const struct cpu_case *c, const struct buffers *b);
/* After the stream was synchronised. */
bool case_check(struct rank *r, const struct cpu_case *c, const struct buffers *b);

/* All of the above for one case. */
bool case_run(struct rank *r, const struct cpu_case *c, const struct buffers *b);

#endif
