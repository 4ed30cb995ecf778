#ifndef BINDINGS_BIND_H
#define BINDINGS_BIND_H

/* What all modules share: types, argument checks, option tables, failures. */

#include "host/err.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Pushes nil, message, code (a symbol, not a number) and returns 3. */
int bind_fail(lua_State *L, const struct err *e);

/* Makes the metatable `name` (idempotent): `meta` holds the metamethods, `methods` becomes
   __index. Every type needs __gc, __close and __tostring among them. Pushes nothing. */
void bind_type(lua_State *L, const char *name, const luaL_Reg *meta,
               const luaL_Reg *methods);

/* The same for a type whose instances also have fields: each row of `fields` is a function
   of (self) that returns its value. Methods are found first; any other name raises
   "TYPE has no field 'NAME'". */
void bind_type_fields(lua_State *L, const char *name, const luaL_Reg *meta,
                      const luaL_Reg *methods, const luaL_Reg *fields);

/* A handle that is checked on the hot path begins with a pointer to its type's tag: two
   loads tell it, where luaL_checkudata looks a string up in the registry. No script can
   write into a userdata, so none can forge it. */
struct bind_tag {
  const char *name; /* of the type */
  size_t size;      /* of the struct */
};
void *bind_checktagged(lua_State *L, int arg, const struct bind_tag *tag);

/* An integer argument (3.0 is one, 3.5 is not) within [min, max]. */
size_t bind_checksize(lua_State *L, int arg, size_t min, size_t max);
lua_Integer bind_checkrange(lua_State *L, int arg, lua_Integer min, lua_Integer max);

/* A string argument that must be one of the NULL-terminated `names`: its index. The error
   lists the names and the nearest one. */
int bind_checkname(lua_State *L, int arg, const char *const names[]);

/* The same with a default for none or nil. */
int bind_optname(lua_State *L, int arg, const char *const names[], int otherwise);

/* Raises "attempt to use a closed WHAT" unless `is_open`. */
void bind_checkopen(lua_State *L, bool is_open, const char *what);

enum bind_kind {
  BIND_BOOL,     /* bool */
  BIND_INT,      /* int */
  BIND_SIZE,     /* size_t, not negative */
  BIND_NUMBER,   /* double */
  BIND_STRING,   /* const char *, owned by the table; NUL bytes refused */
  BIND_NAME,     /* int: index into .names */
  BIND_TABLE,    /* int: absolute stack index of the table, pushed on the stack */
  BIND_FUNCTION, /* int: the same for a function */
  BIND_ANY       /* int: the same for any value but nil */
};

/* One option: rows end with {NULL}. `min` and `max` bound numbers unless both are 0. */
struct bind_field {
  const char *key;
  enum bind_kind kind;
  size_t offset;
  bool required;
  double min, max;
  const char *const *names; /* BIND_NAME */
};

/* Reads an option table into a struct that already holds the defaults. nil or none is an
   empty table. Unknown, missing, mistyped keys raise, naming the key and what was expected.
   May push values (see BIND_TABLE): the caller's frame must not rely on lua_gettop. */
void bind_fields(lua_State *L, int arg, const struct bind_field *fields, void *out);

/* The nearest of `names` to a misspelt word, or NULL if none is near. */
const char *bind_nearest(const char *word, const char *const names[]);

#endif
