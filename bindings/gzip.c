#include "bindings/bind.h"
#include "bindings/open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* nclua.gzip: reads a file or standard input, decompressed if it is compressed; and texts
   in zlib's format. */

#define READER "gzip.reader"

enum { MOST_READ = 1 << 24 };

struct reader {
  gzFile file; /* NULL: closed */
};

static struct reader *check_reader(lua_State *L) {
  struct reader *r = luaL_checkudata(L, 1, READER);
  bind_checkopen(L, r->file != NULL, "reader");
  return r;
}

static int reader_close(lua_State *L) {
  struct reader *r = luaL_checkudata(L, 1, READER);
  gzFile file = r->file;
  r->file = NULL;
  if (file) gzclose_r(file);
  return 0;
}

static int reader_tostring(lua_State *L) {
  const struct reader *r = luaL_checkudata(L, 1, READER);
  lua_pushfstring(L, READER "%s", r->file ? "" : " (closed)");
  return 1;
}

/* A folder opens but does not read: say so here, where the name is known. */
static int open_input(const char *path, struct err *e) {
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC)
                : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (fd < 0) {
    err_errno(e, "cannot open '%s'", path ? path : "standard input");
    return -1;
  }
  char probe;
  if (read(fd, &probe, 0) == 0) return fd;
  err_errno(e, "cannot read '%s'", path ? path : "standard input");
  close(fd);
  return -1;
}

static int reader_open(lua_State *L) {
  const char *path = luaL_optstring(L, 1, NULL);
  struct err e;
  struct reader *r = lua_newuserdatauv(L, sizeof *r, 0);
  r->file = NULL;
  luaL_setmetatable(L, READER);
  int fd = open_input(path, &e);
  if (fd < 0) return bind_fail(L, &e);
  r->file = gzdopen(fd, "rb");
  if (!r->file) {
    close(fd);
    return luaL_error(L, "not enough memory for a reader");
  }
  gzbuffer(r->file, 1 << 17);
  return 1;
}

/* nil, message, code: the compressed data is damaged or ends early, or the disk fails. */
static int fail(lua_State *L, gzFile file) {
  struct err e;
  int code;
  const char *text = gzerror(file, &code);
  if (code == Z_ERRNO)
    err_errno(&e, "cannot read");
  else
    err_set(&e, "EILSEQ", "damaged gzip data: %s", text);
  return bind_fail(L, &e);
}

/* Some bytes, an empty string at the end. */
static int reader_read(lua_State *L) {
  struct reader *r = check_reader(L);
  size_t most = bind_checksize(L, 2, 1, MOST_READ);
  luaL_Buffer b;
  char *room = luaL_buffinitsize(L, &b, most);
  int got = gzread(r->file, room, (unsigned)most);
  int code = Z_OK;
  if (got == 0) gzerror(r->file, &code); /* Z_BUF_ERROR: it ends in the middle */
  if (got < 0 || code < 0) return fail(L, r->file);
  luaL_pushresultsize(&b, (size_t)got);
  return 1;
}

static const luaL_Reg reader_meta[] = {
  {"__gc", reader_close},
  {"__close", reader_close},
  {"__tostring", reader_tostring},
  {NULL, NULL},
};

static const luaL_Reg reader_methods[] = {
  {"close", reader_close},
  {"read", reader_read},
  {NULL, NULL},
};

/* gzip.deflate(text): in zlib's format, as SQLite's archives have it. */
static int deflate_text(lua_State *L) {
  size_t bytes;
  const char *text = luaL_checklstring(L, 1, &bytes);
  luaL_Buffer b;
  uLongf used = compressBound((uLong)bytes);
  char *room = luaL_buffinitsize(L, &b, used);
  const int rc =
    compress2((Bytef *)room, &used, (const Bytef *)text, (uLong)bytes, Z_BEST_COMPRESSION);
  if (rc != Z_OK) return luaL_error(L, "deflate: %s", zError(rc));
  luaL_pushresultsize(&b, used);
  return 1;
}

/* gzip.inflate(data, bytes): exactly as many, or it is damaged. Deflate packs 1032 to 1 at
   best: what claims more would only have us reserve the memory. */
static int inflate_text(lua_State *L) {
  enum { BEST_RATIO = 1032, SMALLEST = 64 };
  size_t packed;
  const char *data = luaL_checklstring(L, 1, &packed);
  const size_t bytes = bind_checksize(L, 2, 0, (size_t)1 << 31);
  struct err e;
  if (bytes / BEST_RATIO > packed + SMALLEST) {
    err_set(&e, "EILSEQ", "damaged zlib data: it cannot be %zu bytes", bytes);
    return bind_fail(L, &e);
  }
  luaL_Buffer b;
  uLongf used = bytes;
  char *room = luaL_buffinitsize(L, &b, bytes + 1); /* zlib wants room, even for nothing */
  const int rc = uncompress((Bytef *)room, &used, (const Bytef *)data, (uLong)packed);
  if (rc == Z_OK && used == bytes) {
    luaL_pushresultsize(&b, used);
    return 1;
  }
  err_set(&e, "EILSEQ", "damaged zlib data: %s", rc ? zError(rc) : "too short");
  return bind_fail(L, &e);
}

static const luaL_Reg functions[] = {
  {"deflate", deflate_text},
  {"inflate", inflate_text},
  {"open", reader_open},
  {NULL, NULL},
};

int luaopen_nclua_gzip(lua_State *L) {
  bind_type(L, READER, reader_meta, reader_methods);
  luaL_newlib(L, functions);
  return 1;
}
