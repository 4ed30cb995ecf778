#ifndef HOST_TRACE_H
#define HOST_TRACE_H

/* The trace of this process and of the ranks it forks: one SQLite file in Nsight Systems'
   export schema (plugins/trace). The CPU backend's workers tell what they do; a GPU's work
   is told by CUPTI, through the trace plugin opened in this process.

   Nothing is opened before a device is in use, so that ranks can still be forked. A rank
   writes a file of its own beside the parent's, which the parent's trace_stop takes in. */

#include "host/err.h"

#include <stdbool.h>

struct trace_options {
  const char *path;
  /* The name is for many processes: each makes its own of it, as the plugin does of
     NCLUA_TRACE_FILE, and keeps it. */
  bool is_shared;
  bool has_collectives; /* a range around each call of a collective */
};

/* -1 if a trace runs, or the file cannot be. */
int trace_start(const struct trace_options *options, struct err *e);

/* Completes the file, and takes in those of ranks and of children that were traced by
   trace_child_file. 0 too if no trace runs. */
int trace_stop(struct err *e);

/* Does a running trace want a range around each call of a collective? */
bool trace_wants_collectives(void);

/* Is it the file that the plugin writes in this process? It has an SQLite of its own, and
   two in one process do not see each other's locks. */
bool trace_holds(const char *path);

/* The file that a running trace ends up in; NULL if none runs or it is shared. */
const char *trace_path(void);

/* Adds a trace to another, which is created if it is not there. */
int trace_merge(const char *into, const char *from, struct err *e);

/* For children that will write parts of `path`: what is left of an older trace goes. -1 if
   there is a file that is no trace. */
int trace_prepare(const char *path, struct err *e);

/* Takes in all files that were written beside `path` for it. */
int trace_merge_parts(const char *path, struct err *e);

/* For backend.c: the chosen backend's table was loaded, nothing is running yet. -1: the
   trace that was asked for cannot be. */
struct device_api;
int trace_attach(struct device_api *api, struct err *e);

#endif
