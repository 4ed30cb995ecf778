#include "host/forkable.h"

#include <pthread.h>
#include <string.h>

enum { KINDS = 16 };

/* Process-wide by nature: a fork copies the whole process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  const char *what;
  int count;
} held[KINDS];

/* The slot of `what`, a free one if it is new. KINDS exceeds the kinds there are. */
static int slot_of(const char *what) {
  int free_slot = KINDS - 1;
  for (int i = KINDS - 1; i >= 0; i--) {
    if (held[i].what && strcmp(held[i].what, what) == 0) return i;
    if (!held[i].what) free_slot = i;
  }
  return free_slot;
}

void forkable_hold(const char *what) {
  pthread_mutex_lock(&lock);
  int i = slot_of(what);
  held[i].what = what;
  held[i].count++;
  pthread_mutex_unlock(&lock);
}

void forkable_release(const char *what) {
  pthread_mutex_lock(&lock);
  int i = slot_of(what);
  if (held[i].count > 0 && --held[i].count == 0) held[i].what = NULL;
  pthread_mutex_unlock(&lock);
}

int forkable_check(struct err *e) {
  int rc = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < KINDS && !rc; i++) {
    if (held[i].count) {
      rc = err_set(e, "busy", "this process cannot fork ranks: it has %s", held[i].what);
    }
  }
  pthread_mutex_unlock(&lock);
  return rc;
}
