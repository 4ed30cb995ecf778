#include "plugins/profiler/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* An id is a count of uses of a place and the place's number plus one. */
enum { PLACE_BITS = 14, PLACES = 1 << PLACE_BITS };

struct place {
  pthread_mutex_t lock; /* threads of NCCL's hand an event on, they hardly meet here */
  uint64_t uses;
  bool is_used;
  int next_free;
  struct event event;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct place *places; /* made with the first event */
static int first_free;

/* With the lock held. */
static bool make_places(void) {
  places = calloc(PLACES, sizeof *places);
  if (!places) return false;
  for (int i = 0; i < PLACES; i++) {
    pthread_mutex_init(&places[i].lock, NULL);
    places[i].next_free = i + 1;
  }
  return true;
}

static struct place *take(void) {
  pthread_mutex_lock(&lock);
  struct place *p = NULL;
  if ((places || make_places()) && first_free < PLACES) {
    p = &places[first_free];
    first_free = p->next_free;
  }
  pthread_mutex_unlock(&lock);
  return p;
}

static struct place *place_of(struct event *event) {
  return (struct place *)(void *)((char *)event - offsetof(struct place, event));
}

struct event *event_new(void) {
  struct place *p = take();
  if (!p) return NULL;
  pthread_mutex_lock(&p->lock);
  p->is_used = true;
  p->event = (struct event){.id = ++p->uses << PLACE_BITS | (uint64_t)(p - places)};
  return &p->event;
}

void *event_handle(const struct event *event) {
  return (void *)(uintptr_t)event->id;
}

struct event *event_lock(const void *handle) {
  const uint64_t id = (uint64_t)(uintptr_t)handle;
  if (id == 0 || !places) return NULL;
  struct place *p = &places[id & (PLACES - 1)];
  pthread_mutex_lock(&p->lock);
  if (p->is_used && p->event.id == id) return &p->event;
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

void event_unlock(struct event *event) {
  pthread_mutex_unlock(&place_of(event)->lock);
}

void event_free(struct event *event) {
  struct place *p = place_of(event);
  p->is_used = false;
  pthread_mutex_unlock(&p->lock);
  pthread_mutex_lock(&lock);
  p->next_free = first_free;
  first_free = (int)(p - places);
  pthread_mutex_unlock(&lock);
}
