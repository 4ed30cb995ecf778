#include "bindings/bind.h"
#include "bindings/open.h"

#include <errno.h>
#include <sha2.h>
#include <string.h>

/* hash.sha256(text) */
static int hash_sha256(lua_State *L) {
  size_t bytes;
  const char *text = luaL_checklstring(L, 1, &bytes);
  char hex[SHA256_DIGEST_STRING_LENGTH];
  SHA256Data((const uint8_t *)text, bytes, hex);
  lua_pushstring(L, hex);
  return 1;
}

/* hash.sha256_file(path): in constant memory. */
static int hash_sha256_file(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  char hex[SHA256_DIGEST_STRING_LENGTH];
  if (!SHA256File(path, hex)) {
    const int error = errno;
    struct err e;
    err_set(&e, error == ENOENT ? "ENOENT" : "EIO", "%s: %s", path, strerror(error));
    return bind_fail(L, &e);
  }
  lua_pushstring(L, hex);
  return 1;
}

static const luaL_Reg functions[] = {
  {"sha256", hash_sha256},
  {"sha256_file", hash_sha256_file},
  {NULL, NULL},
};

int luaopen_nclua_hash(lua_State *L) {
  luaL_checkversion(L);
  luaL_newlib(L, functions);
  return 1;
}
