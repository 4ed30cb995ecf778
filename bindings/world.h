#ifndef BINDINGS_WORLD_H
#define BINDINGS_WORLD_H

#include "host/launch.h"

#include <lua.h>

/* In a rank: runs the function on top of the stack with the rank's handle and ends the
   process. It never returns to the script, which goes on in the parent alone. */
_Noreturn void world_rank_run(lua_State *L, const struct launch_seat *seat);

/* Makes the type of the rank's handle. */
void world_rank_type(lua_State *L);

/* Which rank is this process? -1: it is none. */
int world_rank_index(int *count);

/* Pushes a flight recorder's content as a table. */
void world_push_recorder(lua_State *L, const struct recorder_ring *ring);

#endif
