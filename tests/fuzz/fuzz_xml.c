#include "bindings/open.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <lauxlib.h>
#include <stdint.h>

/* Any document through the binding: an element or nil, message, code. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lua_State *L = luaL_newstate();
  assert(L);
  luaL_requiref(L, "nclua.xml", luaopen_nclua_xml, 0);
  lua_getfield(L, -1, "parse");
  lua_pushlstring(L, (const char *)data, size);
  assert(lua_pcall(L, 1, 3, 0) == LUA_OK);
  if (lua_isnil(L, -3))
    assert(lua_isstring(L, -2) && lua_isstring(L, -1));
  else
    assert(lua_istable(L, -3));
  lua_close(L);
  return 0;
}
