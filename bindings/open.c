#include "bindings/open.h"

#include "bindings/cuda.h"
#include "bindings/nccl.h"

#include <lauxlib.h>

static const luaL_Reg modules[] = {
  {"cjson", open_cjson},
  {"cjson.safe", open_cjson_safe},
  {"lfs", open_lfs},
  {"nclua.cpu", luaopen_nclua_cpu},
  {"nclua.cuda", luaopen_nclua_cuda},
  {"nclua.elements", luaopen_nclua_elements},
  {"nclua.embedded", luaopen_nclua_embedded},
  {"nclua.gzip", luaopen_nclua_gzip},
  {"nclua.hash", luaopen_nclua_hash},
  {"nclua.lines", luaopen_nclua_lines},
  {"nclua.nccl", luaopen_nclua_nccl},
  {"nclua.inventory", luaopen_nclua_inventory},
  {"nclua.logscan", luaopen_nclua_logscan},
  {"nclua.process", luaopen_nclua_process},
  {"nclua.sandbox", luaopen_nclua_sandbox},
  {"nclua.sqlite", luaopen_nclua_sqlite},
  {"nclua.stats", luaopen_nclua_stats},
  {"nclua.terminal", luaopen_nclua_terminal},
  {"nclua.world", luaopen_nclua_world},
  {"nclua.trace", luaopen_nclua_trace},
  {"nclua.tuner", luaopen_nclua_tuner},
  {"nclua.xml", luaopen_nclua_xml},
  {NULL, NULL},
};

void open_modules(lua_State *L) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  luaL_setfuncs(L, modules, 0);
  lua_pop(L, 1);
}
