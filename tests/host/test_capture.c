/* Graphs, and what may be done while one is captured. */

#include "tests/host/device_checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The graph of `count` times "a = a + a", nearly: three dependent copies and a fill. */
static void a_graph_replays_in_order(void **state) {
  (void)state;
  CUdeviceptr a = new_floats(), b = new_floats();
  CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  CUgraph graph;
  CUgraphExec exec;
  fill_floats(a, 1, stream);
  fill_floats(b, 2, stream);
  OK(api->stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(api->memcpy_dtod_async(a, b, FLOATS * sizeof(float), stream));
  fill_floats(b, 7, stream);
  OK(api->stream_end_capture(stream, &graph));
  OK(api->stream_synchronize(stream));
  assert_floats(a, 1); /* nothing ran yet */
  OK(api->graph_instantiate(&exec, graph, 0));
  OK(api->graph_destroy(graph)); /* the executable one stands alone */
  OK(api->graph_launch(exec, stream));
  OK(api->stream_synchronize(stream));
  assert_floats(a, 2);
  assert_floats(b, 7);
  for (int i = 0; i < 50; i++) OK(api->graph_launch(exec, stream));
  OK(api->graph_exec_destroy(exec));
  OK(api->stream_synchronize(stream));
  assert_floats(a, 7);
  OK(api->stream_destroy(stream));
  OK(api->mem_free(a));
  OK(api->mem_free(b));
}

static void an_empty_graph_launches(void **state) {
  (void)state;
  CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  CUgraph graph;
  CUgraphExec exec;
  OK(api->stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(api->stream_end_capture(stream, &graph));
  OK(api->graph_instantiate(&exec, graph, 0));
  OK(api->graph_launch(exec, stream));
  OK(api->stream_synchronize(stream));
  OK(api->graph_exec_destroy(exec));
  OK(api->graph_destroy(graph));
  OK(api->stream_destroy(stream));
}

/* Side waits for main's first fill, main at the end for side: a diamond. */
static void a_capture_forks_and_joins(void **state) {
  (void)state;
  CUdeviceptr a = new_floats(), b = new_floats(), c = new_floats();
  CUstream stream = new_stream(0), side = new_stream(0);
  CUevent fork = new_event(CU_EVENT_DISABLE_TIMING),
          join = new_event(CU_EVENT_DISABLE_TIMING);
  CUgraph graph;
  CUgraphExec exec;
  OK(api->stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  fill_floats(a, 4, stream);
  OK(api->event_record(fork, stream));
  OK(api->stream_wait_event(side, fork, 0));
  OK(api->spin(LONG_US / 10, side));
  OK(api->memcpy_dtod_async(b, a, FLOATS * sizeof(float), side));
  OK(api->event_record(join, side));
  fill_floats(c, 1, stream);
  OK(api->stream_wait_event(stream, join, 0));
  OK(api->memcpy_dtod_async(c, b, FLOATS * sizeof(float), stream));
  OK(api->stream_end_capture(stream, &graph));
  OK(api->stream_query(side)); /* an ordinary stream again */
  OK(api->graph_instantiate(&exec, graph, 0));
  for (int i = 0; i < 5; i++) {
    fill_floats(b, 0, stream);
    fill_floats(c, 0, stream);
    OK(api->graph_launch(exec, stream));
    OK(api->stream_synchronize(stream));
    assert_floats(c, 4);
  }
  OK(api->graph_exec_destroy(exec));
  OK(api->graph_destroy(graph));
  OK(api->event_destroy(fork));
  OK(api->event_destroy(join));
  OK(api->stream_destroy(stream));
  OK(api->stream_destroy(side));
  OK(api->mem_free(a));
  OK(api->mem_free(b));
  OK(api->mem_free(c));
}

struct capture {
  CUstream stream, other;
  CUevent event, outside;
  CUdeviceptr a, spare;
  CUgraph graph;
};

static CUresult end(struct capture *c) {
  const CUresult rc = api->stream_end_capture(c->stream, &c->graph);
  if (!rc) OK(api->graph_destroy(c->graph));
  return rc;
}

static void leave_unjoined(struct capture *c) {
  OK(api->event_record(c->event, c->stream));
  OK(api->stream_wait_event(c->other, c->event, 0));
  fill_floats(c->a, 1, c->other);
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, end(c));
}

static void join_without_work(struct capture *c) {
  OK(api->event_record(c->event, c->stream));
  OK(api->stream_wait_event(c->other, c->event, 0));
  OK(end(c));
}

static void end_in_the_other(struct capture *c) {
  CUgraph graph;
  OK(api->event_record(c->event, c->stream));
  OK(api->stream_wait_event(c->other, c->event, 0));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, api->stream_end_capture(c->other, &graph));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void synchronise(struct capture *c) {
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, api->stream_synchronize(c->stream));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, api->memset_d8_async(c->a, 0, 4, c->stream));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void query(struct capture *c) {
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, api->stream_query(c->stream));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void synchronise_the_context(struct capture *c) {
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, api->ctx_synchronize());
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void allocate(struct capture *c) {
  CUdeviceptr ptr = 0;
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, api->mem_alloc(&ptr, 64));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void copy_synchronously(struct capture *c) {
  float x = 0;
  GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, api->memcpy_htod(c->a, &x, sizeof x));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void query_an_outside_event(struct capture *c) {
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, api->event_query(c->outside));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void query_another_stream(struct capture *c) {
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, api->stream_query(c->other));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void query_the_captured_event(struct capture *c) {
  OK(api->event_record(c->event, c->stream));
  GIVES(CUDA_ERROR_CAPTURED_EVENT, api->event_query(c->event));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void wait_for_the_captured_event(struct capture *c) {
  OK(api->event_record(c->event, c->stream));
  GIVES(CUDA_ERROR_CAPTURED_EVENT, api->event_synchronize(c->event));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void time_the_captured_event(struct capture *c) {
  float ms;
  OK(api->event_record(c->event, c->stream));
  GIVES(CUDA_ERROR_CAPTURED_EVENT, api->event_elapsed_time(&ms, c->outside, c->event));
  OK(end(c)); /* the one question that does no harm */
}

static void free_memory(struct capture *c) {
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, api->mem_free(c->spare));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void make_a_stream_and_an_event(struct capture *c) {
  CUstream stream = new_stream(0);
  CUevent event = new_event(0);
  OK(api->event_destroy(event));
  OK(api->stream_destroy(stream));
  OK(end(c));
}

static void destroy_the_side(struct capture *c) {
  CUstream side = new_stream(0);
  OK(api->event_record(c->event, c->stream));
  OK(api->stream_wait_event(side, c->event, 0));
  fill_floats(c->a, 1, side);
  OK(api->event_record(c->event, side));
  OK(api->stream_wait_event(c->stream, c->event, 0));
  OK(api->stream_destroy(side));
  OK(end(c));
}

static void use_the_memory_information(struct capture *c) {
  size_t a, b;
  OK(api->mem_get_info(&a, &b));
  OK(end(c));
}

static void compare_in_it(struct capture *c) {
  struct mismatch m;
  const struct compare what = {.a = c->a, .count = 1, .type = ncclFloat32};
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, api->compare(&what, &m, c->stream));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void copy_from_ordinary_memory(struct capture *c) {
  static float x[4];
  OK(api->memcpy_htod_async(c->a, x, sizeof x, c->stream));
  OK(end(c));
}

static void launch_a_graph_into_it(struct capture *c) {
  CUgraph graph;
  CUgraphExec exec;
  OK(end(c));
  OK(api->stream_begin_capture(c->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(api->stream_end_capture(c->stream, &graph));
  OK(api->graph_instantiate(&exec, graph, 0));
  OK(api->graph_destroy(graph));
  OK(api->stream_begin_capture(c->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, api->graph_launch(exec, c->stream));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
  OK(api->graph_exec_destroy(exec));
}

static void destroy_the_side_unjoined(struct capture *c) {
  CUstream side = new_stream(0);
  OK(api->event_record(c->event, c->stream));
  OK(api->stream_wait_event(side, c->event, 0));
  fill_floats(c->a, 1, side);
  OK(api->stream_destroy(side));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, end(c));
}

static void launch_elsewhere(struct capture *c) {
  CUgraph graph;
  CUgraphExec exec;
  OK(end(c));
  OK(api->stream_begin_capture(c->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(api->stream_end_capture(c->stream, &graph));
  OK(api->graph_instantiate(&exec, graph, 0));
  OK(api->stream_begin_capture(c->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(api->graph_launch(exec, c->other));
  OK(end(c));
  OK(api->graph_destroy(graph));
  OK(api->graph_exec_destroy(exec));
}

static void instantiate_in_it(struct capture *c) {
  CUgraph graph;
  CUgraphExec exec;
  OK(end(c));
  OK(api->stream_begin_capture(c->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(api->stream_end_capture(c->stream, &graph));
  OK(api->stream_begin_capture(c->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, api->graph_instantiate(&exec, graph, 0));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
  OK(api->graph_destroy(graph));
}

static void wait_in_it_for_an_ended_one(struct capture *c) {
  OK(api->event_record(c->event, c->stream));
  OK(end(c));
  OK(api->stream_begin_capture(c->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  GIVES(CUDA_ERROR_INVALID_VALUE, api->stream_wait_event(c->stream, c->event, 0));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void wait_in_it_for_nothing(struct capture *c) {
  OK(api->stream_wait_event(c->stream, c->event, 0));
  OK(end(c));
}

static void synchronise_another_stream(struct capture *c) {
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, api->stream_synchronize(c->other));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void wait_for_the_outside(struct capture *c) {
  GIVES(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
        api->stream_wait_event(c->stream, c->outside, 0));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void wait_after_the_end(struct capture *c) {
  OK(api->event_record(c->event, c->stream));
  OK(end(c));
  GIVES(CUDA_ERROR_INVALID_VALUE, api->stream_wait_event(c->other, c->event, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, api->event_query(c->event));
  GIVES(CUDA_ERROR_INVALID_VALUE, api->event_synchronize(c->event));
  float ms;
  GIVES(CUDA_ERROR_INVALID_VALUE, api->event_elapsed_time(&ms, c->outside, c->event));
  OK(api->event_record(c->event, c->other));
  OK(api->event_synchronize(c->event));
}

static void begin_twice(struct capture *c) {
  GIVES(CUDA_ERROR_ILLEGAL_STATE,
        api->stream_begin_capture(c->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(end(c));
}

static void end_twice(struct capture *c) {
  OK(end(c));
  GIVES(CUDA_ERROR_ILLEGAL_STATE, end(c));
}

static void use_the_default_stream(struct capture *c) {
  GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, api->memset_d8_async(c->a, 0, 4, NULL));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void merge(struct capture *c) {
  OK(api->stream_begin_capture(c->other, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(api->event_record(c->event, c->other));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_MERGE, api->stream_wait_event(c->stream, c->event, 0));
  CUgraph graph;
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, api->stream_end_capture(c->other, &graph));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(c));
}

static void captures_refuse_what_cannot_be_replayed(void **state) {
  (void)state;
  static void (*const cases[])(struct capture *) = {
    leave_unjoined,
    join_without_work,
    end_in_the_other,
    synchronise,
    query,
    synchronise_the_context,
    allocate,
    free_memory,
    copy_synchronously,
    query_an_outside_event,
    query_another_stream,
    query_the_captured_event,
    wait_for_the_captured_event,
    time_the_captured_event,
    make_a_stream_and_an_event,
    destroy_the_side,
    use_the_memory_information,
    compare_in_it,
    copy_from_ordinary_memory,
    wait_for_the_outside,
    launch_a_graph_into_it,
    destroy_the_side_unjoined,
    launch_elsewhere,
    instantiate_in_it,
    wait_in_it_for_an_ended_one,
    wait_in_it_for_nothing,
    synchronise_another_stream,
    wait_after_the_end,
    begin_twice,
    end_twice,
    use_the_default_stream,
    merge,
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    struct capture c = {.stream = new_stream(0), .other = new_stream(0)};
    c.event = new_event(0);
    c.outside = new_event(0);
    c.a = new_floats();
    c.spare = new_floats();
    OK(api->event_record(c.outside, c.other));
    OK(api->event_synchronize(c.outside));
    OK(api->stream_begin_capture(c.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    cases[i](&c);
    fill_floats(c.a, 1, c.stream); /* whatever happened, the stream works again */
    OK(api->stream_synchronize(c.stream));
    assert_floats(c.a, 1);
    OK(api->event_destroy(c.event));
    OK(api->event_destroy(c.outside));
    OK(api->stream_destroy(c.stream));
    OK(api->stream_destroy(c.other));
    OK(api->mem_free(c.a));
  }
}

static void the_default_stream_does_not_capture(void **state) {
  (void)state;
  CUgraph graph;
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        api->stream_begin_capture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
  GIVES(CUDA_ERROR_ILLEGAL_STATE, api->stream_end_capture(NULL, &graph));
}

/* A relaxed capture lets the thread do what a global one forbids. */
static void a_relaxed_capture_allows_allocation(void **state) {
  (void)state;
  CUstream stream = new_stream(CU_STREAM_NON_BLOCKING),
           other = new_stream(CU_STREAM_NON_BLOCKING);
  CUgraph graph;
  OK(api->stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUdeviceptr a = new_floats();
  fill_floats(a, 1, stream);
  fill_floats(a, 2, other);
  OK(api->stream_synchronize(other));
  fill_floats(a, 3, NULL); /* the capturing stream is not a blocking one */
  OK(api->stream_synchronize(NULL));
  OK(api->stream_end_capture(stream, &graph));
  OK(api->graph_destroy(graph));
  OK(api->stream_destroy(stream));
  OK(api->stream_destroy(other));
  OK(api->mem_free(a));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    TEST(a_graph_replays_in_order),
    TEST(an_empty_graph_launches),
    TEST(a_capture_forks_and_joins),
    TEST(captures_refuse_what_cannot_be_replayed),
    TEST(the_default_stream_does_not_capture),
    TEST(a_relaxed_capture_allows_allocation),
  };
  return cmocka_run_group_tests(tests, device_open, device_close);
}
