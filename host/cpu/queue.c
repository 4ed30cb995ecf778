#include "host/cpu/queue.h"

#include "host/cpu/adversary.h"
#include "host/cpu/gate.h"
#include "host/cpu/traced.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

enum rest { AWAKE, DOZING, ASLEEP };

/* A host that synchronises within this time of enqueueing would have been served no sooner
   by the worker, whose waking costs more. */
static const int64_t PROMPT_NS = 20000;
static const int64_t DOZE_NS = 200000, DOZE_MAX_NS = 1000000;
enum { DOZES = 32 };      /* without work, before sleeping for good */
enum { LAZY_ITEMS = 32 }; /* that a prompt host may leave in the queue unannounced */

struct cpu_queue {
  struct cpu_gate done; /* items completed */
  uint32_t is_running;  /* atomic: somebody holds the right to run items */
  uint32_t rest;        /* atomic: enum rest, the worker's */
  uint32_t bell;        /* atomic: a futex; rung to wake the worker */
  uint32_t is_lazy;     /* atomic: has work that no one was told of */
  uint32_t is_prompt;   /* atomic: the host is used to synchronise at once */
  uint32_t is_closed;   /* atomic */
  uint32_t references;  /* atomic */
  int64_t since_ns;     /* atomic: when the queue was last empty and got an item */
  int64_t appended_ns;  /* atomic: when it last got an item; for an adversary only */

  _Alignas(64) pthread_mutex_t lock; /* the appenders' */
  uint64_t tail;                     /* atomic: items appended */
  bool has_worker;

  _Alignas(64) struct cpu_fifo items; /* appended under `lock`, taken by the runner */
  CUdevice device;
  uint32_t id; /* in traces */
  bool is_blocking;
  struct cpu_queue *next, *previous; /* of all queues, under `all_lock` */
};

static struct cpu_queue *all;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t lazy_count; /* atomic: queues that are lazy */

static uint64_t tail_of(const struct cpu_queue *q) {
  return __atomic_load_n(&q->tail, __ATOMIC_SEQ_CST);
}

static bool is_running(const struct cpu_queue *q) {
  return __atomic_load_n(&q->is_running, __ATOMIC_SEQ_CST);
}

static bool is_closed(const struct cpu_queue *q) {
  return __atomic_load_n(&q->is_closed, __ATOMIC_SEQ_CST);
}

static bool has_work(const struct cpu_queue *q) {
  return cpu_gate_value(&q->done) < tail_of(q);
}

/* Is there something for the worker to do: items nobody runs, or to end? */
static bool is_called(const struct cpu_queue *q) {
  return has_work(q) ? !is_running(q) : is_closed(q);
}

void cpu_task_retain(struct cpu_task *task) {
  __atomic_fetch_add(&task->references, 1, __ATOMIC_RELAXED);
}

void cpu_task_release(struct cpu_task *task) {
  if (__atomic_fetch_sub(&task->references, 1, __ATOMIC_ACQ_REL) == 1) task->release(task);
}

struct cpu_queue *cpu_queue_new(CUdevice device, bool is_blocking) {
  struct cpu_queue *q = aligned_alloc(64, sizeof *q);
  if (!q) return NULL;
  *q = (struct cpu_queue){.done = CPU_GATE_INIT, .device = device, .references = 1};
  static uint32_t ids; /* atomic */
  q->id = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
  q->is_blocking = is_blocking;
  if (!cpu_fifo_init(&q->items)) {
    free(q);
    return NULL;
  }
  pthread_mutex_init(&q->lock, NULL);
  pthread_mutex_lock(&all_lock);
  q->next = all;
  if (all) all->previous = q;
  all = q;
  pthread_mutex_unlock(&all_lock);
  return q;
}

/* Only a queue without a worker or whose worker has ended gets here. */
static void destroy(struct cpu_queue *q) {
  cpu_fifo_free(&q->items);
  pthread_mutex_destroy(&q->lock);
  free(q);
}

struct cpu_queue *cpu_queue_retain(struct cpu_queue *q) {
  __atomic_fetch_add(&q->references, 1, __ATOMIC_RELAXED);
  return q;
}

/* The list holds no reference: a queue leaves it under the same lock under which the last
   reference is seen to go, so nobody can find it after that. */
void cpu_queue_release(struct cpu_queue *q) {
  uint32_t count = __atomic_load_n(&q->references, __ATOMIC_RELAXED);
  while (count > 1) {
    if (__atomic_compare_exchange_n(
          &q->references, &count, count - 1, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      return;
    }
  }
  pthread_mutex_lock(&all_lock);
  const bool is_last = __atomic_fetch_sub(&q->references, 1, __ATOMIC_ACQ_REL) == 1;
  if (is_last) {
    if (q->next) q->next->previous = q->previous;
    *(q->previous ? &q->previous->next : &all) = q->next;
  }
  pthread_mutex_unlock(&all_lock);
  if (is_last) destroy(q);
}

static void ring(struct cpu_queue *q) {
  if (__atomic_exchange_n(&q->rest, AWAKE, __ATOMIC_SEQ_CST) == AWAKE) return;
  __atomic_fetch_add(&q->bell, 1, __ATOMIC_SEQ_CST);
  cpu_futex_wake_all(&q->bell);
}

static void set_lazy(struct cpu_queue *q, uint32_t is_lazy) {
  if (__atomic_load_n(&q->is_lazy, __ATOMIC_RELAXED) == is_lazy) return;
  if (__atomic_exchange_n(&q->is_lazy, is_lazy, __ATOMIC_SEQ_CST) == is_lazy) return;
  __atomic_fetch_add(&lazy_count, is_lazy ? 1 : -1, __ATOMIC_SEQ_CST);
}

void cpu_queue_nudge(struct cpu_queue *q) {
  set_lazy(q, 0);
  if (has_work(q)) ring(q);
}

/* The caller is going to wait: whatever other queues put off for a prompt host begins. */
static void nudge_others(void) {
  if (__atomic_load_n(&lazy_count, __ATOMIC_SEQ_CST) == 0) return;
  pthread_mutex_lock(&all_lock);
  for (struct cpu_queue *q = all; q; q = q->next) {
    if (__atomic_load_n(&q->is_lazy, __ATOMIC_RELAXED)) cpu_queue_nudge(q);
  }
  pthread_mutex_unlock(&all_lock);
}

static bool take_run(struct cpu_queue *q) {
  return !is_running(q) && !__atomic_exchange_n(&q->is_running, 1, __ATOMIC_SEQ_CST);
}

static void run_item(struct cpu_queue *q) {
  const struct cpu_item item = cpu_fifo_take(&q->items);
  item.run(item.what, item.number);
  cpu_gate_raise(&q->done, q->done.value + 1);
}

/* Whoever gives up the right with items left has the worker go on; waiters look again, as
   one of them may go on instead. */
static void give_run(struct cpu_queue *q) {
  __atomic_store_n(&q->is_running, 0, __ATOMIC_SEQ_CST);
  if (!has_work(q) && !is_closed(q)) return;
  ring(q);
  cpu_gate_disturb(&q->done);
}

static void run_until(struct cpu_queue *q, uint64_t number) {
  set_lazy(q, 0);
  while (cpu_gate_value(&q->done) < number) run_item(q);
  give_run(q);
}

static bool spin_for_work(struct cpu_queue *q) {
  const int64_t end = cpu_now_ns() + cpu_spin_ns();
  do {
    for (int i = 0; i < 32; i++) {
      if (is_called(q)) return true;
      cpu_relax();
    }
  } while (cpu_now_ns() < end);
  return false;
}

/* One rest of the worker, cut short by the bell. */
static void rest(struct cpu_queue *q, enum rest how, int64_t limit_ns) {
  const uint32_t bell = __atomic_load_n(&q->bell, __ATOMIC_SEQ_CST);
  __atomic_store_n(&q->rest, how, __ATOMIC_SEQ_CST);
  if (!is_called(q)) cpu_futex_wait(&q->bell, bell, limit_ns);
  __atomic_store_n(&q->rest, AWAKE, __ATOMIC_SEQ_CST);
}

/* While the host is prompt, it runs the items itself and the bell stays silent: the worker
   only looks in, ever less often, in case the host has gone away. */
static void wait_for_work(struct cpu_queue *q) {
  const bool is_prompt = __atomic_load_n(&q->is_prompt, __ATOMIC_RELAXED);
  if (!is_prompt && spin_for_work(q)) return;
  uint64_t seen = tail_of(q);
  int64_t doze_ns = DOZE_NS;
  int idle = is_prompt ? 0 : DOZES;
  while (!is_called(q)) {
    rest(q, idle < DOZES ? DOZING : ASLEEP, idle < DOZES ? doze_ns : 0);
    doze_ns = doze_ns < DOZE_MAX_NS ? 2 * doze_ns : DOZE_MAX_NS;
    idle = seen == tail_of(q) ? idle + 1 : 0;
    seen = tail_of(q);
  }
}

/* The adversary's worker leaves the items to whoever waits for them, as long as it may. */
static void hold_back(struct cpu_queue *q) {
  while (is_called(q) && !is_closed(q)) {
    const int64_t since = __atomic_load_n(&q->appended_ns, __ATOMIC_RELAXED);
    const int64_t left = since + cpu_adversary_hold_ns() - cpu_now_ns();
    if (left <= 0) return;
    cpu_futex_wait(&q->bell, __atomic_load_n(&q->bell, __ATOMIC_SEQ_CST), left);
  }
}

static void *work(void *argument) {
  struct cpu_queue *q = argument;
  for (;;) {
    wait_for_work(q);
    if (cpu_adversary_hold_ns()) hold_back(q);
    if (take_run(q)) run_until(q, tail_of(q));
    if (is_closed(q) && !has_work(q)) break;
  }
  cpu_queue_release(q);
  return NULL;
}

/* Signals are the host's business. */
static bool start_worker(struct cpu_queue *q) {
  pthread_t thread;
  pthread_attr_t attributes;
  sigset_t every, old;
  sigfillset(&every);
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &every, &old);
  q->has_worker = !pthread_create(&thread, &attributes, work, cpu_queue_retain(q));
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attributes);
  if (!q->has_worker) cpu_queue_release(q);
  return q->has_worker;
}

/* Under the lock: whatever appending one item needs. */
static bool reserve(struct cpu_queue *q) {
  return (q->has_worker || start_worker(q)) && cpu_fifo_reserve(&q->items);
}

/* Under the lock, after reserve. */
static uint64_t append(struct cpu_queue *q, struct cpu_item item) {
  const uint64_t tail = __atomic_load_n(&q->tail, __ATOMIC_RELAXED);
  if (cpu_gate_value(&q->done) == tail) {
    __atomic_store_n(&q->since_ns, cpu_now_ns(), __ATOMIC_RELAXED);
  }
  if (cpu_adversary_hold_ns()) {
    __atomic_store_n(&q->appended_ns, cpu_now_ns(), __ATOMIC_RELAXED);
  }
  cpu_fifo_append(&q->items, item);
  __atomic_store_n(&q->tail, tail + 1, __ATOMIC_SEQ_CST);
  return tail + 1;
}

static void announce(struct cpu_queue *q) {
  const uint32_t state = __atomic_load_n(&q->rest, __ATOMIC_SEQ_CST);
  if (state == AWAKE) return;
  if (state == DOZING && __atomic_load_n(&q->is_prompt, __ATOMIC_RELAXED) &&
      tail_of(q) - cpu_gate_value(&q->done) < LAZY_ITEMS) {
    set_lazy(q, 1);
    return;
  }
  ring(q);
}

CUresult cpu_queue_push(struct cpu_queue *q, struct cpu_item item, uint64_t *number) {
  pthread_mutex_lock(&q->lock);
  const bool has_room = reserve(q);
  const uint64_t place = has_room ? append(q, item) : 0;
  pthread_mutex_unlock(&q->lock);
  if (!has_room) return CUDA_ERROR_OUT_OF_MEMORY;
  if (number) *number = place;
  announce(q);
  return CUDA_SUCCESS;
}

static void run_task(void *what, uint64_t ticket) {
  struct cpu_task *task = what;
  task->run(task, ticket);
  cpu_task_release(task);
}

CUresult cpu_queue_submit(struct cpu_queue *q, struct cpu_task *task, uint64_t *number) {
  struct cpu_item item = {run_task, task, 0};
  if (cpu_traced_is_on()) {
    struct cpu_traced *traced = cpu_traced_new(task, q->device, q->id);
    if (traced) item = (struct cpu_item){cpu_traced_run, traced, 0};
  }
  pthread_mutex_lock(&q->lock);
  const bool has_room = reserve(q); /* a ticket once drawn must be used */
  uint64_t place = 0;
  if (has_room) {
    item.number = task->enter ? task->enter(task) : 0;
    if (item.what != task) cpu_traced_enqueued(item.what);
    place = append(q, item);
  }
  pthread_mutex_unlock(&q->lock);
  if (!has_room) {
    if (item.what != task) free(item.what);
    cpu_task_release(task);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (number) *number = place;
  announce(q);
  return CUDA_SUCCESS;
}

static void run_wait(void *what, uint64_t number) {
  cpu_queue_drive(what, number);
  cpu_queue_release(what);
}

CUresult cpu_queue_wait(struct cpu_queue *q, struct cpu_point point) {
  if (point.queue == q || cpu_queue_reached(point.queue, point.number)) return CUDA_SUCCESS;
  cpu_queue_retain(point.queue);
  const struct cpu_item item = {run_wait, point.queue, point.number};
  const CUresult rc = cpu_queue_push(q, item, NULL);
  if (rc) cpu_queue_release(point.queue);
  return rc;
}

uint64_t cpu_queue_end(const struct cpu_queue *q) {
  return tail_of(q);
}

bool cpu_queue_reached(const struct cpu_queue *q, uint64_t number) {
  return cpu_gate_value(&q->done) >= number;
}

static void spin_for_place(struct cpu_queue *q, uint64_t number) {
  const int64_t end = cpu_now_ns() + cpu_spin_ns();
  do {
    for (int i = 0; i < 32; i++) {
      if (cpu_queue_reached(q, number) || !is_running(q)) return;
      cpu_relax();
    }
  } while (cpu_now_ns() < end);
}

/* Two threads that run a queue each and meet in a wait cannot deadlock: a point is always
   older than the item that waits for it. */
void cpu_queue_drive(struct cpu_queue *q, uint64_t number) {
  if (cpu_queue_reached(q, number)) return;
  const int64_t age_ns = cpu_now_ns() - __atomic_load_n(&q->since_ns, __ATOMIC_RELAXED);
  __atomic_store_n(&q->is_prompt, age_ns < PROMPT_NS, __ATOMIC_RELAXED);
  set_lazy(q, 0);
  nudge_others();
  while (!cpu_queue_reached(q, number)) {
    const uint32_t epoch = cpu_gate_epoch(&q->done);
    if (take_run(q)) {
      run_until(q, number);
      return;
    }
    spin_for_place(q, number);
    if (is_running(q)) cpu_gate_sleep(&q->done, number, epoch);
  }
}

void cpu_queue_close(struct cpu_queue *q) {
  __atomic_store_n(&q->is_closed, 1, __ATOMIC_SEQ_CST);
  set_lazy(q, 0);
  ring(q);
  cpu_queue_release(q);
}

static bool is_pending(const struct cpu_queue *q, CUdevice device, bool blocking_only) {
  return (device < 0 || q->device == device) && (q->is_blocking || !blocking_only) &&
         has_work(q);
}

/* Under the lock; a queue may become pending, or cease to be, while the list is read. */
static bool add_point(struct cpu_point **points, int *count, struct cpu_queue *q) {
  const bool is_full = (*count & (*count - 1)) == 0; /* at 0 and at each power of two */
  const size_t room = *count ? 2 * (size_t)*count : 1;
  struct cpu_point *list = is_full ? realloc(*points, room * sizeof *list) : *points;
  if (!list) return false;
  list[(*count)++] = (struct cpu_point){cpu_queue_retain(q), tail_of(q)};
  *points = list;
  return true;
}

int cpu_queue_pending(CUdevice device, bool blocking_only, struct cpu_point **points) {
  int count = 0;
  bool ok = true;
  *points = NULL;
  pthread_mutex_lock(&all_lock);
  for (struct cpu_queue *q = all; q && ok; q = q->next) {
    if (is_pending(q, device, blocking_only)) ok = add_point(points, &count, q);
  }
  pthread_mutex_unlock(&all_lock);
  if (ok) return count;
  cpu_points_free(*points, count);
  *points = NULL;
  return -1;
}

void cpu_points_free(struct cpu_point *points, int count) {
  for (int i = 0; i < count; i++) cpu_queue_release(points[i].queue);
  free(points);
}
