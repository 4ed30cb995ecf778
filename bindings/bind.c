#include "bindings/bind.h"

#include <limits.h>
#include <string.h>

int bind_fail(lua_State *L, const struct err *e) {
  luaL_pushfail(L);
  lua_pushstring(L, e->text);
  lua_pushstring(L, e->code); /* a symbol, not a number: scripts compare it */
  return 3;
}

/* With __index on top of the stack, finishes the new metatable below it. */
static void finish_type(lua_State *L, const luaL_Reg *meta) {
  lua_setfield(L, -2, "__index");
  luaL_setfuncs(L, meta, 0);
  lua_pushliteral(L, "protected"); /* scripts cannot take a __gc out and call it */
  lua_setfield(L, -2, "__metatable");
}

static void push_functions(lua_State *L, const luaL_Reg *functions) {
  lua_newtable(L);
  luaL_setfuncs(L, functions, 0);
}

void bind_type(lua_State *L, const char *name, const luaL_Reg *meta,
               const luaL_Reg *methods) {
  if (luaL_newmetatable(L, name)) {
    push_functions(L, methods);
    finish_type(L, meta);
  }
  lua_pop(L, 1);
}

/* The upvalues of a type's __index. */
enum { METHODS = 1, FIELDS, TYPE_NAME };

static int member_error(lua_State *L) {
  const char *key = luaL_tolstring(L, 2, NULL);
  const char *name = lua_tostring(L, lua_upvalueindex(TYPE_NAME));
  return luaL_error(L, "%s has no field '%s'", name, key);
}

/* A C function, for fields need the instance; methods still cost but one table look-up. */
static int index_member(lua_State *L) {
  lua_settop(L, 2);
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(METHODS)) != LUA_TNIL) return 1;
  lua_pushvalue(L, 2);
  lua_rawget(L, lua_upvalueindex(FIELDS));
  const lua_CFunction field = lua_tocfunction(L, -1);
  lua_settop(L, 2);
  return field ? field(L) : member_error(L);
}

void bind_type_fields(lua_State *L, const char *name, const luaL_Reg *meta,
                      const luaL_Reg *methods, const luaL_Reg *fields) {
  if (luaL_newmetatable(L, name)) {
    push_functions(L, methods);
    push_functions(L, fields);
    lua_pushstring(L, name);
    lua_pushcclosure(L, index_member, 3);
    finish_type(L, meta);
  }
  lua_pop(L, 1);
}

void *bind_checktagged(lua_State *L, int arg, const struct bind_tag *tag) {
  const struct bind_tag **handle = lua_touserdata(L, arg);
  if (handle && lua_rawlen(L, arg) >= tag->size && *handle == tag) return handle;
  return luaL_checkudata(L, arg, tag->name); /* raises; or a light userdata, never ours */
}

lua_Integer bind_checkrange(lua_State *L, int arg, lua_Integer min, lua_Integer max) {
  lua_Integer value = luaL_checkinteger(L, arg);
  if (value >= min && value <= max) return value;
  const char *text = max == LLONG_MAX
                       ? lua_pushfstring(L, "expected at least %I, got %I", min, value)
                       : lua_pushfstring(L, "expected %I to %I, got %I", min, max, value);
  luaL_argerror(L, arg, text);
  return 0;
}

size_t bind_checksize(lua_State *L, int arg, size_t min, size_t max) {
  size_t top = max > LLONG_MAX ? (size_t)LLONG_MAX : max;
  return (size_t)bind_checkrange(L, arg, (lua_Integer)min, (lua_Integer)top);
}

void bind_checkopen(lua_State *L, bool is_open, const char *what) {
  if (!is_open) luaL_error(L, "attempt to use a closed %s", what);
}

enum { WORD = 32 };

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Levenshtein distance of two words, each cut at WORD bytes. */
static size_t distance(const char *a, const char *b) {
  size_t rows = strnlen(a, WORD), columns = strnlen(b, WORD);
  size_t line[WORD + 1];
  for (size_t j = 0; j <= columns; j++) line[j] = j;
  for (size_t i = 1; i <= rows; i++) {
    size_t diagonal = line[0];
    line[0] = i;
    for (size_t j = 1; j <= columns; j++) {
      size_t above = line[j];
      size_t swap = diagonal + (a[i - 1] != b[j - 1]);
      line[j] = least(swap, least(above, line[j - 1]) + 1);
      diagonal = above;
    }
  }
  return line[columns];
}

const char *bind_nearest(const char *word, const char *const names[]) {
  const char *best = NULL;
  size_t limit = strlen(word) / 3 + 1; /* further than that is another word */
  for (size_t i = 0; names[i]; i++) {
    size_t d = distance(word, names[i]);
    if (d <= limit) {
      best = names[i];
      limit = d - (d > 0);
    }
  }
  return best;
}

/* Pushes "'a', 'b' or 'c' (did you mean 'b'?)". */
static void push_choices(lua_State *L, const char *word, const char *const names[]) {
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (size_t i = 0; names[i]; i++) {
    if (i) luaL_addstring(&b, names[i + 1] ? ", " : " or ");
    luaL_addchar(&b, '\'');
    luaL_addstring(&b, names[i]);
    luaL_addchar(&b, '\'');
  }
  const char *near = bind_nearest(word, names);
  if (near) {
    luaL_addstring(&b, " (did you mean '");
    luaL_addstring(&b, near);
    luaL_addstring(&b, "'?)");
  }
  luaL_pushresult(&b);
}

static int name_index(const char *word, const char *const names[]) {
  for (int i = 0; names[i]; i++) {
    if (strcmp(names[i], word) == 0) return i;
  }
  return -1;
}

int bind_checkname(lua_State *L, int arg, const char *const names[]) {
  const char *word = luaL_checkstring(L, arg);
  int i = name_index(word, names);
  if (i >= 0) return i;
  push_choices(L, word, names);
  return luaL_argerror(
    L, arg, lua_pushfstring(L, "expected %s, got '%s'", lua_tostring(L, -1), word));
}

int bind_optname(lua_State *L, int arg, const char *const names[], int otherwise) {
  return lua_isnoneornil(L, arg) ? otherwise : bind_checkname(L, arg, names);
}

/* Raises: option KEY: expected WHAT, got the type or value on top of the stack. */
static void field_error(lua_State *L, int arg, const char *key, const char *what) {
  const char *got = luaL_tolstring(L, -1, NULL);
  if (lua_type(L, -2) == LUA_TSTRING) got = lua_pushfstring(L, "'%s'", got);
  luaL_argerror(
    L, arg, lua_pushfstring(L, "option '%s': expected %s, got %s", key, what, got));
}

static void check_bounds(lua_State *L, int arg, const struct bind_field *f, double value) {
  if (f->min == 0 && f->max == 0) return;
  if (value >= f->min && value <= f->max) return; /* false for NaN */
  field_error(L, arg, f->key, lua_pushfstring(L, "%f to %f", f->min, f->max));
}

static lua_Integer field_integer(lua_State *L, int arg, const struct bind_field *f,
                                 lua_Integer min, lua_Integer max) {
  int is_integer = 0;
  lua_Integer value =
    lua_type(L, -1) == LUA_TNUMBER ? lua_tointegerx(L, -1, &is_integer) : 0;
  if (!is_integer) field_error(L, arg, f->key, "an integer");
  if (value < min || value > max) {
    field_error(L, arg, f->key, lua_pushfstring(L, "%I to %I", min, max));
  }
  check_bounds(L, arg, f, (double)value);
  return value;
}

static double field_number(lua_State *L, int arg, const struct bind_field *f) {
  if (lua_type(L, -1) != LUA_TNUMBER) field_error(L, arg, f->key, "a number");
  double value = lua_tonumber(L, -1);
  check_bounds(L, arg, f, value);
  return value;
}

static const char *field_string(lua_State *L, int arg, const struct bind_field *f) {
  size_t length = 0;
  const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &length) : NULL;
  if (!text) field_error(L, arg, f->key, "a string");
  if (strlen(text) != length) field_error(L, arg, f->key, "a string without NUL bytes");
  return text;
}

static int field_name(lua_State *L, int arg, const struct bind_field *f) {
  const char *word = field_string(L, arg, f);
  int i = name_index(word, f->names);
  if (i >= 0) return i;
  push_choices(L, word, f->names);
  const char *choices = lua_tostring(L, -1);
  lua_pushvalue(L, -2);
  field_error(L, arg, f->key, choices);
  return 0;
}

/* Leaves the value on the stack and returns where. */
static int field_keep(lua_State *L, int arg, const struct bind_field *f, int type,
                      const char *what) {
  if (type != LUA_TNONE && lua_type(L, -1) != type) field_error(L, arg, f->key, what);
  return lua_gettop(L);
}

/* Stores the value on top of the stack; pops it unless its index was what was asked for. */
static void field_store(lua_State *L, int arg, const struct bind_field *f, void *out) {
  void *at = (char *)out + f->offset;
  switch (f->kind) {
    case BIND_BOOL:
      if (!lua_isboolean(L, -1)) field_error(L, arg, f->key, "a boolean");
      *(bool *)at = lua_toboolean(L, -1);
      break;
    case BIND_INT: *(int *)at = (int)field_integer(L, arg, f, INT_MIN, INT_MAX); break;
    case BIND_SIZE: *(size_t *)at = (size_t)field_integer(L, arg, f, 0, LLONG_MAX); break;
    case BIND_NUMBER: *(double *)at = field_number(L, arg, f); break;
    case BIND_STRING: *(const char **)at = field_string(L, arg, f); break;
    case BIND_NAME: *(int *)at = field_name(L, arg, f); break;
    case BIND_TABLE: *(int *)at = field_keep(L, arg, f, LUA_TTABLE, "a table"); return;
    case BIND_FUNCTION:
      *(int *)at = field_keep(L, arg, f, LUA_TFUNCTION, "a function");
      return;
    case BIND_ANY: *(int *)at = field_keep(L, arg, f, LUA_TNONE, ""); return;
  }
  lua_pop(L, 1); /* a string stays alive in the option table */
}

enum { MOST_FIELDS = 48 };

static void check_keys(lua_State *L, int arg, const struct bind_field *fields) {
  const char *names[MOST_FIELDS + 1];
  int n = 0;
  for (; fields[n].key && n < MOST_FIELDS; n++) names[n] = fields[n].key;
  names[n] = NULL;
  lua_pushnil(L);
  while (lua_next(L, arg)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) == LUA_TSTRING && name_index(lua_tostring(L, -1), names) >= 0) {
      continue;
    }
    const char *word = luaL_tolstring(L, -1, NULL);
    push_choices(L, word, names);
    luaL_argerror(
      L,
      arg,
      lua_pushfstring(L, "unknown option '%s': expected %s", word, lua_tostring(L, -1)));
  }
}

void bind_fields(lua_State *L, int arg, const struct bind_field *fields, void *out) {
  bool is_given = !lua_isnoneornil(L, arg);
  if (is_given) {
    arg = lua_absindex(L, arg);
    luaL_checktype(L, arg, LUA_TTABLE);
    check_keys(L, arg, fields);
  }
  for (const struct bind_field *f = fields; f->key; f++) {
    luaL_checkstack(L, 4, "too many options");
    if (is_given) {
      lua_pushstring(L, f->key); /* raw: a __index could run anything */
      lua_rawget(L, arg);
    } else {
      lua_pushnil(L);
    }
    if (!lua_isnil(L, -1)) {
      field_store(L, arg, f, out);
      continue;
    }
    lua_pop(L, 1);
    if (f->required) {
      luaL_argerror(L, arg, lua_pushfstring(L, "option '%s' is required", f->key));
    }
  }
}
