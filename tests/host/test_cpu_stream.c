/* What the CPU backend's streams promise beyond the driver's interface: tasks, and threads
   that meet in them. */

#include "host/backend.h"
#include "host/cpu/stream.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define OK(call) assert_int_equal(call, CUDA_SUCCESS)

enum { THREADS = 4, TASKS = 2000, DEVICES = 4 };

static struct device_api *const api = &cpu_device;
static CUcontext contexts[DEVICES];

static int load(const int *value) {
  return __atomic_load_n(value, __ATOMIC_ACQUIRE);
}

static void add(int *value, int by) {
  __atomic_fetch_add(value, by, __ATOMIC_ACQ_REL);
}

/* Waits for a condition, not for a time; false after ten seconds. */
static bool becomes(const int *value, int wanted) {
  const struct timespec nap = {0, 20000};
  for (int i = 0; i < 500000 && load(value) != wanted; i++) {
    if (i > 1000) nanosleep(&nap, NULL);
  }
  return load(value) == wanted;
}

/* A task that counts what happens to it, and may wait for `gate` to become `opening`. */
struct probe {
  struct cpu_task task;
  int entered, ran, released;
  int *gate, opening;
  int *sequence; /* moves on with every run; */
  int first;     /* what it was at this task's first run */
  uint64_t tickets;
};

static uint64_t enter(struct cpu_task *task) {
  struct probe *p = (struct probe *)task;
  add(&p->entered, 1);
  return (uint64_t)load(&p->entered);
}

static void run(struct cpu_task *task, uint64_t ticket) {
  struct probe *p = (struct probe *)task;
  if (p->gate) {
    add(p->gate, 1);
    if (!becomes(p->gate, p->opening)) abort();
  }
  if (p->sequence && load(&p->ran) == 0) p->first = load(p->sequence);
  if (p->sequence) add(p->sequence, 1);
  p->tickets = p->tickets * 10 + ticket;
  add(&p->ran, 1);
}

static void release(struct cpu_task *task) {
  add(&((struct probe *)task)->released, 1);
}

static struct probe make_probe(void) {
  return (struct probe){.task = {enter, run, release, 1}};
}

static CUstream new_stream(void) {
  CUstream stream;
  OK(api->stream_create_with_priority(&stream, CU_STREAM_NON_BLOCKING, -1));
  return stream;
}

static void a_task_enters_runs_and_goes(void **state) {
  (void)state;
  CUstream stream = new_stream();
  struct probe p = make_probe();
  OK(cpu_stream_submit(stream, &p.task));
  assert_int_equal(p.entered, 1);
  OK(api->stream_synchronize(stream));
  assert_int_equal(p.ran, 1);
  assert_int_equal(p.released, 1);
  assert_int_equal(p.tickets, 1);
  OK(api->stream_destroy(stream));
}

static void nobody_needs_to_synchronise(void **state) {
  (void)state;
  CUstream stream = new_stream();
  for (int i = 0; i < 300; i++) { /* makes the backend expect a host that does */
    struct probe p = make_probe();
    OK(cpu_stream_submit(stream, &p.task));
    OK(api->stream_synchronize(stream));
  }
  struct probe p = make_probe();
  OK(cpu_stream_submit(stream, &p.task));
  assert_true(becomes(&p.released, 1));
  OK(api->stream_destroy(stream));
}

/* One thread, several devices: whichever is waited for, all of them get going. */
static void streams_of_one_thread_meet(void **state) {
  (void)state;
  for (int round = 0; round < 50; round++) {
    CUstream streams[DEVICES];
    struct probe probes[DEVICES];
    int gate = 0;
    for (int i = 0; i < DEVICES; i++) {
      OK(api->ctx_set_current(contexts[i]));
      streams[i] = new_stream();
      probes[i] = make_probe();
      probes[i].gate = &gate;
      probes[i].opening = DEVICES;
      OK(cpu_stream_submit(streams[i], &probes[i].task));
    }
    OK(api->stream_synchronize(streams[round % DEVICES]));
    for (int i = 0; i < DEVICES; i++) OK(api->stream_synchronize(streams[i]));
    for (int i = 0; i < DEVICES; i++) {
      assert_int_equal(load(&probes[i].released), 1);
      OK(api->stream_destroy(streams[i]));
    }
  }
  OK(api->ctx_set_current(contexts[0]));
}

static CUstream shared_stream;
static int order_errors;

struct numbered {
  struct cpu_task task;
  int *last, number;
};

static void run_numbered(struct cpu_task *task, uint64_t ticket) {
  (void)ticket;
  struct numbered *n = (struct numbered *)task;
  if (*n->last != n->number - 1) add(&order_errors, 1);
  *n->last = n->number; /* the stream runs one task at a time: no atomics */
}

static void release_numbered(struct cpu_task *task) {
  free(task);
}

static void *submit_numbered(void *last) {
  if (api->ctx_set_current(contexts[0])) abort();
  for (int i = 1; i <= TASKS; i++) {
    struct numbered *n = malloc(sizeof *n);
    if (!n) abort();
    *n = (struct numbered){{NULL, run_numbered, release_numbered, 1}, last, i};
    if (cpu_stream_submit(shared_stream, &n->task)) abort();
    if (i % 97 == 0 && api->stream_synchronize(shared_stream)) abort();
  }
  return NULL;
}

static void threads_share_a_stream(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  int last[THREADS] = {0};
  shared_stream = new_stream();
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, submit_numbered, &last[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  OK(api->stream_synchronize(shared_stream));
  assert_int_equal(load(&order_errors), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(last[i], TASKS);
  OK(api->stream_destroy(shared_stream));
}

/* A ring of streams: each waits for what the one before it just recorded. */
static void *chase_events(void *argument) {
  CUstream streams[3];
  CUevent events[3];
  int *errors = argument, sequence = 0;
  static const int rounds = 200;
  if (api->ctx_set_current(contexts[1])) abort();
  for (int i = 0; i < 3; i++) {
    streams[i] = new_stream();
    OK(api->event_create(&events[i], 0));
  }
  struct probe *probes = calloc((size_t)rounds, sizeof *probes);
  if (!probes) abort();
  for (int i = 0; i < rounds; i++) {
    probes[i] = make_probe();
    probes[i].sequence = &sequence;
    if (i) OK(api->stream_wait_event(streams[i % 3], events[(i + 2) % 3], 0));
    OK(cpu_stream_submit(streams[i % 3], &probes[i].task));
    OK(api->event_record(events[i % 3], streams[i % 3]));
  }
  OK(api->event_synchronize(events[(rounds - 1) % 3]));
  for (int i = 0; i < rounds; i++) add(errors, probes[i].first != i);
  for (int i = 0; i < 3; i++) {
    OK(api->stream_destroy(streams[i]));
    OK(api->event_destroy(events[i]));
  }
  free(probes);
  return NULL;
}

static void events_order_streams_of_many_threads(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  int errors = 0;
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, chase_events, &errors), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(load(&errors), 0);
}

static CUgraphExec instantiate(CUstream stream) {
  CUgraph graph;
  CUgraphExec exec;
  OK(api->stream_end_capture(stream, &graph));
  OK(api->graph_instantiate(&exec, graph, 0));
  OK(api->graph_destroy(graph));
  return exec;
}

static void a_graph_enters_its_tasks_at_each_launch(void **state) {
  (void)state;
  CUstream stream = new_stream();
  struct probe p = make_probe();
  OK(api->stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cpu_stream_submit(stream, &p.task));
  CUgraphExec exec = instantiate(stream);
  assert_int_equal(p.entered, 0);
  for (int i = 0; i < 4; i++) OK(api->graph_launch(exec, stream));
  assert_int_equal(load(&p.entered), 4);
  OK(api->graph_exec_destroy(exec));
  OK(api->stream_synchronize(stream));
  assert_int_equal(p.tickets, 1234);
  assert_int_equal(p.released, 1);
  OK(api->stream_destroy(stream));
}

/* Two branches whose tasks wait for each other: they must run side by side. */
static void branches_run_side_by_side(void **state) {
  (void)state;
  CUstream stream = new_stream(), side = new_stream();
  CUevent event;
  struct probe left = make_probe(), right = make_probe(), after = make_probe();
  int gate = 0, sequence = 0;
  OK(api->event_create(&event, CU_EVENT_DISABLE_TIMING));
  left.gate = right.gate = &gate;
  after.sequence = left.sequence = right.sequence = &sequence;
  OK(api->stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(api->event_record(event, stream));
  OK(api->stream_wait_event(side, event, 0));
  OK(cpu_stream_submit(stream, &left.task));
  OK(cpu_stream_submit(side, &right.task));
  OK(api->event_record(event, side));
  OK(api->stream_wait_event(stream, event, 0));
  OK(cpu_stream_submit(stream, &after.task));
  CUgraphExec exec = instantiate(stream);
  for (int i = 1; i <= 20; i++) {
    left.opening = right.opening = 2 * i;
    OK(api->graph_launch(exec, stream));
    OK(api->stream_synchronize(stream));
    assert_int_equal(load(&sequence), 3 * i);
  }
  assert_int_equal(after.first, 2);
  OK(api->graph_exec_destroy(exec));
  OK(api->event_destroy(event));
  OK(api->stream_destroy(side));
  OK(api->stream_destroy(stream));
}

/* Launches of one graph on two streams: the second begins when the first is complete. */
static void launches_do_not_overlap(void **state) {
  (void)state;
  CUstream a = new_stream(), b = new_stream();
  int last = 0;
  struct numbered *n = malloc(sizeof *n), *reset = malloc(sizeof *reset);
  assert_non_null(n);
  assert_non_null(reset);
  *n = (struct numbered){{NULL, run_numbered, release_numbered, 1}, &last, 1};
  *reset = (struct numbered){{NULL, run_numbered, release_numbered, 1}, &last, 2};
  OK(api->stream_begin_capture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cpu_stream_submit(a, &n->task));
  OK(api->spin(100, a));
  OK(cpu_stream_submit(a, &reset->task));
  CUgraphExec exec = instantiate(a);
  order_errors = 0;
  for (int i = 0; i < 20; i++) OK(api->graph_launch(exec, i % 2 ? a : b));
  OK(api->stream_synchronize(a));
  OK(api->stream_synchronize(b));
  /* 1 follows 2 from the second launch on, which counts as an error; 2 follows 1 always. */
  assert_int_equal(load(&order_errors), 19);
  OK(api->graph_exec_destroy(exec));
  OK(api->stream_destroy(a));
  OK(api->stream_destroy(b));
}

static void *end_elsewhere(void *stream) {
  CUgraph graph;
  return api->stream_end_capture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
           ? stream
           : NULL;
}

static void another_thread_may_not_end_a_capture(void **state) {
  (void)state;
  pthread_t thread;
  CUstream stream = new_stream();
  CUgraph graph;
  void *is_refused;
  OK(api->stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  assert_int_equal(pthread_create(&thread, NULL, end_elsewhere, stream), 0);
  pthread_join(thread, &is_refused);
  assert_non_null(is_refused);
  OK(api->stream_end_capture(stream, &graph));
  OK(api->graph_destroy(graph));
  OK(api->stream_destroy(stream));
}

static void a_capture_ends_with_its_stream(void **state) {
  (void)state;
  CUstream stream = new_stream(), side = new_stream();
  CUevent event;
  struct probe p = make_probe(), q = make_probe();
  OK(api->event_create(&event, 0));
  OK(api->stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cpu_stream_submit(stream, &p.task));
  OK(api->event_record(event, stream));
  OK(api->stream_wait_event(side, event, 0));
  OK(api->stream_destroy(stream));
  assert_int_equal(p.released, 1);
  OK(cpu_stream_submit(side, &q.task)); /* an ordinary stream again */
  OK(api->stream_synchronize(side));
  assert_int_equal(q.ran, 1);
  OK(api->event_destroy(event));
  OK(api->stream_destroy(side));
}

static void streams_and_events_belong_to_devices(void **state) {
  (void)state;
  CUstream stream = new_stream();
  CUevent event;
  assert_true(cpu_stream_is_on(stream, 0));
  assert_false(cpu_stream_is_on(stream, 1));
  assert_true(cpu_stream_is_on(NULL, 1));
  OK(api->ctx_set_current(contexts[1]));
  assert_int_equal(cpu_device_current(), 1);
  OK(api->event_create(&event, 0));
  assert_int_equal(api->event_record(event, stream), CUDA_ERROR_INVALID_HANDLE);
  OK(api->event_record(event, NULL));
  OK(api->stream_wait_event(stream, event, 0)); /* across devices it may be waited for */
  OK(api->stream_synchronize(stream));
  OK(api->event_destroy(event));
  OK(api->stream_destroy(stream));
  OK(api->ctx_set_current(NULL));
  assert_int_equal(cpu_device_current(), -1);
  OK(api->ctx_set_current(contexts[0]));
}

static int open_devices(void **state) {
  (void)state;
  struct err e;
  unsetenv("NCLUA_CPU_DEVICES");
  if (api->load(NULL, &e) || api->init(0)) return -1;
  for (int i = 0; i < DEVICES; i++) {
    if (api->primary_ctx_retain(&contexts[i], i)) return -1;
  }
  return api->ctx_set_current(contexts[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_task_enters_runs_and_goes),
    cmocka_unit_test(nobody_needs_to_synchronise),
    cmocka_unit_test(streams_of_one_thread_meet),
    cmocka_unit_test(threads_share_a_stream),
    cmocka_unit_test(events_order_streams_of_many_threads),
    cmocka_unit_test(a_graph_enters_its_tasks_at_each_launch),
    cmocka_unit_test(branches_run_side_by_side),
    cmocka_unit_test(launches_do_not_overlap),
    cmocka_unit_test(another_thread_may_not_end_a_capture),
    cmocka_unit_test(a_capture_ends_with_its_stream),
    cmocka_unit_test(streams_and_events_belong_to_devices),
  };
  return cmocka_run_group_tests(tests, open_devices, NULL);
}
