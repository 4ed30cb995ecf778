/* The LL protocol: every 8 bytes are 4 of data and 4 of flag, stored at once. Nothing else
   orders them, so nothing else has to be waited for: low latency for twice the bytes. */

#include "host/cpu/lines.h"
#include "host/cpu/slot.h"

#include <string.h>

#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
#include <emmintrin.h>
#define HAS_VECTORS 1
#else
#define HAS_VECTORS 0
#endif

enum { DATA = 4, WIRE = 8, COUNT_BITS = 24 };
#define CLEAN_EVERY ((uint32_t)1 << (COUNT_BITS - 4)) /* uses; well before flags repeat */

/* A flag counts the uses of its slot, not steps: those may go on for long without LL. */
static uint64_t flag_for(uint32_t uses, uint32_t signature) {
  uint32_t low = (uses + 1) & ((1u << COUNT_BITS) - 1);
  return low | (signature >> COUNT_BITS << COUNT_BITS);
}

static uint64_t flag_of(const struct cpu_connection *c, uint32_t signature) {
  return flag_for(c->uses[c->step % CPU_STEPS], signature);
}

static void store(char *line, uint32_t data, uint64_t flag) {
  __atomic_store_n((uint64_t *)(void *)line, flag << 32 | data, __ATOMIC_RELAXED);
}

static bool load(const char *line, uint32_t *data, uint64_t flag) {
  uint64_t word = __atomic_load_n((const uint64_t *)(const void *)line, __ATOMIC_RELAXED);
  *data = (uint32_t)word;
  return word >> 32 == flag;
}

/* Vectors of 16 bytes are two lines each. Their halves are stored and loaded whole, and
   more is not needed. These do what they can and leave the rest to the words. */
#if HAS_VECTORS
static size_t pack_vectors(char *lines, const char *src, size_t bytes, uint64_t flag) {
  const __m128i flags = _mm_set1_epi32((int)flag);
  size_t at = 0;
  for (; at + 16 <= bytes; at += 16) {
    const __m128i data = _mm_loadu_si128((const void *)(src + at));
    __m128i *to = (void *)(lines + 2 * at);
    _mm_store_si128(to, _mm_unpacklo_epi32(data, flags));
    _mm_store_si128(to + 1, _mm_unpackhi_epi32(data, flags));
  }
  return at;
}

static size_t unpack_vectors(char *dst, const char *lines, size_t bytes, uint64_t flag) {
  const __m128i flags = _mm_set1_epi32((int)flag);
  size_t at = 0;
  for (; at + 16 <= bytes; at += 16) {
    const __m128 a = _mm_load_ps((const void *)(lines + 2 * at));
    const __m128 b = _mm_load_ps((const void *)(lines + 2 * at + 16));
    const __m128i came = _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1)));
    if (_mm_movemask_epi8(_mm_cmpeq_epi32(came, flags)) != 0xffff) break;
    _mm_storeu_ps((void *)(dst + at), _mm_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)));
  }
  return at;
}
#else
static size_t pack_vectors(char *lines, const char *src, size_t bytes, uint64_t flag) {
  (void)lines, (void)src, (void)bytes, (void)flag;
  return 0;
}

static size_t unpack_vectors(char *dst, const char *lines, size_t bytes, uint64_t flag) {
  (void)dst, (void)lines, (void)bytes, (void)flag;
  return 0;
}
#endif

static void pack(char *lines, const char *src, size_t bytes, uint64_t flag) {
  for (size_t at = pack_vectors(lines, src, bytes, flag); at < bytes; at += DATA) {
    uint32_t word = 0;
    if (bytes - at >= DATA)
      memcpy(&word, src + at, DATA);
    else
      memcpy(&word, src + at, bytes - at);
    store(lines + 2 * at, word, flag);
  }
}

static size_t unpack(char *dst, const char *lines, size_t bytes, uint64_t flag) {
  size_t at = unpack_vectors(dst, lines, bytes, flag);
  for (uint32_t word; at < bytes; at += DATA) {
    if (!load(lines + 2 * at, &word, flag)) return at;
    if (bytes - at < DATA) {
      memcpy(dst + at, &word, bytes - at);
      return bytes;
    }
    memcpy(dst + at, &word, DATA);
  }
  return at;
}

/* A line that was not written for 2^24 uses of its slot holds a flag that comes round
   again: so all lines of a slot are written once in a while. */
static void clean(const struct cpu_connection *c) {
  uint32_t uses = c->uses[c->step % CPU_STEPS];
  if (uses == 0 || uses % CLEAN_EVERY) return;
  char *slot = cpu_slot_data(c, CPU_LL);
  for (size_t at = 0; at < c->buffers->slot_bytes[CPU_LL]; at += WIRE) {
    store(slot + at, 0, flag_for(uses - 1, 0));
  }
}

static void count_uses(struct cpu_connection *const *ends, int count) {
  for (int i = 0; i < count; i++) ends[i]->uses[ends[i]->step % CPU_STEPS]++;
}

static const struct cpu_lines lines = {DATA, WIRE, flag_of, pack, unpack};

static void transfer(struct cpu_primitives *p, const struct cpu_chunk *slice) {
  for (int i = 0; slice->send && i < p->nsend; i++) clean(p->send[i]);
  cpu_lines_transfer(p, slice, &lines);
  if (slice->send) count_uses(p->send, p->nsend);
  if (slice->recv) count_uses(p->recv, p->nrecv);
}

const struct cpu_protocol cpu_ll = {"LL", CPU_LL, DATA, WIRE, transfer};
