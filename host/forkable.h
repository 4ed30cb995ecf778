#ifndef HOST_FORKABLE_H
#define HOST_FORKABLE_H

/* What forbids this process to fork: a CUDA context, worker threads, an open database do
   not survive a fork. Who creates one holds; ranks.run asks before it forks. */

#include "host/err.h"

/* `what` is a static string that says what to close or use instead, such as
   "an open database (close it first)". Holds nest: one release for each hold. */
void forkable_hold(const char *what);
void forkable_release(const char *what);

/* 0 if nothing is held, else -1 with the first reason in *e (code "busy"). */
int forkable_check(struct err *e);

#endif
