#ifndef BINDINGS_OPEN_H
#define BINDINGS_OPEN_H

#include <lua.h>

/* Puts every module into package.preload; none is opened until a script requires it. */
void open_modules(lua_State *L);

/* Each in the file of its name. */
int luaopen_nclua_stats(lua_State *L);
int luaopen_nclua_process(lua_State *L);

#endif
