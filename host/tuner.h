#ifndef HOST_TUNER_H
#define HOST_TUNER_H

/* A tuner plugin, opened as NCCL opens it: asked without any GPU, or, if it is nclua's own,
   steered while NCCL uses the same file. */

#include "host/err.h"

#include <stddef.h>
#include <stdint.h>

struct tuner; /* opaque; a plugin once opened stays in memory, as NCCL may use it too */
struct tuner_context;

enum { TUNER_ALGORITHMS = 7, TUNER_PROTOCOLS = 3, TUNER_CELLS = 21 };

/* Closed, it stays in memory until its last context is stopped. */
struct tuner *tuner_open(const char *path, struct err *e);
void tuner_close(struct tuner *t);
const char *tuner_name(const struct tuner *t);
int tuner_version(const struct tuner *t); /* of the ABI, 2 to 6 */

/* A communicator's view, for asking. What the plugin logs goes to `log`, line by line. */
typedef void (*tuner_log)(int level, const char *text);
struct tuner_context *tuner_start(struct tuner *t, size_t ranks, size_t nodes,
                                  tuner_log log, struct err *e);
void tuner_stop(struct tuner_context *c);

struct tuner_question {
  int func; /* NCCL's enum */
  uint64_t bytes;
  int ops, registered;
  float costs[TUNER_CELLS]; /* in and out, µs, [algorithm][protocol], -1: unavailable */
  int channels;             /* out; 0: NCCL's own */
};

/* -1 if the plugin answers with an error: NCCL would fail the collective. */
int tuner_ask(struct tuner_context *c, struct tuner_question *q, struct err *e);

/* Only nclua's own plugin can be steered: -1 otherwise. func -1: all; algorithm
   TUNER_RELEASE: back to the configured rules; TUNER_KEEP: NCCL's own choice. */
enum { TUNER_RELEASE = -1, TUNER_KEEP = -2 };
int tuner_force(struct tuner *t, int func, int algorithm, int protocol, int channels,
                struct err *e);

struct tuner_counts {
  uint64_t calls, forced, unavailable;
};
int tuner_report(struct tuner *t, struct tuner_counts *out, struct err *e);
int tuner_flush(struct tuner *t, struct err *e);

#endif
