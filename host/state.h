#ifndef HOST_STATE_H
#define HOST_STATE_H

#include <lua.h>

/* Opens Lua's libraries and the searcher for embedded files. The modules themselves are
   put into package.preload by the caller (host/main.c). */
void state_open(lua_State *L);

/* Message handler for lua_pcall: the message with a traceback, whatever was thrown. */
int state_traceback(lua_State *L);

/* Loads an embedded file as a chunk onto the stack; LUA_OK, or an error like luaL_load*. */
int state_load_embedded(lua_State *L, const char *name);

#endif
