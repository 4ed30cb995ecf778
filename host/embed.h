#ifndef HOST_EMBED_H
#define HOST_EMBED_H

#include <stddef.h>

/* A Lua file inside the binary: by module name ("nclua.csv") or chapter ("chapter:perf").
 */
struct embedded {
  const char *name, *path; /* path: from the repository's root, for messages */
  const char *begin, *end;
};

/* Ends with a row whose name is NULL; made at build time by cmake/embed.cmake. */
extern const struct embedded embedded_files[];

const struct embedded *embed_find(const char *name);

#endif
