#include "plugins/tuner/observe.h"

#include "plugins/expand.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RING = 4096, PATH = 4096 };

static const char *const outcomes[] = {"kept", "forced", "unavailable"};

/* One file and one thread a process: all communicators share them. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t filled, drained;
  FILE *file;
  struct observation ring[RING];
  uint64_t put, taken, flushed, lost;
} book = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .filled = PTHREAD_COND_INITIALIZER,
          .drained = PTHREAD_COND_INITIALIZER};

static void print_header(void) {
  fputs("collective,bytes,ranks,nodes,ops,registered,channels,outcome,algorithm,protocol",
        book.file);
  for (int a = 0; rules_algorithms[a]; a++) {
    for (int p = 0; p < ABI_PROTOCOLS; p++) {
      fprintf(book.file, ",%s/%s_us", rules_algorithms[a], rules_protocols[p]);
    }
  }
  fputc('\n', book.file);
}

static void print_one(const struct observation *o) {
  fprintf(book.file,
          "%s,%llu,%lld,%lld,%d,%d,%d,%s,%s,%s",
          rules_functions[o->call.func],
          (unsigned long long)o->call.bytes,
          (long long)o->call.ranks,
          (long long)o->call.nodes,
          o->call.ops,
          o->call.registered,
          o->channels,
          outcomes[o->outcome],
          o->algorithm < 0 ? "" : rules_algorithms[o->algorithm],
          o->protocol < 0 ? "" : rules_protocols[o->protocol]);
  for (int i = 0; i < o->algorithms * ABI_PROTOCOLS; i++) {
    fprintf(book.file, ",%.9g", (double)o->costs[i]);
  }
  fputc('\n', book.file);
}

/* Until there is something to write, or a moment has passed: called with the lock held. */
static void sleep_a_little(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 20000000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_cond_timedwait(&book.filled, &book.lock, &until);
}

/* Takes one record at a time so that a caller never waits for more than a copy. */
static void *write_all(void *unused) {
  (void)unused;
  struct observation o;
  pthread_mutex_lock(&book.lock);
  for (;;) {
    while (book.taken == book.put) {
      pthread_mutex_unlock(&book.lock);
      fflush(book.file);
      pthread_mutex_lock(&book.lock);
      book.flushed = book.taken;
      pthread_cond_broadcast(&book.drained);
      if (book.taken == book.put) sleep_a_little();
    }
    o = book.ring[book.taken % RING];
    book.taken++;
    uint64_t lost = book.lost;
    book.lost = 0;
    pthread_mutex_unlock(&book.lock);
    if (lost) fprintf(book.file, "# %llu calls lost here\n", (unsigned long long)lost);
    print_one(&o);
    pthread_mutex_lock(&book.lock);
  }
  return NULL;
}

static int open_file(const char *pattern, char *why, size_t size) {
  char path[PATH];
  if (expand_pattern(pattern, path, sizeof path)) {
    snprintf(why, size, "the path '%.64s...' is too long", pattern);
    return -1;
  }
  book.file = fopen(path, "we");
  if (book.file) return 0;
  snprintf(why, size, "cannot write '%s': %s", path, strerror(errno));
  return -1;
}

int observe_open(const char *pattern, char *why, size_t size) {
  pthread_t thread;
  int rc = 0;
  pthread_mutex_lock(&book.lock);
  if (!book.file) {
    rc = open_file(pattern, why, size);
    if (!rc) print_header();
    if (!rc && pthread_create(&thread, NULL, write_all, NULL)) {
      snprintf(why, size, "cannot start a thread");
      fclose(book.file);
      book.file = NULL;
      rc = -1;
    } else if (!rc) {
      pthread_detach(thread);
    }
  }
  pthread_mutex_unlock(&book.lock);
  return rc;
}

void observe_call(const struct observation *o) {
  pthread_mutex_lock(&book.lock);
  if (book.file) {
    if (book.put - book.taken == RING) {
      book.lost++;
    } else {
      book.ring[book.put % RING] = *o;
      /* Waking costs more than the rest: the thread looks by itself every 20 ms. */
      if (++book.put - book.taken == RING / 2) pthread_cond_signal(&book.filled);
    }
  }
  pthread_mutex_unlock(&book.lock);
}

void observe_flush(void) {
  pthread_mutex_lock(&book.lock);
  while (book.file && book.flushed != book.put) {
    pthread_cond_signal(&book.filled);
    pthread_cond_wait(&book.drained, &book.lock);
  }
  pthread_mutex_unlock(&book.lock);
}
