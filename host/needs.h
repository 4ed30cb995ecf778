#ifndef HOST_NEEDS_H
#define HOST_NEEDS_H

#include "host/err.h"

/* A script may say in its first comment lines which nclua it needs:
     --- needs: nclua >= 0.2
   0, or -1 with *e filled if this one is older. What cannot be read is left to Lua, which
   says why. */
int needs_check(const char *path, struct err *e);

/* "0.2" or "0.2.1": the same for a text. -1 also if it is no version. */
int needs_version(const char *version, struct err *e);

#endif
