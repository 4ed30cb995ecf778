#ifndef PLUGINS_TUNER_OBSERVE_H
#define PLUGINS_TUNER_OBSERVE_H

/* Writes what NCCL asked and what was answered, off the calling thread: a call costs a copy
   into a ring, a thread of our own formats. What a full ring loses is counted and said. */

#include "plugins/tuner/abi.h"
#include "plugins/tuner/rules.h"

enum outcome { KEPT, FORCED, UNAVAILABLE };

struct observation {
  struct call call;
  int algorithms;
  float costs[ABI_MAX_ALGORITHMS * ABI_PROTOCOLS]; /* µs, as NCCL handed them over */
  int channels;                                    /* as returned: 0 keeps NCCL's */
  int algorithm, protocol; /* the cheapest cell after the plugin; -1 if there is none */
  enum outcome outcome;
};

/* Opens the file (CSV, %h host, %p pid) and starts the thread; once per process. -1 with
   the reason in `why`. */
int observe_open(const char *pattern, char *why, size_t why_size);

void observe_call(const struct observation *o);

/* Waits until all that was observed so far is in the file. */
void observe_flush(void);

#endif
