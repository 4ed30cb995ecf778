/* The CPU backend gives error codes where a GPU's driver would crash, and makes up devices.
 */

#include "host/backend.h"
#include "host/cpu/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define OK(call) assert_int_equal(call, CUDA_SUCCESS)

static struct device_api *const api = &cpu_device;

static CUstream new_stream(void) {
  CUstream stream;
  OK(api->stream_create_with_priority(&stream, CU_STREAM_NON_BLOCKING, -1));
  return stream;
}

static int releases;

static void run(struct cpu_task *task, uint64_t ticket) {
  (void)task;
  (void)ticket;
}

static void release(struct cpu_task *task) {
  (void)task;
  releases++;
}

static void dead_handles_are_errors(void **state) {
  (void)state;
  CUstream stream = new_stream(), dead = stream;
  CUevent event, no_event = (CUevent)stream;
  CUgraph graph = (CUgraph)stream;
  CUgraphExec exec = (CUgraphExec)stream;
  struct cpu_task task = {NULL, run, release, 1};
  float ms;
  OK(api->event_create(&event, 0));
  OK(api->stream_destroy(stream));
  assert_int_equal(api->stream_destroy(dead), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(api->stream_synchronize(dead), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(api->stream_query((CUstream)&task), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(api->stream_query((CUstream)event), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(api->event_record(event, dead), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(api->event_record(no_event, NULL), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(api->event_elapsed_time(&ms, event, no_event),
                   CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(api->graph_launch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(api->graph_destroy(graph), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(api->graph_instantiate(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cpu_stream_submit(dead, &task), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(releases, 1);
  assert_false(cpu_stream_is_on(dead, 0));
  OK(api->event_destroy(event));
  assert_int_equal(api->event_destroy(event), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(api->event_query(event), CUDA_ERROR_INVALID_HANDLE);
}

static void a_recycled_handle_is_a_new_one(void **state) {
  (void)state;
  CUstream first = new_stream();
  OK(api->stream_destroy(first));
  CUstream second = new_stream();
  assert_ptr_not_equal(first, second);
  assert_int_equal(api->stream_query(first), CUDA_ERROR_INVALID_HANDLE);
  OK(api->stream_query(second));
  OK(api->stream_destroy(second));
}

static void memory_that_is_not_ours_is_refused(void **state) {
  (void)state;
  CUdeviceptr a;
  int local = 0;
  const CUdeviceptr foreign = (uintptr_t)&local;
  OK(api->mem_alloc(&a, 1024));
  assert_int_equal(api->mem_free(a + 1), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(api->mem_free(foreign), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(api->mem_free_host((void *)(uintptr_t)a), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(api->memset_d8_async(a, 0, 1025, NULL), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(api->memset_d8_async(a + 1, 0, 1024, NULL), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(api->memcpy_htod(foreign, &local, 4), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(api->fill(a, SIZE_MAX, 8, 0, NULL), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(api->fill(a, 1, 3, 0, NULL), CUDA_ERROR_INVALID_VALUE);
  OK(api->memset_d8_async(a + 24, 0, 1000, NULL));
  OK(api->mem_free(a));
}

static void memory_outlives_the_work_on_it(void **state) {
  (void)state;
  CUstream stream = new_stream();
  for (int i = 0; i < 20; i++) {
    CUdeviceptr a;
    OK(api->mem_alloc(&a, 1 << 16));
    OK(api->spin(200, stream));
    OK(api->memset_d8_async(a, 1, 1 << 16, stream));
    OK(api->mem_free(a));
  }
  OK(api->stream_synchronize(stream));
  OK(api->stream_destroy(stream));
}

static void device_identities_differ(void **state) {
  (void)state;
  CUuuid a, b;
  char one[32], two[32];
  OK(api->device_get_uuid(&a, 0));
  OK(api->device_get_uuid(&b, 1));
  assert_memory_not_equal(&a, &b, sizeof a);
  OK(api->device_get_pci_bus_id(one, sizeof one, 0));
  OK(api->device_get_pci_bus_id(two, sizeof two, 1));
  assert_string_not_equal(one, two);
}

static void the_device_count_is_checked(void **state) {
  (void)state;
  static const char *const wrong[] = {"0", "65", "x", "", "8x", "-1"};
  struct err e;
  int count;
  for (size_t i = 0; i < COUNT(wrong); i++) {
    setenv("NCLUA_CPU_DEVICES", wrong[i], 1);
    assert_int_equal(api->load(NULL, &e), -1);
    assert_non_null(strstr(e.text, "from 1 to 64"));
  }
  setenv("NCLUA_CPU_DEVICES", "64", 1);
  assert_int_equal(api->load(NULL, &e), 0);
  OK(api->device_get_count(&count));
  assert_int_equal(count, 64);
  unsetenv("NCLUA_CPU_DEVICES");
  assert_int_equal(api->load(NULL, &e), 0);
  OK(api->device_get_count(&count));
  assert_int_equal(count, 8);
}

static int open_device(void **state) {
  (void)state;
  struct err e;
  CUcontext ctx;
  unsetenv("NCLUA_CPU_DEVICES");
  if (api->load(NULL, &e) || api->init(0)) return -1;
  if (api->primary_ctx_retain(&ctx, 0)) return -1;
  return api->ctx_set_current(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(dead_handles_are_errors),
    cmocka_unit_test(a_recycled_handle_is_a_new_one),
    cmocka_unit_test(memory_that_is_not_ours_is_refused),
    cmocka_unit_test(memory_outlives_the_work_on_it),
    cmocka_unit_test(device_identities_differ),
    cmocka_unit_test(the_device_count_is_checked),
  };
  return cmocka_run_group_tests(tests, open_device, NULL);
}
