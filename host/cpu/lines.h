#ifndef HOST_CPU_LINES_H
#define HOST_CPU_LINES_H

/* What LL and LL128 have in common: data travels in lines that carry their own flag, so
   that a receiver needs no other word to know that a line has come. */

#include "host/cpu/primitives.h"

struct cpu_lines {
  size_t data, wire; /* bytes of a line: of the message, in the slot */
  /* The flag in the connection's next slot, for an operation with this signature. */
  uint64_t (*flag)(const struct cpu_connection *c, uint32_t signature);
  /* Writes `bytes` into lines; the last one may be partly filled. */
  void (*pack)(char *lines, const char *src, size_t bytes, uint64_t flag);
  /* Reads lines until `bytes` or the first that has not come: how many bytes. */
  size_t (*unpack)(char *dst, const char *lines, size_t bytes, uint64_t flag);
};

/* A protocol's `transfer` with these lines. */
void cpu_lines_transfer(struct cpu_primitives *p, const struct cpu_chunk *slice,
                        const struct cpu_lines *lines);

#endif
