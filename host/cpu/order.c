#include "host/cpu/order.h"
#include "host/cpu/comm.h"

uint64_t cpu_order_enter(ncclComm_t comm) {
  return atomic_fetch_add(&comm->issued, 1);
}

static bool is_turn(ncclComm_t comm, uint64_t ticket) {
  return atomic_load(&comm->done) == ticket || cpu_comm_is_aborted(comm);
}

static bool is_drained(ncclComm_t comm, uint64_t ticket) {
  return atomic_load(&comm->done) >= ticket;
}

static bool is_idle(ncclComm_t comm, uint64_t unused) {
  (void)unused;
  return atomic_load(&comm->running) == 0;
}

static void wait_until(ncclComm_t comm, bool (*reached)(ncclComm_t, uint64_t),
                       uint64_t ticket) {
  if (reached(comm, ticket)) return;
  pthread_mutex_lock(&comm->lock);
  atomic_fetch_add(&comm->waiters, 1);
  while (!reached(comm, ticket)) pthread_cond_wait(&comm->moved, &comm->lock);
  atomic_fetch_sub(&comm->waiters, 1);
  pthread_mutex_unlock(&comm->lock);
}

/* Whoever waits has announced itself before it looked, so one of us sees the other. */
static void tell(ncclComm_t comm) {
  if (atomic_load(&comm->waiters) == 0) return;
  pthread_mutex_lock(&comm->lock);
  pthread_cond_broadcast(&comm->moved);
  pthread_mutex_unlock(&comm->lock);
}

bool cpu_order_begin(ncclComm_t comm, uint64_t ticket) {
  wait_until(comm, is_turn, ticket);
  atomic_fetch_add(&comm->running, 1);
  return !cpu_comm_is_aborted(
    comm); /* after `running`: cpu_order_stop looks the other way */
}

void cpu_order_end(ncclComm_t comm) {
  atomic_fetch_sub(&comm->running, 1);
  atomic_fetch_add(&comm->done, 1);
  tell(comm);
}

void cpu_order_drain(ncclComm_t comm) {
  wait_until(comm, is_drained, atomic_load(&comm->issued));
}

void cpu_order_stop(ncclComm_t comm) {
  tell(comm);
  wait_until(comm, is_idle, 0);
}
