#ifndef HOST_SCRIPT_H
#define HOST_SCRIPT_H

#include <lua.h>
#include <stdbool.h>

/* Running chunks: each leaves nothing on the stack, reports an error on stderr in one line
   (with the stack if script_traceback is on) and returns LUA_OK or another status. */
int script_string(lua_State *L, const char *code, const char *name);
int script_library(lua_State *L, const char *spec);

/* The function on the stack with `n` arguments above it. */
int script_call(lua_State *L, int n);

/* argv[script] and what follows: a file, a bundled chapter, a command; "-" is stdin. */
int script_run(lua_State *L, char **argv, int script, bool from_stdin);

/* Writes "nclua: message" for the error object on top of the stack and pops it. */
void script_report(lua_State *L);

/* Whether errors show the stack, in this state. */
void script_traceback(lua_State *L, bool on);

#endif
