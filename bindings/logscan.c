#include "host/logscan.h"
#include "bindings/bind.h"
#include "bindings/open.h"

#include <stdio.h>

/* nclua.logscan: feeds text to the scanner and calls a function with its events. */

#define SCANNER "logscan.scanner"

struct scanner {
  struct logscan *scan; /* NULL: closed */
  uint64_t turn;        /* counts feeds, so that one inside another is noticed */
  bool has_ended;
};

static struct scanner *check_scanner(lua_State *L) {
  struct scanner *s = luaL_checkudata(L, 1, SCANNER);
  bind_checkopen(L, s->scan != NULL, "scanner");
  return s;
}

/* A callback may close its scanner: run() sees it by the turn and touches nothing more. */
static int scanner_close(lua_State *L) {
  struct scanner *s = luaL_checkudata(L, 1, SCANNER);
  struct logscan *scan = s->scan;
  s->scan = NULL;
  s->turn++;
  logscan_free(scan);
  return 0;
}

static int scanner_tostring(lua_State *L) {
  const struct scanner *s = luaL_checkudata(L, 1, SCANNER);
  if (!s->scan)
    lua_pushliteral(L, SCANNER " (closed)");
  else
    lua_pushfstring(L, SCANNER " (%I lines)", (lua_Integer)logscan_totals(s->scan)->lines);
  return 1;
}

struct new_options {
  bool each;
};

static const struct bind_field new_fields[] = {
  {"each", BIND_BOOL, offsetof(struct new_options, each)},
  {NULL},
};

static int scanner_new(lua_State *L) {
  struct new_options o = {.each = false};
  bind_fields(L, 1, new_fields, &o);
  struct scanner *s = lua_newuserdatauv(L, sizeof *s, 0);
  *s = (struct scanner){.scan = NULL};
  luaL_setmetatable(L, SCANNER);
  s->scan = logscan_new(o.each);
  return s->scan ? 1 : luaL_error(L, "not enough memory for a scanner");
}

/* Calls fn(topic, text, line, thread, is_glued, extra) for each event, where `extra` is why
   (an issue), the place (a warning) or the record's index (of `each`). */
static void call(lua_State *L, const struct logscan_event *e) {
  lua_pushvalue(L, 3);
  lua_pushstring(L, logscan_topics[e->topic]); /* Lua keeps these by their address */
  lua_pushlstring(L, e->text, e->length);
  lua_pushinteger(L, (lua_Integer)e->line);
  lua_pushinteger(L, e->thread + 1);
  lua_pushboolean(L, e->is_glued);
  if (e->why)
    lua_pushstring(L, e->why);
  else if (e->place)
    lua_pushlstring(L, e->place, e->place_length);
  else if (e->record >= 0)
    lua_pushinteger(L, e->record + 1);
  else
    lua_pushnil(L);
  lua_call(L, 6, 0);
}

/* A callback may close the scanner or, wrongly, feed it: both are seen by its turn. */
static int run(lua_State *L, struct scanner *s) {
  struct logscan_event e;
  uint64_t turn = ++s->turn;
  while (logscan_next(s->scan, &e) != LOGSCAN_NONE) {
    call(L, &e);
    if (s->turn == turn) continue;
    bind_checkopen(L, s->scan != NULL, "scanner");
    return luaL_error(L, "the scanner was fed by its own callback");
  }
  lua_settop(L, 1);
  return 1;
}

static int scanner_feed(lua_State *L) {
  struct scanner *s = check_scanner(L);
  size_t length;
  const char *bytes = luaL_checklstring(L, 2, &length);
  luaL_checktype(L, 3, LUA_TFUNCTION);
  luaL_argcheck(L, !s->has_ended, 1, "the scanner's input has ended");
  lua_settop(L, 3);
  logscan_give(s->scan, bytes, length);
  return run(L, s);
}

static int scanner_finish(lua_State *L) {
  struct scanner *s = check_scanner(L);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  lua_pushnil(L);
  lua_insert(L, 2); /* the function stands where feed has it */
  s->has_ended = true;
  logscan_end(s->scan);
  return run(L, s);
}

static void set_integer(lua_State *L, const char *name, int64_t value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, name);
}

static void set_string(lua_State *L, const struct scanner *s, const char *name, int id) {
  if (id < 0) return;
  size_t length;
  const char *text = logscan_string(s->scan, id, &length);
  lua_pushlstring(L, text, length);
  lua_setfield(L, -2, name);
}

/* Pointers and ids as the log prints them: a script compares them with other lines. */
static void set_hex(lua_State *L, const char *name, uint64_t value) {
  char text[32];
  snprintf(text, sizeof text, "0x%llx", (unsigned long long)value);
  lua_pushstring(L, text);
  lua_setfield(L, -2, name);
}

static void set_operation(lua_State *L, const struct scanner *s,
                          const struct logscan_record *r) {
  set_string(L, s, "name", r->key.name);
  set_hex(L, "comm", r->key.of.operation.comm);
  set_integer(L, "elements", (int64_t)r->key.of.operation.count);
  set_integer(L, "datatype", r->key.of.operation.datatype);
  set_integer(L, "op", r->key.of.operation.op);
  set_integer(L, "root", r->key.of.operation.root);
  if (r->key.of.operation.ranks >= 0) set_integer(L, "ranks", r->key.of.operation.ranks);
  lua_pushboolean(L, r->key.of.operation.in_place);
  lua_setfield(L, -2, "in_place");
  set_integer(L, "first_op_count", (int64_t)r->low);
  set_integer(L, "last_op_count", (int64_t)r->high);
}

static void set_selection(lua_State *L, const struct scanner *s,
                          const struct logscan_record *r) {
  static const char *const forms[] = {"plain", "symmetric", "copy_engine"};
  set_string(L, s, "name", r->key.name);
  set_integer(L, "bytes", (int64_t)r->key.of.selection.bytes);
  set_string(L, s, "algorithm", r->key.of.selection.algorithm);
  set_string(L, s, "protocol", r->key.of.selection.protocol);
  if (r->key.of.selection.low >= 0) {
    set_integer(L, "low", r->key.of.selection.low);
    set_integer(L, "high", r->key.of.selection.high);
  }
  if (r->key.of.selection.threads) set_integer(L, "threads", r->key.of.selection.threads);
  if (r->key.of.selection.time_us >= 0) {
    lua_pushnumber(L, r->key.of.selection.time_us);
    lua_setfield(L, -2, "time_us");
  }
  lua_pushstring(L, forms[r->key.of.selection.form]);
  lua_setfield(L, -2, "form");
}

static void set_connection(lua_State *L, const struct scanner *s,
                           const struct logscan_record *r) {
  static const char *const directions[] = {NULL, "send", "receive"};
  set_integer(L, "from", r->key.of.connection.from);
  set_integer(L, "to", r->key.of.connection.to);
  set_string(L, s, "via", r->key.of.connection.via);
  lua_pushstring(L, directions[r->key.of.connection.direction]);
  lua_setfield(L, -2, "direction");
  set_integer(L, "low", (int64_t)r->low);
  set_integer(L, "high", (int64_t)r->high);
}

static void set_link(lua_State *L, const struct logscan_record *r) {
  lua_pushstring(L, r->key.of.link.is_tree ? "tree" : "ring");
  lua_setfield(L, -2, "kind");
  set_integer(L, "up", r->key.of.link.up);
  set_integer(L, "rank", r->key.of.link.rank);
  lua_createtable(L, 3, 0);
  for (int i = 0; i < 3; i++) {
    if (r->key.of.link.down[i] < 0) continue;
    lua_pushinteger(L, r->key.of.link.down[i]);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
  lua_setfield(L, -2, "down");
  set_integer(L, "low", (int64_t)r->low);
  set_integer(L, "high", (int64_t)r->high);
}

static void push_record(lua_State *L, const struct scanner *s, int index) {
  const struct logscan_record *r = logscan_record(s->scan, index);
  lua_createtable(L, 0, 16);
  set_string(L, s, "process", r->key.process);
  if (r->key.device >= 0) set_integer(L, "device", r->key.device);
  set_integer(L, "times", (int64_t)r->count);
  set_integer(L, "first_line", (int64_t)r->first_line);
  set_integer(L, "last_line", (int64_t)r->last_line);
  switch (r->key.topic) {
    case LOGSCAN_OPERATION: set_operation(L, s, r); break;
    case LOGSCAN_SELECTION: set_selection(L, s, r); break;
    case LOGSCAN_CONNECTION: set_connection(L, s, r); break;
    case LOGSCAN_LINK: set_link(L, r); break;
    case LOGSCAN_OTHER: set_string(L, s, "sample", (int)r->low - 1); break;
  }
}

static int scanner_record(lua_State *L) {
  struct scanner *s = check_scanner(L);
  int most = logscan_totals(s->scan)->records;
  lua_Integer index = bind_checkrange(L, 2, 1, most > 0 ? most : 1);
  luaL_argcheck(L, index <= most, 2, "there is no record");
  push_record(L, s, (int)index - 1);
  return 1;
}

static int scanner_records(lua_State *L) {
  struct scanner *s = check_scanner(L);
  static const char *const names[] = {
    "operation", "selection", "connection", "link", "other", NULL};
  int topic = LOGSCAN_OPERATION + bind_checkname(L, 2, names);
  lua_newtable(L);
  lua_Integer n = 0;
  for (int i = 0; i < logscan_totals(s->scan)->records; i++) {
    if (logscan_record(s->scan, i)->key.topic != topic) continue;
    push_record(L, s, i);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

static int scanner_thread(lua_State *L) {
  struct scanner *s = check_scanner(L);
  int most = logscan_totals(s->scan)->threads;
  lua_Integer index = bind_checkrange(L, 2, 1, LOGSCAN_THREADS);
  luaL_argcheck(L, index <= most, 2, "there is no such thread");
  const struct logscan_thread *t = logscan_thread(s->scan, (int)index - 1);
  lua_createtable(L, 0, 5);
  set_integer(L, "pid", t->pid);
  set_integer(L, "tid", t->tid);
  if (t->device >= 0) set_integer(L, "device", t->device);
  set_string(L, s, "process", t->process);
  if (t->process < 0) return 1;
  size_t length;
  lua_pushlstring(L, logscan_string(s->scan, t->process, &length), t->host_length);
  lua_setfield(L, -2, "host");
  return 1;
}

static int scanner_totals(lua_State *L) {
  const struct logscan_totals *t = logscan_totals(check_scanner(L)->scan);
  lua_createtable(L, 0, 8);
  set_integer(L, "bytes", (int64_t)t->bytes);
  set_integer(L, "lines", (int64_t)t->lines);
  set_integer(L, "messages", (int64_t)t->messages);
  lua_newtable(L);
  for (int i = LOGSCAN_TEXT; i < LOGSCAN_TOPICS; i++) {
    if (t->topics[i]) set_integer(L, logscan_topics[i], (int64_t)t->topics[i]);
  }
  lua_setfield(L, -2, "topics");
  lua_newtable(L);
  for (int i = LOGSCAN_TEXT; i < LOGSCAN_TOPICS; i++) {
    if (t->overflow[i]) set_integer(L, logscan_topics[i], (int64_t)t->overflow[i]);
  }
  lua_setfield(L, -2, "overflow");
  return 1;
}

static const luaL_Reg scanner_meta[] = {
  {"__gc", scanner_close},
  {"__close", scanner_close},
  {"__tostring", scanner_tostring},
  {NULL, NULL},
};

static const luaL_Reg scanner_methods[] = {
  {"close", scanner_close},
  {"feed", scanner_feed},
  {"finish", scanner_finish},
  {"record", scanner_record},
  {"records", scanner_records},
  {"thread", scanner_thread},
  {"totals", scanner_totals},
  {NULL, NULL},
};

static const luaL_Reg functions[] = {
  {"new", scanner_new},
  {NULL, NULL},
};

int luaopen_nclua_logscan(lua_State *L) {
  bind_type(L, SCANNER, scanner_meta, scanner_methods);
  luaL_newlib(L, functions);
  return 1;
}
