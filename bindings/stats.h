#ifndef BINDINGS_STATS_H
#define BINDINGS_STATS_H

/* What nclua.stats offers to the other modules: vectors and lists of numbers. */

#include <lauxlib.h>
#include <lua.h>
#include <stddef.h>

/* Pushes an empty vector. */
void stats_newvector(lua_State *L);

/* Appends to the vector at `index`, which must be one. May collect garbage. */
void stats_append(lua_State *L, int index, double value);

/* The numbers of a table or vector argument. */
struct sample {
  const double *x; /* stays valid while the value that the call pushed is on the stack */
  size_t n;
};

/* Pushes one value; raises unless the argument is a list of numbers or an open vector. */
struct sample stats_checksample(lua_State *L, int arg);

/* Makes the type "stats.vector"; the functions of the module are its methods, too. */
void stats_opentypes(lua_State *L, const luaL_Reg *functions);

/* Functions of the module that make vectors. */
int stats_vector(lua_State *L);
int stats_from_string(lua_State *L);
int stats_from_file(lua_State *L);

#endif
