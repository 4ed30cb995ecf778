#ifndef HOST_REPL_H
#define HOST_REPL_H

#include <lua.h>

/* Reads, evaluates and prints until the end of the input: lib/nclua/prompt.lua. */
void repl_run(lua_State *L);

#endif
