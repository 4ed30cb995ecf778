#include "bindings/bind.h"
#include "bindings/open.h"

#include <expat.h>
#include <limits.h>

/* nclua.xml: a whole document into tables, by expat. Topology and graph files come from
   strangers: depth is limited and entities are refused. */

#define BOX "xml.parser"

enum { MOST_DEPTH = 200 };

struct reader {
  lua_State *L; /* the open elements are on its stack, the innermost on top */
  XML_Parser parser;
  int depth;
  const char *problem; /* static string: why we stopped the parser ourselves */
};

static void stop(struct reader *r, const char *problem) {
  r->problem = problem;
  XML_StopParser(r->parser, XML_FALSE);
}

static void push_attributes(lua_State *L, const XML_Char **attributes) {
  lua_newtable(L);
  for (; *attributes; attributes += 2) {
    lua_pushstring(L, attributes[1]);
    lua_setfield(L, -2, attributes[0]);
  }
}

/* Pushes the new element after entering it into its parent. */
static void XMLCALL on_start(void *data, const XML_Char *name,
                             const XML_Char **attributes) {
  struct reader *r = data;
  lua_State *L = r->L;
  if (r->problem) return;
  if (++r->depth > MOST_DEPTH) {
    stop(r, "elements nested more than 200 deep");
    return;
  }
  luaL_checkstack(L, 6, "XML");
  lua_createtable(L, 0, 3);
  lua_pushstring(L, name);
  lua_setfield(L, -2, "name");
  push_attributes(L, attributes);
  lua_setfield(L, -2, "attributes");
  lua_newtable(L);
  lua_setfield(L, -2, "children");
  lua_getfield(L, -2, "children");
  lua_pushvalue(L, -2);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  lua_pop(L, 1);
}

static void XMLCALL on_end(void *data, const XML_Char *name) {
  struct reader *r = data;
  (void)name;
  if (r->problem) return;
  r->depth--;
  lua_pop(r->L, 1);
}

static void XMLCALL on_entity(void *data, const XML_Char *name, int is_parameter,
                              const XML_Char *value, int length, const XML_Char *base,
                              const XML_Char *system, const XML_Char *public_id,
                              const XML_Char *notation) {
  (void)name, (void)is_parameter, (void)value, (void)length;
  (void)base, (void)system, (void)public_id, (void)notation;
  stop(data, "entity declarations are refused");
}

static int parser_gc(lua_State *L) {
  struct reader *r = luaL_checkudata(L, 1, BOX);
  if (r->parser) XML_ParserFree(r->parser);
  r->parser = NULL;
  return 0;
}

static const luaL_Reg parser_meta[] = {{"__gc", parser_gc}, {NULL, NULL}};
static const luaL_Reg parser_methods[] = {{NULL, NULL}};

/* nil, "line 3: mismatched tag", "EINVAL" */
static int fail(lua_State *L, struct reader *r) {
  const char *problem =
    r->problem ? r->problem : XML_ErrorString(XML_GetErrorCode(r->parser));
  unsigned long line = XML_GetCurrentLineNumber(r->parser);
  luaL_pushfail(L);
  lua_pushfstring(L, "line %d: %s", (int)line, problem);
  lua_pushliteral(L, "EINVAL");
  return 3;
}

static int xml_parse(lua_State *L) {
  size_t length;
  const char *text = luaL_checklstring(L, 1, &length);
  luaL_argcheck(L, length <= INT_MAX, 1, "a document of more than 2 GiB");
  struct reader *r = lua_newuserdatauv(L, sizeof *r, 0);
  *r = (struct reader){.L = L};
  luaL_setmetatable(L, BOX);
  r->parser = XML_ParserCreate(NULL);
  if (!r->parser) return luaL_error(L, "not enough memory for an XML parser");
  XML_SetUserData(r->parser, r);
  XML_SetElementHandler(r->parser, on_start, on_end);
  XML_SetEntityDeclHandler(r->parser, on_entity);
  lua_createtable(L, 0, 1); /* stands for the document: its one child is the root */
  lua_newtable(L);
  lua_setfield(L, -2, "children");
  int document = lua_gettop(L);
  if (XML_Parse(r->parser, text, (int)length, XML_TRUE) != XML_STATUS_OK) return fail(L, r);
  lua_settop(L, document);
  lua_getfield(L, -1, "children");
  lua_rawgeti(L, -1, 1);
  return 1;
}

static const luaL_Reg functions[] = {{"parse", xml_parse}, {NULL, NULL}};

int luaopen_nclua_xml(lua_State *L) {
  bind_type(L, BOX, parser_meta, parser_methods);
  luaL_newlib(L, functions);
  return 1;
}
