#include "host/cpu/bootstrap.h"
#include "host/cpu/fail.h"
#include "host/cpu/gate.h"
#include "host/cpu/handshake.h"
#include "host/cpu/wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_S 60.0
#define LOOK_MS 20 /* between two looks at what no bell tells of */

static int64_t find_deadline(void) {
  const char *text = getenv("NCLUA_CPU_INIT_TIMEOUT");
  double seconds = text ? strtod(text, NULL) : TIMEOUT_S;
  if (!(seconds > 0 && seconds < 1e9)) seconds = TIMEOUT_S;
  return cpu_now_ns() + (int64_t)(seconds * 1e9);
}

/* The first failure ends the initialisation for all ranks, with one text. */
static ncclResult_t fail_all(struct cpu_segment *segment, int rank, ncclResult_t rc) {
  if (atomic_exchange(&segment->failing, 1) == 0) {
    snprintf(segment->failure_text, sizeof segment->failure_text, "%s", cpu_fail_text());
    atomic_store(&segment->failure, (int)rc);
  }
  cpu_segment_set_state(segment, rank, CPU_RANK_FAILED);
  return rc;
}

static ncclResult_t check_failure(struct cpu_segment *segment) {
  int failure = atomic_load(&segment->failure);
  if (!failure) return ncclSuccess;
  return cpu_fail_again((ncclResult_t)failure, segment->failure_text);
}

/* The first rank that has not joined; one that has and is gone again did join. */
static int find_absent(const struct cpu_segment *segment) {
  for (int r = 0; r < segment->nranks; r++) {
    if (atomic_load(&segment->ranks[r].state) == CPU_RANK_ABSENT) return r;
  }
  return -1;
}

static void join(struct cpu_segment *segment, const struct cpu_bootstrap *b) {
  struct cpu_rank *self = &segment->ranks[b->rank];
  self->pid = getpid();
  self->device = b->device;
  cpu_segment_note_cores(self);
  cpu_segment_set_state(segment, b->rank, CPU_RANK_JOINED);
}

static ncclResult_t check_all(struct cpu_segment *segment, int64_t deadline, int *absent) {
  *absent = find_absent(segment);
  ncclResult_t rc = check_failure(segment);
  if (rc || *absent < 0) return rc;
  cpu_wait_check_process(segment, 0);
  if (atomic_load(&segment->ranks[0].state) == CPU_RANK_DEAD) {
    return cpu_fail(ncclRemoteError, "rank 0 died while the communicator was made");
  }
  if (cpu_now_ns() < deadline) return ncclSuccess;
  return cpu_fail(
    ncclSystemError, "timed out: rank %d of %d has not come", *absent, segment->nranks);
}

static ncclResult_t await_all(struct cpu_segment *segment, int rank, int64_t deadline) {
  struct cpu_bell *bell = &segment->ranks[rank].bells[0];
  atomic_fetch_add(&bell->sleepers, 1);
  ncclResult_t rc;
  for (;;) {
    uint32_t rings = atomic_load(&bell->rings);
    int absent;
    rc = check_all(segment, deadline, &absent);
    if (rc || absent < 0) break;
    cpu_bell_sleep(bell, rings, LOOK_MS);
  }
  atomic_fetch_sub(&bell->sleepers, 1);
  return rc;
}

/* Two ranks of a process on one device would wait for each other in one stream for ever. */
static ncclResult_t check_devices(const struct cpu_segment *segment) {
  const struct cpu_rank *ranks = segment->ranks;
  for (int b = 1; b < segment->nranks; b++) {
    for (int a = 0; a < b; a++) {
      if (ranks[a].pid != ranks[b].pid || ranks[a].device != ranks[b].device) continue;
      return cpu_fail(ncclInvalidUsage,
                      "duplicate device: ranks %d and %d of one process are on device %d",
                      a,
                      b,
                      ranks[a].device);
    }
  }
  return ncclSuccess;
}

/* Does what a guest says fit what rank 0 knows? */
static ncclResult_t check_hello(const struct cpu_hello *hello, int nranks, char *came) {
  if (hello->nranks != nranks) {
    return cpu_fail(ncclInvalidArgument,
                    "rank 0 expects %d ranks, but rank %d expects %d",
                    nranks,
                    hello->rank,
                    hello->nranks);
  }
  if (hello->rank > 0 && hello->rank < nranks && !came[hello->rank]) {
    came[hello->rank] = 1;
    return ncclSuccess;
  }
  return cpu_fail(ncclInvalidUsage, "two ranks say that they are rank %d", hello->rank);
}

/* Rank 0 hands the segment to all others as they come. */
static ncclResult_t serve(struct cpu_segment *segment, int fd, int door, int64_t deadline,
                          char *came) {
  for (int left = segment->nranks - 1; left > 0; left--) {
    struct cpu_guest guest;
    ncclResult_t rc = cpu_handshake_accept(door, deadline, &guest);
    if (rc == ncclInProgress) {
      int absent = 1;
      while (came[absent]) absent++;
      return cpu_fail(
        ncclSystemError, "timed out: rank %d of %d has not come", absent, segment->nranks);
    }
    if (rc) return rc;
    rc = check_hello(&guest.hello, segment->nranks, came);
    if (!guest.same_pids) segment->watch_pids = false;
    cpu_handshake_answer(&guest, rc, fd);
    if (rc) return rc;
  }
  return ncclSuccess;
}

static ncclResult_t lead(const struct cpu_bootstrap *b, int64_t deadline,
                         struct cpu_segment **segment) {
  int door, fd;
  ncclResult_t rc = cpu_handshake_listen(b->id, b->nranks, &door);
  if (rc) return rc;
  char *came = calloc((size_t)b->nranks, 1);
  *segment = came ? cpu_segment_create(b->nranks, &fd) : NULL;
  if (*segment) {
    cpu_terms_read(&(*segment)->terms, b->bounds);
    join(*segment, b); /* so that the others see it if we die while we wait */
    rc = serve(*segment, fd, door, deadline, came);
    close(fd);
  } else {
    rc = cpu_fail(ncclSystemError,
                  "cannot make the memory that %d ranks share: %s",
                  b->nranks,
                  strerror(errno));
  }
  free(came);
  close(door);
  return rc;
}

static ncclResult_t follow(const struct cpu_bootstrap *b, int64_t deadline,
                           struct cpu_segment **segment) {
  int fd;
  ncclResult_t rc = cpu_handshake_knock(b->id, b->rank, b->nranks, deadline, &fd);
  if (rc) return rc;
  *segment = cpu_segment_open(fd);
  close(fd);
  if (!*segment) return cpu_fail(ncclSystemError, "cannot map what rank 0 shares");
  join(*segment, b);
  return ncclSuccess;
}

ncclResult_t cpu_bootstrap(const struct cpu_bootstrap *b, struct cpu_segment **segment) {
  int64_t deadline = find_deadline();
  *segment = NULL;
  ncclResult_t rc =
    b->rank == 0 ? lead(b, deadline, segment) : follow(b, deadline, segment);
  if (!rc) rc = await_all(*segment, b->rank, deadline);
  if (!rc) rc = check_devices(*segment);
  if (!rc || !*segment) return rc;
  fail_all(*segment, b->rank, rc);
  cpu_segment_close(*segment);
  *segment = NULL;
  return rc;
}
