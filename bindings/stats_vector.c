/* Vectors: growing arrays of doubles. The numbers live in a userdata of their own, held as
   a user value, so that Lua counts the memory, nothing leaks through an error, and a
   reader that holds the block survives a push or close from a finalizer. */

#include "bindings/bind.h"
#include "bindings/stats.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTOR "stats.vector"

struct vector {
  double *x; /* in the user value; NULL once closed */
  size_t n, room;
};

static struct vector *check_vector(lua_State *L, int arg) {
  struct vector *v = luaL_checkudata(L, arg, VECTOR);
  bind_checkopen(L, v->x, "vector");
  return v;
}

static double *new_block(lua_State *L, size_t room) {
  if (room > SIZE_MAX / 2 / sizeof(double)) luaL_error(L, "too many numbers");
  return lua_newuserdatauv(L, room * sizeof(double), 0);
}

static struct vector *new_vector(lua_State *L, size_t room) {
  struct vector *v = lua_newuserdatauv(L, sizeof *v, 1);
  *v = (struct vector){0};
  luaL_setmetatable(L, VECTOR);
  v->x = new_block(L, room ? room : 1);
  v->room = room ? room : 1;
  lua_setiuservalue(L, -2, 1);
  return v;
}

void stats_newvector(lua_State *L) {
  new_vector(L, 16);
}

/* Makes room for `more` numbers in the vector at `index`. */
static void reserve(lua_State *L, int index, struct vector *v, size_t more) {
  if (v->room - v->n >= more) return;
  index = lua_absindex(L, index);
  size_t room = v->room * 2 > v->n + more ? v->room * 2 : v->n + more;
  double *x = new_block(L, room); /* may run finalizers: look at *v only after it */
  bind_checkopen(L, v->x, "vector");
  if (v->n + more > room) luaL_error(L, "the vector was changed by a finalizer");
  memcpy(x, v->x, v->n * sizeof *x);
  v->x = x;
  v->room = room;
  lua_setiuservalue(L, index, 1);
}

void stats_append(lua_State *L, int index, double value) {
  struct vector *v = check_vector(L, index);
  reserve(L, index, v, 1);
  v->x[v->n++] = value;
}

static double check_element(lua_State *L, int arg, int at, lua_Integer i) {
  if (lua_type(L, at) == LUA_TNUMBER) return lua_tonumber(L, at);
  const char *got = luaL_typename(L, at);
  luaL_argerror(
    L, arg, lua_pushfstring(L, "element %I: expected a number, got %s", i, got));
  return 0;
}

static struct sample table_sample(lua_State *L, int arg) {
  size_t n = lua_rawlen(L, arg);
  double *x = new_block(L, n ? n : 1);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, arg, (lua_Integer)i + 1); /* raw: __index could run anything */
    x[i] = check_element(L, arg, -1, (lua_Integer)i + 1);
    lua_pop(L, 1);
  }
  return (struct sample){x, n};
}

struct sample stats_checksample(lua_State *L, int arg) {
  if (lua_istable(L, arg)) return table_sample(L, arg);
  if (!luaL_testudata(L, arg, VECTOR)) luaL_typeerror(L, arg, "table or " VECTOR);
  struct vector *v = check_vector(L, arg);
  lua_getiuservalue(L, arg, 1);
  return (struct sample){v->x, v->n};
}

/* Appends the numbers of argument `from` to the vector at `to`. */
static void append_sample(lua_State *L, int to, int from) {
  struct vector *v = check_vector(L, to);
  struct sample s = stats_checksample(L, from);
  reserve(L, to, v, s.n);
  bind_checkopen(L, v->x, "vector");
  memcpy(v->x + v->n, s.x, s.n * sizeof *s.x);
  v->n += s.n;
}

int stats_vector(lua_State *L) {
  int top = lua_gettop(L);
  if (top == 1 && lua_type(L, 1) != LUA_TNUMBER) {
    struct sample s = stats_checksample(L, 1);
    struct vector *v = new_vector(L, s.n);
    memcpy(v->x, s.x, s.n * sizeof *s.x);
    v->n = s.n;
    return 1;
  }
  struct vector *v = new_vector(L, (size_t)top);
  for (int i = 1; i <= top; i++) v->x[i - 1] = luaL_checknumber(L, i);
  v->n = (size_t)top;
  return 1;
}

int stats_from_string(lua_State *L) {
  size_t bytes;
  const char *text = luaL_checklstring(L, 1, &bytes);
  luaL_argcheck(L, bytes % sizeof(double) == 0, 1, "length is not a multiple of 8");
  struct vector *v = new_vector(L, bytes / sizeof(double));
  memcpy(v->x, text, bytes);
  v->n = bytes / sizeof(double);
  return 1;
}

static int close_file(lua_State *L) {
  luaL_Stream *s = lua_touserdata(L, 1);
  fclose(s->f);
  return 0;
}

/* Pushes an open file that closes itself when collected, or returns NULL. */
static FILE *open_file(lua_State *L, const char *path) {
  luaL_Stream *s = lua_newuserdatauv(L, sizeof *s, 0);
  *s = (luaL_Stream){0};
  luaL_setmetatable(L, LUA_FILEHANDLE);
  s->f = fopen(path, "re");
  if (s->f) s->closef = close_file;
  return s->f;
}

/* 1 and a number, 0 for an empty line or a comment, -1 for anything else. */
static int read_number(const char *line, double *value) {
  line += strspn(line, " \t\r\n");
  if (*line == '\0' || *line == '#') return 0;
  char *end;
  *value = strtod(line, &end);
  if (end == line) return -1;
  return end[strspn(end, " \t\r\n")] == '\0' ? 1 : -1;
}

/* Reads all lines into the vector on top of the stack; -1 with *e at the first bad one. */
static int read_lines(lua_State *L, FILE *f, const char *path, struct err *e) {
  char line[256]; /* a longer line holds no number */
  for (long number = 1; fgets(line, sizeof line, f); number++) {
    double value;
    int got = strchr(line, '\n') || feof(f) ? read_number(line, &value) : -1;
    line[strcspn(line, "\r\n")] = '\0';
    if (got < 0) {
      return err_set(
        e, "EINVAL", "'%s' line %ld: not a number: '%.80s'", path, number, line);
    }
    if (got) stats_append(L, -1, value);
  }
  return ferror(f) ? err_errno(e, "cannot read '%s'", path) : 0;
}

int stats_from_file(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  struct err e;
  FILE *f = open_file(L, path);
  if (!f) {
    err_errno(&e, "cannot open '%s'", path);
    return bind_fail(L, &e);
  }
  int file = lua_gettop(L);
  new_vector(L, 1024);
  int rc = read_lines(L, f, path, &e);
  luaL_Stream *s = lua_touserdata(L, file);
  s->closef = NULL; /* Lua's word for a closed file */
  fclose(f);
  return rc ? bind_fail(L, &e) : 1;
}

static int vector_close(lua_State *L) {
  struct vector *v = luaL_checkudata(L, 1, VECTOR);
  *v = (struct vector){0};
  lua_settop(L, 1);
  lua_pushnil(L);
  lua_setiuservalue(L, 1, 1);
  return 0;
}

/* The block is Lua's: there is nothing to free. */
static int vector_gc(lua_State *L) {
  struct vector *v = luaL_checkudata(L, 1, VECTOR);
  *v = (struct vector){0};
  return 0;
}

static int vector_len(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)check_vector(L, 1)->n);
  return 1;
}

static int vector_tostring(lua_State *L) {
  struct vector *v = luaL_checkudata(L, 1, VECTOR);
  if (v->x)
    lua_pushfstring(L, VECTOR " (%I numbers)", (lua_Integer)v->n);
  else
    lua_pushliteral(L, VECTOR " (closed)");
  return 1;
}

/* v[i] is nil outside 1 to #v, so that ipairs ends; v.name is a method. */
static int vector_index(lua_State *L) {
  struct vector *v = luaL_checkudata(L, 1, VECTOR);
  if (lua_type(L, 2) != LUA_TNUMBER) {
    lua_settop(L, 2);
    lua_rawget(L, lua_upvalueindex(1));
    return 1;
  }
  bind_checkopen(L, v->x, "vector");
  int is_integer;
  lua_Integer i = lua_tointegerx(L, 2, &is_integer);
  if (!is_integer || i < 1 || (size_t)i > v->n)
    luaL_pushfail(L);
  else
    lua_pushnumber(L, v->x[i - 1]);
  return 1;
}

static int vector_newindex(lua_State *L) {
  struct vector *v = check_vector(L, 1);
  size_t i = bind_checksize(L, 2, 1, v->n);
  v->x[i - 1] = luaL_checknumber(L, 3);
  return 0;
}

static int vector_push(lua_State *L) {
  int top = lua_gettop(L);
  struct vector *v = check_vector(L, 1);
  for (int i = 2; i <= top; i++) luaL_checknumber(L, i); /* all or none */
  reserve(L, 1, v, (size_t)top - 1);
  for (int i = 2; i <= top; i++) v->x[v->n++] = lua_tonumber(L, i);
  lua_settop(L, 1);
  return 1;
}

static int vector_append(lua_State *L) {
  append_sample(L, 1, 2);
  lua_settop(L, 1);
  return 1;
}

static int vector_to_table(lua_State *L) {
  check_vector(L, 1); /* as a method it takes no table */
  struct sample s = stats_checksample(L, 1);
  lua_createtable(L, s.n < INT_MAX ? (int)s.n : INT_MAX, 0);
  for (size_t i = 0; i < s.n; i++) {
    lua_pushnumber(L, s.x[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static int vector_to_string(lua_State *L) {
  check_vector(L, 1); /* as a method it takes no table */
  struct sample s = stats_checksample(L, 1);
  lua_pushlstring(L, (const char *)s.x, s.n * sizeof *s.x);
  return 1;
}

static const luaL_Reg vector_meta[] = {
  {"__gc", vector_gc},
  {"__close", vector_close},
  {"__len", vector_len},
  {"__tostring", vector_tostring},
  {"__newindex", vector_newindex},
  {NULL, NULL},
};

static const luaL_Reg vector_methods[] = {
  {"push", vector_push},
  {"append", vector_append},
  {"to_table", vector_to_table},
  {"to_string", vector_to_string},
  {"close", vector_close},
  {NULL, NULL},
};

void stats_opentypes(lua_State *L, const luaL_Reg *functions) {
  bind_type(L, VECTOR, vector_meta, vector_methods);
  luaL_getmetatable(L, VECTOR);
  lua_getfield(L, -1, "__index");
  luaL_setfuncs(L, functions, 0); /* x:median() is stats.median(x) */
  lua_pushcclosure(L, vector_index, 1);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
}
