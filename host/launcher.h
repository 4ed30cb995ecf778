#ifndef HOST_LAUNCHER_H
#define HOST_LAUNCHER_H

/* The world that a launcher (torchrun, mpirun, srun) has made of this process, as its
   environment variables tell. NCLUA_LAUNCHER=none: look at none of them. */

#include "host/err.h"

enum { LAUNCHER_KEY = 96 };

struct launcher {
  const char *name; /* static string; NULL: no launcher, or a world of one */
  int index, count;
  int here;               /* how many of them are on this host; 0: not told */
  char key[LAUNCHER_KEY]; /* the same in all processes of the world, and in no other */
};

/* -1 if the variables contradict each other. */
int launcher_find(struct launcher *l, struct err *e);

#endif
