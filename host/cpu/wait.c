#include "host/cpu/wait.h"
#include "host/cpu/comm.h"
#include "host/cpu/fail.h"
#include "host/cpu/gate.h"
#include "host/cpu/steps.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLEEP_MS 20 /* between two looks at the peer's process */

/* A peer that has a core of its own answers within the spins; one that waits for this very
   core gets it by the yields. Measured with 2 to 8 ranks on 2 cores: more spins or fewer
   yields are slower as soon as the ranks do not have a core each. */
#define SPINS 50
#define YIELDS 200

void cpu_fence(void) {
#ifdef __SANITIZE_THREAD__ /* which does not know fences */
  static _Atomic int any;
  atomic_fetch_add(&any, 1);
#else
  atomic_thread_fence(memory_order_seq_cst);
#endif
}

void cpu_bell_ring(struct cpu_bell *bell) {
  if (atomic_load(&bell->sleepers) == 0) return;
  atomic_fetch_add(&bell->rings, 1);
  syscall(SYS_futex, &bell->rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool cpu_bell_sleep(struct cpu_bell *bell, uint32_t rings, unsigned milliseconds) {
  struct timespec limit = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
  long rc = syscall(SYS_futex, &bell->rings, FUTEX_WAIT, rings, &limit, NULL, 0);
  return rc == 0 || errno != ETIMEDOUT;
}

/* A process that has ended but is not reaped yet counts as dead: hence not only kill(). */
static bool is_dead(int pid) {
  int fd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return errno == ESRCH || (errno == ENOSYS && kill(pid, 0) && errno == ESRCH);
  struct pollfd ended = {.fd = fd, .events = POLLIN};
  bool dead = poll(&ended, 1, 0) == 1;
  close(fd);
  return dead;
}

void cpu_wait_check_process(struct cpu_segment *segment, int rank) {
  struct cpu_rank *r = &segment->ranks[rank];
  if (!segment->watch_pids || atomic_load(&r->state) != CPU_RANK_JOINED) return;
  if (r->pid == getpid() || !is_dead(r->pid)) return;
  cpu_segment_set_state(segment, rank, CPU_RANK_DEAD);
}

struct cpu_wait cpu_wait_begin(struct ncclComm *comm, int channel, const int *peers,
                               int npeers) {
  struct cpu_bell *bell = &comm->segment->ranks[comm->rank].bells[channel];
  if (atomic_load_explicit(&cpu_steps_watched, memory_order_relaxed)) cpu_steps_wait();
  return (struct cpu_wait){comm, bell, peers, npeers, 0, false, false, 0};
}

static void disarm(struct cpu_wait *w) {
  if (w->armed) atomic_fetch_sub(&w->bell->sleepers, 1);
  w->armed = false;
}

static int find_gone(const struct cpu_wait *w) {
  for (int i = 0; i < w->npeers; i++) {
    const struct cpu_rank *r = &w->comm->segment->ranks[w->peers[i]];
    if (atomic_load(&r->state) >= CPU_RANK_LEFT) return w->peers[i];
  }
  return -1;
}

static ncclResult_t fail_gone(const struct cpu_wait *w, int rank) {
  static const char *const how[] = {
    [CPU_RANK_LEFT] = "has left the communicator",
    [CPU_RANK_ABORTED] = "has aborted the communicator",
    [CPU_RANK_FAILED] = "has failed",
    [CPU_RANK_DEAD] = "is dead",
  };
  int state = atomic_load(&w->comm->segment->ranks[rank].state);
  return cpu_fail(ncclRemoteError,
                  "rank %d waits for rank %d, which %s",
                  w->comm->rank,
                  rank,
                  how[state]);
}

/* What a peer wrote before it went must be seen first, so its end counts only if the
   condition was still false when looked at after the end. */
static ncclResult_t check_peers(struct cpu_wait *w) {
  int gone = find_gone(w);
  if (gone >= 0 && w->peer_gone) return fail_gone(w, gone);
  w->peer_gone = gone >= 0;
  return ncclSuccess;
}

static void fall_asleep(struct cpu_wait *w) {
  bool rung = cpu_bell_sleep(w->bell, w->rings, SLEEP_MS);
  disarm(w);
  w->turns = 0; /* the peer moves again: more will follow soon */
  if (rung) return;
  for (int i = 0; i < w->npeers; i++) {
    cpu_wait_check_process(w->comm->segment, w->peers[i]);
  }
  w->turns = UINT_MAX;
}

ncclResult_t cpu_wait_more(struct cpu_wait *w) {
  if (cpu_comm_is_aborted(w->comm)) return cpu_fail_again(ncclInternalError, "aborted");
  if (atomic_load(&w->comm->broken)) return cpu_fail_again(ncclInternalError, "broken");
  if (w->turns < SPINS) {
    w->turns++;
    cpu_relax();
    return ncclSuccess;
  }
  if (w->turns < SPINS + YIELDS) {
    w->turns++;
    sched_yield();
    return ncclSuccess;
  }
  if (w->armed && !w->peer_gone) {
    fall_asleep(w);
    return ncclSuccess;
  }
  if (!w->armed) {
    atomic_fetch_add(&w->bell->sleepers, 1);
    w->rings = atomic_load(&w->bell->rings);
    w->armed = true;
    cpu_fence();
  }
  return check_peers(w);
}

void cpu_wait_end(struct cpu_wait *w) {
  disarm(w);
  if (atomic_load_explicit(&cpu_steps_watched, memory_order_relaxed)) cpu_steps_waited();
}
