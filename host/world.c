#include "host/world.h"

#include "host/comms.h"
#include "host/recorder.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A pause takes 40 to 140 cycles: 1 to 5 us; and, where CPUs are idle anyway, as long as a
   rank may take to wake, so that ranks leave a second barrier together. */
enum { SPINS = 100, LONG_SPINS = 5000 };

static uint32_t get(const uint32_t *at) {
  return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

/* Shared memory: no FUTEX_PRIVATE_FLAG. */
static void sleep_while(uint32_t *at, uint32_t value) {
  syscall(SYS_futex, at, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void wake_all(uint32_t *at) {
  syscall(SYS_futex, at, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static size_t world_bytes(int count) {
  return sizeof(struct world) + (size_t)count * sizeof(struct world_rank);
}

static struct world *map(int count, int flags, int fd, struct err *e) {
  void *memory =
    mmap(NULL, world_bytes(count), PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
  if (memory != MAP_FAILED) return memory;
  err_errno(e, "cannot map the memory of %d ranks", count);
  return NULL;
}

/* The kernel has zeroed it. */
static void start(struct world *w, int count) {
  w->count = count;
  /* Spinning pays only where every rank has a CPU to itself. */
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  w->spins = count > cpus ? 0 : 2 * count <= cpus ? LONG_SPINS : SPINS;
}

struct world *world_create(int count, struct err *e) {
  struct world *w = map(count, MAP_ANONYMOUS, -1, e);
  if (w) start(w, count);
  return w;
}

struct world *world_create_file(int count, int *fd, struct err *e) {
  struct world *w = NULL;
  *fd = memfd_create("nclua-world", MFD_CLOEXEC);
  if (*fd < 0 || ftruncate(*fd, (off_t)world_bytes(count))) {
    err_errno(e, "cannot make the memory of %d ranks", count);
  } else {
    w = map(count, 0, *fd, e);
  }
  if (w) {
    start(w, count);
  } else if (*fd >= 0) {
    close(*fd);
  }
  return w;
}

struct world *world_map(int fd, int count, struct err *e) {
  return map(count, 0, fd, e);
}

void world_destroy(struct world *w) {
  if (w) munmap(w, world_bytes(w->count));
}

/* Outlives every Lua call: the main thread may be stuck in a collective for ever. */
static void *watch(void *arg) {
  struct world *w = arg;
  while (!get(&w->must_end)) sleep_while(&w->must_end, 0);
  comms_abort_all();
  _exit(WORLD_EXIT_ABORTED);
}

/* Signals are for the main thread. */
static int start_watch(struct world *w, struct err *e) {
  sigset_t all, before;
  pthread_t thread;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int number = pthread_create(&thread, NULL, watch, w);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = number;
  if (number) return err_errno(e, "cannot start a rank's watchdog");
  pthread_detach(thread);
  return 0;
}

int world_join(struct world *w, int index, int parent, struct err *e) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(WORLD_EXIT_ABORTED); /* it died before the line above */
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_DFL);
  recorder_attach(&w->ranks[index].recorder);
  return start_watch(w, e);
}

void world_end(struct world *w) {
  __atomic_store_n(&w->must_end, 1, __ATOMIC_RELEASE);
  wake_all(&w->must_end);
}

static void await_change(const struct world *w, uint32_t *at, uint32_t value) {
  for (int i = w->spins; i > 0 && get(at) == value; i--) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  while (get(at) == value) sleep_while(at, value);
}

void world_barrier(struct world *w, int index) {
  uint32_t generation = get(&w->generation);
  __atomic_fetch_add(&w->ranks[index].barriers, 1, __ATOMIC_RELAXED);
  recorder_wait("rank:barrier");
  uint32_t before = __atomic_fetch_add(&w->arrived, 1, __ATOMIC_ACQ_REL);
  if (before + 1 == (uint32_t)w->count) {
    __atomic_store_n(&w->arrived, 0, __ATOMIC_RELAXED);
    __atomic_fetch_add(&w->generation, 1, __ATOMIC_RELEASE);
    wake_all(&w->generation);
  } else {
    await_change(w, &w->generation, generation);
  }
  recorder_wait(NULL);
}

static void publish(struct world *w, const char id[WORLD_ID_BYTES]) {
  uint32_t others = (uint32_t)w->count - 1;
  for (uint32_t read; w->turn && (read = get(&w->readers)) != others;) {
    sleep_while(&w->readers, read); /* somebody still has to read the one before */
  }
  __builtin_memcpy(w->id, id, WORLD_ID_BYTES);
  __atomic_store_n(&w->readers, 0, __ATOMIC_RELAXED);
  __atomic_fetch_add(&w->turn, 1, __ATOMIC_RELEASE);
  wake_all(&w->turn);
}

void world_exchange(struct world *w, int index, char id[WORLD_ID_BYTES]) {
  uint32_t *turns = &w->ranks[index].exchanges;
  recorder_wait("rank:comm (rank 0's unique id)");
  if (index == 0) {
    publish(w, id);
  } else {
    await_change(w, &w->turn, *turns);
    __builtin_memcpy(id, w->id, WORLD_ID_BYTES);
    __atomic_fetch_add(&w->readers, 1, __ATOMIC_RELEASE);
    wake_all(&w->readers);
  }
  ++*turns;
  recorder_wait(NULL);
}

uint64_t world_progress(const struct world *w) {
  uint64_t sum = 0;
  for (int i = 0; i < w->count; i++) {
    sum += __atomic_load_n(&w->ranks[i].recorder.progress, __ATOMIC_RELAXED);
    sum += w->ranks[i].is_finished;
  }
  return sum;
}

bool world_is_waiting(const struct world *w) {
  for (int i = 0; i < w->count; i++) {
    if (__atomic_load_n(&w->ranks[i].recorder.waiting_since_ns, __ATOMIC_ACQUIRE)) {
      return true;
    }
  }
  return false;
}
