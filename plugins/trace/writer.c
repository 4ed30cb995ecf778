#include "plugins/trace/writer.h"

#include "plugins/trace/pack.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MEMORY_BYTES = 256 << 20, TICK_NS = 100000000, SOURCES = 4 };

struct buffer {
  struct buffer *next;
  size_t used;
  bool is_packed; /* rows of pack.h, not the caller's own */
  _Alignas(16) uint8_t data[WRITER_BUFFER_BYTES];
};

struct lost {
  const char *source;
  uint64_t count;
};

struct writer {
  struct writer *older; /* stopped before, see writer_keep */
  struct writer_options options;
  struct store *store;
  pthread_t thread;

  pthread_mutex_t lock;
  pthread_cond_t filled, drained;
  struct buffer *first, **last; /* what waits, in order */
  struct buffer *spare;
  size_t count, most; /* of buffers that exist, and may */
  uint64_t flush_asked, flush_done;
  struct lost lost[SOURCES];
  bool is_ending;
  bool is_closed; /* nothing may wait any more */

  pthread_mutex_t put_lock; /* taken before `lock` */
  struct buffer *packing;   /* filled by writer_put */
};

const struct session *writer_session(const struct writer *w) {
  return &w->options.session;
}

static struct buffer *take(struct writer *w, bool is_packed) {
  pthread_mutex_lock(&w->lock);
  struct buffer *b = w->spare;
  if (b) w->spare = b->next;
  const bool may_grow = !b && !w->is_closed && w->count < w->most;
  w->count += may_grow;
  pthread_mutex_unlock(&w->lock);
  if (may_grow) b = malloc(sizeof *b); /* pages come when they are written to */
  if (!b) return NULL;
  b->is_packed = is_packed;
  b->used = 0;
  return b;
}

static void give_back(struct writer *w, struct buffer *b) {
  pthread_mutex_lock(&w->lock);
  const bool is_closed = w->is_closed;
  if (!is_closed) {
    b->next = w->spare;
    w->spare = b;
  }
  pthread_mutex_unlock(&w->lock);
  if (is_closed) free(b);
}

static void give(struct writer *w, struct buffer *b) {
  b->next = NULL;
  pthread_mutex_lock(&w->lock);
  const bool is_closed = w->is_closed;
  if (!is_closed) {
    *w->last = b;
    w->last = &b->next;
    pthread_cond_signal(&w->filled);
  }
  pthread_mutex_unlock(&w->lock);
  if (is_closed) free(b);
}

uint8_t *writer_take(struct writer *w) {
  struct buffer *b = take(w, false);
  return b ? b->data : NULL;
}

void writer_give(struct writer *w, uint8_t *data, size_t used) {
  struct buffer *b = (struct buffer *)(void *)(data - offsetof(struct buffer, data));
  b->used = used;
  if (used)
    give(w, b);
  else
    give_back(w, b);
}

void writer_lost(struct writer *w, const char *source, uint64_t count) {
  pthread_mutex_lock(&w->lock);
  int at = 0;
  while (at < SOURCES - 1 && w->lost[at].source && w->lost[at].source != source) at++;
  w->lost[at].source = source;
  w->lost[at].count += count;
  pthread_mutex_unlock(&w->lock);
}

/* With put_lock held: the place for so many bytes, NULL if there is none. */
static uint8_t *reserve(struct writer *w, size_t bytes) {
  if (w->packing && w->packing->used + bytes > WRITER_BUFFER_BYTES) {
    give(w, w->packing);
    w->packing = NULL;
  }
  if (!w->packing) w->packing = take(w, true);
  if (!w->packing) return NULL;
  uint8_t *place = w->packing->data + w->packing->used;
  w->packing->used += bytes;
  return place;
}

void writer_put(struct writer *w, const struct trace_row *row) {
  const size_t bytes = pack_size(row);
  pthread_mutex_lock(&w->put_lock);
  uint8_t *place = reserve(w, bytes);
  if (place) pack_row(row, place);
  pthread_mutex_unlock(&w->put_lock);
  if (!place) writer_lost(w, "rows", 1);
}

static void store_packed(struct writer *w, const struct buffer *b) {
  struct trace_row row;
  for (size_t at = 0; at < b->used;) {
    at += pack_read(b->data + at, &row);
    store_insert(w->store, &row);
  }
}

static void store_lost(struct writer *w, const struct lost *lost) {
  if (lost->count == 0) return;
  struct trace_row row = {.table = TRACE_LOST};
  PUT(&row, LOST, globalPid, w->options.session.global_pid);
  PUT(&row, LOST, timestamp, session_now_ns() - w->options.session.start_ns);
  PUT_TEXT(&row, LOST, source, lost->source);
  PUT(&row, LOST, count, lost->count);
  store_insert(w->store, &row);
}

/* Until there is something to do, or a tick has passed. */
static void sleep_until_called(struct writer *w) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += TICK_NS;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  while (!w->first && !w->is_ending && w->flush_done == w->flush_asked) {
    if (pthread_cond_timedwait(&w->filled, &w->lock, &until)) return;
  }
}

static void put_packing(struct writer *w) {
  pthread_mutex_lock(&w->put_lock);
  if (w->packing && w->packing->used) {
    give(w, w->packing);
    w->packing = NULL;
  }
  pthread_mutex_unlock(&w->put_lock);
}

static struct buffer *take_all(struct writer *w, struct lost lost[SOURCES]) {
  pthread_mutex_lock(&w->lock);
  struct buffer *list = w->first;
  w->first = NULL;
  w->last = &w->first;
  memcpy(lost, w->lost, sizeof w->lost);
  memset(w->lost, 0, sizeof w->lost);
  pthread_mutex_unlock(&w->lock);
  return list;
}

static void store_buffer(struct writer *w, const struct buffer *b) {
  if (b->is_packed)
    store_packed(w, b);
  else
    w->options.decode(w->options.context, w->store, b->data, b->used);
}

/* A round writes all that waits as one transaction. */
static void write_round(struct writer *w) {
  struct lost lost[SOURCES];
  if (w->options.tick) w->options.tick(w->options.context, w->store);
  put_packing(w);
  struct buffer *list = take_all(w, lost);
  for (struct buffer *b = list, *next; b; b = next) {
    next = b->next;
    store_buffer(w, b);
    give_back(w, b);
  }
  for (int i = 0; i < SOURCES; i++) store_lost(w, &lost[i]);
  store_commit(w->store);
}

static void *write_all(void *context) {
  struct writer *w = context;
  for (bool is_last = false; !is_last;) {
    pthread_mutex_lock(&w->lock);
    sleep_until_called(w);
    const uint64_t asked = w->flush_asked;
    is_last = w->is_ending;
    pthread_mutex_unlock(&w->lock);
    write_round(w);
    pthread_mutex_lock(&w->lock);
    w->flush_done = asked;
    pthread_cond_broadcast(&w->drained);
    pthread_mutex_unlock(&w->lock);
  }
  return NULL;
}

void writer_flush(struct writer *w) {
  pthread_mutex_lock(&w->lock);
  const uint64_t mine = ++w->flush_asked;
  pthread_cond_signal(&w->filled);
  while (w->flush_done < mine) pthread_cond_wait(&w->drained, &w->lock);
  pthread_mutex_unlock(&w->lock);
}

static void init_locks(struct writer *w) {
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&w->lock, NULL);
  pthread_mutex_init(&w->put_lock, NULL);
  pthread_cond_init(&w->filled, &clock);
  pthread_cond_init(&w->drained, NULL);
  pthread_condattr_destroy(&clock);
}

/* The program's signals are not for this thread. */
static int start_thread(struct writer *w) {
  sigset_t every, before;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  const int rc = pthread_create(&w->thread, NULL, write_all, w);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return rc;
}

static void free_list(struct buffer *list) {
  for (struct buffer *next; list; list = next) {
    next = list->next;
    free(list);
  }
}

void writer_keep(struct writer *w, struct writer *older) {
  w->older = older;
}

void writer_free(struct writer *w) {
  pthread_cond_destroy(&w->drained);
  pthread_cond_destroy(&w->filled);
  pthread_mutex_destroy(&w->put_lock);
  pthread_mutex_destroy(&w->lock);
  free(w);
}

struct writer *writer_start(const struct writer_options *o, char *why, size_t size) {
  struct writer *w = calloc(1, sizeof *w);
  if (!w) {
    snprintf(why, size, "out of memory");
    return NULL;
  }
  const size_t bytes = o->memory_bytes ? o->memory_bytes : MEMORY_BYTES;
  w->options = *o;
  w->last = &w->first;
  w->most = bytes < WRITER_BUFFER_BYTES ? 1 : bytes / WRITER_BUFFER_BYTES;
  init_locks(w);
  w->store = store_open(o->path, &o->session, why, size);
  if (w->store && start_thread(w) == 0) return w;
  if (w->store) {
    snprintf(why, size, "cannot start a thread");
    store_close(w->store);
  }
  writer_free(w);
  return NULL;
}

void writer_stop(struct writer *w, char *why, size_t size) {
  pthread_mutex_lock(&w->lock);
  w->is_ending = true;
  pthread_cond_signal(&w->filled);
  pthread_mutex_unlock(&w->lock);
  pthread_join(w->thread, NULL);
  pthread_mutex_lock(&w->put_lock);
  pthread_mutex_lock(&w->lock);
  w->is_closed = true;
  struct buffer *lists[] = {w->first, w->spare, w->packing};
  if (w->packing) w->packing->next = NULL;
  w->first = w->spare = w->packing = NULL;
  pthread_mutex_unlock(&w->lock);
  pthread_mutex_unlock(&w->put_lock);
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) free_list(lists[i]);
  snprintf(why, size, "%s", store_error(w->store));
  store_close(w->store);
}
