#include "host/comms.h"

#include <pthread.h>
#include <stdatomic.h>

/* Process-wide by nature: the watchdog knows no Lua state. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct comms_entry *live;
static atomic_bool aborted;

void comms_add(struct comms_entry *entry) {
  pthread_mutex_lock(&lock);
  entry->next = live;
  entry->link = &live;
  if (live) live->link = &entry->next;
  live = entry;
  pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static bool unlink_entry(struct comms_entry *entry) {
  if (!entry->link) return false;
  *entry->link = entry->next;
  if (entry->next) entry->next->link = entry->link;
  entry->link = NULL;
  return true;
}

bool comms_remove(struct comms_entry *entry) {
  pthread_mutex_lock(&lock);
  bool is_mine = unlink_entry(entry);
  pthread_mutex_unlock(&lock);
  return is_mine;
}

void comms_abort_all(void) {
  atomic_store_explicit(&aborted, true, memory_order_relaxed);
  pthread_mutex_lock(&lock);
  while (live) {
    struct comms_entry *entry = live;
    unlink_entry(entry);
    entry->api->comm_abort(entry->comm);
  }
  pthread_mutex_unlock(&lock);
}

bool comms_is_aborted(void) {
  return atomic_load_explicit(&aborted, memory_order_relaxed);
}
