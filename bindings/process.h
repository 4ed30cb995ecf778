#ifndef BINDINGS_PROCESS_H
#define BINDINGS_PROCESS_H

#include "host/process.h"

#include <lua.h>

#define PROCESS_LONGEST_S 1e9

/* The arguments of process.run and process.spawn; strings and arrays live on the stack. */
struct process_request {
  struct process_spec spec;
  cpu_set_t cpus;
  int on_line, input, trace; /* stack indices, 0: not given */
};

/* Reads argument 1 (argv) and 2 (options); raises for what the script has wrong, -1 for
   what this machine lacks. Pushes values. */
int process_read_request(lua_State *L, struct process_request *r, struct err *e);

#endif
