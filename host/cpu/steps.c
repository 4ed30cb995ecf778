#include "host/cpu/steps.h"
#include "host/cpu/comm.h"
#include "host/cpu/delay.h"
#include "host/cpu/gate.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Atomic bool cpu_steps_watched;

/* Whatever is read in a step is changed only while no step is in here: `closed` keeps them
   out, `visitors` says who is still in. Neither is held while a step waits. */
static _Atomic bool closed;
static _Atomic int visitors;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of those who change it */

static struct coll_step *list;
static size_t room;
static _Atomic size_t taken; /* may grow beyond `room`: what is lost */
static bool is_recording, has_delays;
static char environment[1024]; /* the last NCLUA_CPU_DELAY seen */

static _Thread_local int64_t wait_since, waited;

static bool visit(void) {
  atomic_fetch_add(&visitors, 1);
  if (!atomic_load(&closed)) return true;
  atomic_fetch_sub(&visitors, 1);
  return false;
}

static void leave(void) {
  atomic_fetch_sub(&visitors, 1);
}

static void close_doors(void) {
  pthread_mutex_lock(&lock);
  atomic_store(&closed, true);
  while (atomic_load(&visitors) > 0) sched_yield();
}

static void open_doors(void) {
  has_delays = cpu_delay_count() > 0;
  atomic_store(&cpu_steps_watched, is_recording || has_delays);
  atomic_store(&closed, false);
  pthread_mutex_unlock(&lock);
}

static void sleep_ns(int64_t ns) {
  struct timespec left = {ns / 1000000000, ns % 1000000000};
  while (nanosleep(&left, &left)) {
  }
}

void cpu_steps_enter(struct coll_step *step) {
  waited = 0;
  step->begin_ns = cpu_now_ns();
  step->delay_ns = 0;
  if (visit()) {
    if (has_delays) step->delay_ns = cpu_delay_ns(step);
    leave();
  }
  if (step->delay_ns) sleep_ns(step->delay_ns);
}

void cpu_steps_leave(struct coll_step *step) {
  step->end_ns = cpu_now_ns();
  step->wait_ns = waited;
  if (!visit()) return;
  if (is_recording) {
    size_t place = atomic_fetch_add(&taken, 1);
    if (place < room) list[place] = *step;
  }
  leave();
}

void cpu_steps_wait(void) {
  wait_since = cpu_now_ns();
}

void cpu_steps_waited(void) {
  if (wait_since) waited += cpu_now_ns() - wait_since;
  wait_since = 0;
}

static int start(size_t limit, struct err *e) {
  int rc = 0;
  close_doors();
  struct coll_step *fresh = limit == room ? list : calloc(limit, sizeof *fresh);
  if (is_recording) {
    rc = err_set(e, "EBUSY", "steps are being recorded already");
  } else if (!fresh) {
    rc = err_set(e, "ENOMEM", "no memory for %zu steps", limit);
  } else {
    if (fresh != list) free(list);
    list = fresh;
    room = limit;
    atomic_store(&taken, 0);
    is_recording = true;
  }
  if (rc && fresh != list) free(fresh);
  open_doors();
  return rc;
}

static size_t stop(const struct coll_step **steps, size_t *lost) {
  close_doors();
  size_t count = is_recording ? atomic_load(&taken) : 0;
  is_recording = false;
  open_doors();
  *steps = list;
  *lost = count > room ? count - room : 0;
  return count - *lost;
}

static int set_delays(const struct coll_delay *delays, size_t count, struct err *e) {
  close_doors();
  int rc = cpu_delay_set(delays, count, e);
  open_doors();
  return rc;
}

int cpu_steps_configure(struct err *e) {
  const char *text = getenv("NCLUA_CPU_DELAY");
  if (!text) return 0;
  int rc = 0;
  close_doors();
  if (strcmp(text, environment) != 0) {
    rc = cpu_delay_parse(text, e);
    if (!rc) strncpy(environment, text, sizeof environment - 1);
  }
  open_doors();
  return rc;
}

static ncclResult_t count(ncclComm_t comm, struct coll_counters *counters) {
  ncclResult_t rc = cpu_comm_check_handle(comm);
  if (rc) return rc;
  const struct cpu_stats s = cpu_stats_read(&comm->stats);
  *counters = (struct coll_counters){s.bytes_sent,
                                     s.bytes_received,
                                     s.wire_sent,
                                     s.bytes_reduced,
                                     s.steps_sent,
                                     s.steps_received};
  return ncclSuccess;
}

const struct coll_steps cpu_steps = {start, stop, set_delays, count};
