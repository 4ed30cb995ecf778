#ifndef BINDINGS_OPEN_H
#define BINDINGS_OPEN_H

#include <lua.h>

/* Puts every module into package.preload; none is opened until a script requires it. */
void open_modules(lua_State *L);

/* Each in the file of its name. */
int open_cjson(lua_State *L);
int open_cjson_safe(lua_State *L);
int open_lfs(lua_State *L);
int luaopen_nclua_cpu(lua_State *L);
int luaopen_nclua_sqlite(lua_State *L);
int luaopen_nclua_stats(lua_State *L);
int luaopen_nclua_elements(lua_State *L);
int luaopen_nclua_embedded(lua_State *L);
int luaopen_nclua_gzip(lua_State *L);
int luaopen_nclua_hash(lua_State *L);
int luaopen_nclua_inventory(lua_State *L);
int luaopen_nclua_logscan(lua_State *L);
int luaopen_nclua_lines(lua_State *L);
int luaopen_nclua_sandbox(lua_State *L);
int luaopen_nclua_process(lua_State *L);
int luaopen_nclua_terminal(lua_State *L);
int luaopen_nclua_trace(lua_State *L);
int luaopen_nclua_tuner(lua_State *L);
int luaopen_nclua_xml(lua_State *L);
int luaopen_nclua_world(lua_State *L);

#endif
