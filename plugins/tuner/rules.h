#ifndef PLUGINS_TUNER_RULES_H
#define PLUGINS_TUNER_RULES_H

/* Rules: which algorithm, protocol and channel count an operation shall get. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ANY = -1 };

struct rule {
  int func;                      /* NCCL's enum, 0 Broadcast to 4 AllReduce */
  uint64_t min_bytes, max_bytes; /* inclusive; the model's bytes */
  int algorithm, protocol;
  int channels;                          /* 0: keep NCCL's */
  int64_t nodes, ranks, ops, registered; /* ANY matches all */
};

struct rules {
  struct rule *rows;
  size_t count;
};

/* What a call is matched against. */
struct call {
  int func;
  uint64_t bytes;
  int64_t nodes, ranks;
  int ops, registered;
};

/* Index by NCCL's enum; NULL-terminated. Matching ignores case and underscores. */
extern const char *const rules_functions[], *const rules_algorithms[],
                                              *const rules_protocols[];

/* Reads a CSV file: colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks
   [,numPipeOps[,regBuff]]; '#' lines, blank lines and a header line are skipped. A
   malformed line rejects the file: -1, with the line and the reason in `why`. */
int rules_read(struct rules *r, const char *path, char *why, size_t why_size);

/* The same rows as text, FUNCTION:ALGORITHM/PROTOCOL[/CHANNELS][:MIN-MAX][;...]. */
int rules_parse_force(struct rules *r, const char *text, char *why, size_t why_size);

void rules_free(struct rules *r);

/* Does this rule speak of this call? */
bool rules_match(const struct rule *rule, const struct call *call);

#endif
