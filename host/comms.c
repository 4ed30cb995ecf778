#include "host/comms.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* Process-wide by nature: the watchdog knows no Lua state. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct comms_entry *live;
static atomic_bool aborted;

const char *comms_result_name(ncclResult_t rc) {
  static const char *const names[] = {
    "ncclSuccess",
    "ncclUnhandledCudaError",
    "ncclSystemError",
    "ncclInternalError",
    "ncclInvalidArgument",
    "ncclInvalidUsage",
    "ncclRemoteError",
    "ncclInProgress",
    "ncclTimeout", /* from 2.30 */
  };
  const size_t i = (size_t)rc;
  return i < sizeof names / sizeof *names ? names[i] : NULL;
}

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

static bool has_failed(const struct comms_entry *entry, ncclResult_t *rc) {
  *rc = ncclSuccess;
  if (entry->api->comm_get_async_error(entry->comm, rc)) return false;
  return *rc != ncclSuccess && *rc != ncclInProgress;
}

ncclComm_t comms_failed(ncclResult_t *rc, char *text, size_t size) {
  ncclComm_t found = NULL;
  pthread_mutex_lock(&lock);
  for (const struct comms_entry *entry = live; entry && !found; entry = entry->next) {
    if (!has_failed(entry, rc)) continue;
    found = entry->comm;
    const struct coll_api *api = entry->api;
    const char *why = api->get_last_error ? api->get_last_error(found) : NULL;
    if (!why || !*why) why = api->get_error_string(*rc);
    snprintf(text, size, "%s", why);
  }
  pthread_mutex_unlock(&lock);
  return found;
}

bool comms_is_aborted(void) {
  return atomic_load_explicit(&aborted, memory_order_relaxed);
}
