#include "host/cpu/handle.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* A handle: generation (32 bits), slot (24 bits), kind (8 bits). Zero is a free slot. */
enum { CHUNK = 1024, CHUNKS = 1024 };

struct slot {
  uintptr_t handle; /* atomic: checked without the lock */
  void *object;     /* atomic */
  uint32_t generation;
  uint32_t next_free; /* slot number + 1 */
};

static struct slot *chunks[CHUNKS]; /* atomic; a chunk is never freed */
static uint32_t used, first_free;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct slot *slot_at(uint32_t number) {
  if (number >= CHUNK * CHUNKS) return NULL;
  struct slot *chunk = __atomic_load_n(&chunks[number / CHUNK], __ATOMIC_ACQUIRE);
  return chunk ? &chunk[number % CHUNK] : NULL;
}

static struct slot *find(enum cpu_handle_kind kind, const void *handle) {
  const uintptr_t bits = (uintptr_t)handle;
  struct slot *slot = slot_at((uint32_t)(bits >> 8) & 0xffffff);
  if ((bits & 0xff) != kind || !slot) return NULL;
  return __atomic_load_n(&slot->handle, __ATOMIC_ACQUIRE) == bits ? slot : NULL;
}

static bool grow(void) {
  if (used == CHUNK * CHUNKS) return false;
  if (used % CHUNK) return true;
  struct slot *chunk = calloc(CHUNK, sizeof *chunk);
  if (!chunk) return false;
  __atomic_store_n(&chunks[used / CHUNK], chunk, __ATOMIC_RELEASE);
  return true;
}

static void *occupy(uint32_t number, enum cpu_handle_kind kind, void *object) {
  struct slot *slot = slot_at(number);
  slot->generation++;
  const uintptr_t bits =
    (uintptr_t)slot->generation << 32 | (uintptr_t)number << 8 | (uintptr_t)kind;
  __atomic_store_n(&slot->object, object, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->handle, bits, __ATOMIC_RELEASE);
  return (void *)bits;
}

void *cpu_handle_new(enum cpu_handle_kind kind, void *object) {
  void *handle = NULL;
  pthread_mutex_lock(&lock);
  if (first_free) {
    const uint32_t number = first_free - 1;
    first_free = slot_at(number)->next_free;
    handle = occupy(number, kind, object);
  } else if (grow()) {
    handle = occupy(used++, kind, object);
  }
  pthread_mutex_unlock(&lock);
  return handle;
}

void *cpu_handle_get(enum cpu_handle_kind kind, const void *handle) {
  struct slot *slot = find(kind, handle);
  return slot ? __atomic_load_n(&slot->object, __ATOMIC_RELAXED) : NULL;
}

void *cpu_handle_take(enum cpu_handle_kind kind, const void *handle) {
  void *object = NULL;
  pthread_mutex_lock(&lock);
  struct slot *slot = find(kind, handle);
  if (slot) {
    object = slot->object;
    __atomic_store_n(&slot->handle, 0, __ATOMIC_RELEASE);
    slot->next_free = first_free;
    first_free = ((uint32_t)((uintptr_t)handle >> 8) & 0xffffff) + 1;
  }
  pthread_mutex_unlock(&lock);
  return object;
}
