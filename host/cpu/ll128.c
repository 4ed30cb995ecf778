/* The LL128 protocol: lines of 120 bytes of data and 8 of flag. The flag is stored last and
   looked at first, with the ordering that this needs: none but the compiler's on x86, a
   load-acquire and a store-release on Arm. */

#include "host/cpu/lines.h"

#include <string.h>

enum { DATA = 120, WIRE = 128, SIGNATURE_BITS = 16 };

/* Of 48 bits, a step never comes round again. */
static uint64_t flag_of(const struct cpu_connection *c, uint32_t signature) {
  return (c->step + 1) << SIGNATURE_BITS | signature >> (32 - SIGNATURE_BITS);
}

static uint64_t *flag_in(const char *line) {
  return (uint64_t *)(uintptr_t)(line + DATA);
}

/* In vectors: for this size, the compiler's memcpy is a slow string instruction. */
static void copy_line(char *dst, const char *src) {
  for (size_t i = 0; i + 16 <= DATA; i += 16) memcpy(dst + i, src + i, 16);
  memcpy(dst + DATA - 8, src + DATA - 8, 8);
}

static void pack(char *lines, const char *src, size_t bytes, uint64_t flag) {
  for (; bytes >= DATA; lines += WIRE, src += DATA, bytes -= DATA) {
    copy_line(lines, src);
    __atomic_store_n(flag_in(lines), flag, __ATOMIC_RELEASE);
  }
  if (!bytes) return;
  memcpy(lines, src, bytes);
  __atomic_store_n(flag_in(lines), flag, __ATOMIC_RELEASE);
}

static size_t unpack(char *dst, const char *lines, size_t bytes, uint64_t flag) {
  size_t at = 0;
  for (; at + DATA <= bytes; at += DATA, lines += WIRE) {
    if (__atomic_load_n(flag_in(lines), __ATOMIC_ACQUIRE) != flag) return at;
    copy_line(dst + at, lines);
  }
  if (at == bytes || __atomic_load_n(flag_in(lines), __ATOMIC_ACQUIRE) != flag) return at;
  memcpy(dst + at, lines, bytes - at);
  return bytes;
}

static const struct cpu_lines lines = {DATA, WIRE, flag_of, pack, unpack};

static void transfer(struct cpu_primitives *p, const struct cpu_chunk *slice) {
  cpu_lines_transfer(p, slice, &lines);
}

const struct cpu_protocol cpu_ll128 = {"LL128", CPU_LL128, DATA, WIRE, transfer};
