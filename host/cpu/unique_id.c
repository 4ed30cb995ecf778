#include "host/cpu/unique_id.h"
#include "host/cpu/fail.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static const char magic[8] = "nclua-1";

ncclResult_t cpu_unique_id_create(ncclUniqueId *id) {
  if (!id) return cpu_fail(ncclInvalidArgument, "id is NULL");
  if (getrandom(id->internal, sizeof id->internal, 0) != sizeof id->internal) {
    return cpu_fail(ncclSystemError, "getrandom gave no random bytes");
  }
  memcpy(id->internal, magic, sizeof magic); /* 120 random bytes are left */
  return ncclSuccess;
}

bool cpu_unique_id_is_ours(const ncclUniqueId *id) {
  return memcmp(id->internal, magic, sizeof magic) == 0;
}

/* FNV-1a over bytes; then splitmix64's finaliser spreads it over the token. */
static uint64_t hash(uint64_t h, const void *data, size_t bytes) {
  for (const unsigned char *p = data; bytes--; p++) h = (h ^ *p) * 0x100000001b3u;
  return h;
}

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t cpu_unique_id_hash(const ncclUniqueId *id) {
  return mix(hash(0xcbf29ce484222325u, id->internal, sizeof id->internal));
}

ncclUniqueId cpu_unique_id_derive(const ncclUniqueId *parent, const char *how,
                                  uint64_t salt) {
  ncclUniqueId child;
  uint64_t h = hash(0xcbf29ce484222325u, how, strlen(how));
  h = hash(h, &salt, sizeof salt);
  for (size_t at = 0; at < sizeof child; at += sizeof h) {
    h = mix(hash(h, parent->internal + at, sizeof h));
    memcpy(child.internal + at, &h, sizeof h);
  }
  memcpy(child.internal, magic, sizeof magic);
  return child;
}

socklen_t cpu_unique_id_address(const ncclUniqueId *id, struct sockaddr_un *address) {
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  char *at = address->sun_path + 1; /* a leading NUL makes the name abstract */
  size_t room = sizeof address->sun_path - 1;
  int length = snprintf(at, room, "nclua-");
  for (size_t i = sizeof magic; i < 40; i++) {
    length +=
      snprintf(at + length, room - (size_t)length, "%02x", (unsigned char)id->internal[i]);
  }
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}
