#ifndef BINDINGS_WORLD_H
#define BINDINGS_WORLD_H

#include "host/launch.h"
#include "host/launcher.h"
#include "host/rendezvous.h"

#include <lua.h>

/* In a rank: runs the function on top of the stack with the rank's handle and ends the
   process. It never returns to the script, which goes on in the parent alone. */
_Noreturn void world_rank_run(lua_State *L, const struct launch_seat *seat);

/* The arguments of world.fork and world.join; its arrays live on the stack. */
struct world_request {
  struct launch_spec spec;
  struct launcher launcher; /* no name: fork all ranks here */
  int turn;
};

/* Reads argument 1 (options) and checks argument 2 (a function); raises for what the script
   has wrong, -1 for what cannot be here. Pushes values. */
int world_read_request(lua_State *L, struct world_request *r, struct err *e);

/* world.join and world.launcher: the processes of a launcher. */
int world_join_launcher(lua_State *L);
int world_find_launcher(lua_State *L);
void world_member_type(lua_State *L);

/* Makes the type of the rank's handle. */
void world_rank_type(lua_State *L);

/* Which rank is this process? -1: it is none. */
int world_rank_index(int *count);

/* Pushes a flight recorder's content as a table. */
void world_push_recorder(lua_State *L, const struct recorder_ring *ring);

#endif
