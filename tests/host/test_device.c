#include "tests/host/device_checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void devices_describe_themselves(void **state) {
  (void)state;
  int count = 0, value = 0;
  CUdevice device;
  char text[256], id[32];
  size_t bytes = 0;
  CUuuid uuid, nil = {0};
  OK(api->device_get_count(&count));
  assert_true(count >= 1);
  GIVES(CUDA_ERROR_INVALID_DEVICE, api->device_get(&device, count));
  GIVES(CUDA_ERROR_INVALID_DEVICE, api->device_get(&device, -1));
  OK(api->device_get(&device, 0));
  OK(api->device_get_name(text, sizeof text, device));
  assert_true(strlen(text) > 3);
  OK(api->device_get_uuid(&uuid, device));
  assert_memory_not_equal(&uuid, &nil, sizeof uuid);
  OK(api->device_get_pci_bus_id(id, sizeof id, device));
  assert_int_equal(strlen(id), strlen("0000:01:00.0"));
  OK(api->device_total_mem(&bytes, device));
  assert_true(bytes > 1 << 20);
  OK(api->device_get_attribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  assert_true(value >= 1);
  GIVES(CUDA_ERROR_INVALID_VALUE, api->device_get_attribute(&value, -1, device));
  OK(api->driver_get_version(&value));
}

static void work_needs_a_context(void **state) {
  (void)state;
  CUdeviceptr ptr;
  CUstream stream;
  CUevent event;
  CUcontext now = device_context;
  OK(api->ctx_set_current(NULL));
  OK(api->ctx_get_current(&now));
  assert_null(now);
  GIVES(CUDA_ERROR_INVALID_CONTEXT, api->mem_alloc(&ptr, 64));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, api->stream_create_with_priority(&stream, 0, 0));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, api->event_create(&event, 0));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, api->ctx_synchronize());
  OK(api->ctx_set_current(device_context));
}

static void memory_is_accounted_for(void **state) {
  (void)state;
  CUdeviceptr a = 0, b = 0;
  size_t free_bytes = 0, total_bytes = 0;
  void *host = NULL;
  GIVES(CUDA_ERROR_INVALID_VALUE, api->mem_alloc(&a, 0));
  OK(api->mem_get_info(&free_bytes, &total_bytes));
  assert_true(free_bytes > 0 && free_bytes <= total_bytes);
  GIVES(CUDA_ERROR_OUT_OF_MEMORY, api->mem_alloc(&a, total_bytes));
  GIVES(CUDA_ERROR_OUT_OF_MEMORY, api->mem_alloc(&a, SIZE_MAX / 2));
  OK(api->mem_alloc(&a, 1));
  OK(api->mem_alloc(&b, 3 << 20));
  assert_int_equal(a % 256, 0);
  assert_int_equal(b % 256, 0);
  OK(api->mem_free(a));
  GIVES(CUDA_ERROR_INVALID_VALUE, api->mem_free(a));
  OK(api->mem_free(b));
  OK(api->mem_free(0));
  OK(api->mem_host_alloc(&host, 4096, 0));
  memset(host, 1, 4096);
  OK(api->mem_free_host(host));
}

static void copies_move_bytes_in_order(void **state) {
  (void)state;
  CUdeviceptr a = new_floats(), b = new_floats();
  CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  float host[FLOATS], back[FLOATS] = {0};
  for (int i = 0; i < FLOATS; i++) host[i] = (float)i;
  OK(api->memcpy_htod_async(a, host, sizeof host, stream));
  memset(host, 0, sizeof host); /* pageable: the driver has taken the bytes */
  OK(api->memcpy_dtod_async(b, a, sizeof host, stream));
  OK(api->memcpy_dtoh_async(back, b, sizeof back, stream));
  OK(api->stream_synchronize(stream));
  for (int i = 0; i < FLOATS; i++) assert_true(back[i] == (float)i);
  OK(api->memset_d8_async(a, 0, sizeof host, stream));
  OK(api->stream_synchronize(stream));
  assert_floats(a, 0);
  OK(api->memcpy_htod(a, back, sizeof back));
  OK(api->memcpy_dtoh(host, a, sizeof host));
  assert_memory_equal(host, back, sizeof host);
  OK(api->stream_destroy(stream));
  OK(api->mem_free(a));
  OK(api->mem_free(b));
}

static void fills_and_comparisons_agree(void **state) {
  (void)state;
  static const struct {
    ncclDataType_t type;
    uint64_t bits;
    size_t bytes;
  } cases[] = {{ncclInt8, 0x7b, 1},
               {ncclFloat16, 0x3c00, 2},
               {ncclFloat32, 0x3f800000, 4},
               {ncclInt64, UINT64_C(1) << 40 | 3, 8}};
  CUdeviceptr a = new_floats(), b = new_floats();
  const size_t room = FLOATS * sizeof(float);
  for (size_t i = 0; i < COUNT(cases); i++) {
    struct mismatch m;
    struct compare c = {.a = a, .count = room / cases[i].bytes - 1, .type = cases[i].type};
    c.value = cases[i].bits;
    OK(api->fill(a, c.count, cases[i].bytes, cases[i].bits, NULL));
    OK(api->compare(&c, &m, NULL));
    assert_int_equal(m.count, 0);
    c.b = b;
    OK(api->fill(b, c.count, cases[i].bytes, cases[i].bits, NULL));
    OK(api->memset_d8_async(b + 700 * cases[i].bytes, 0, 2 * cases[i].bytes, NULL));
    OK(api->memset_d8_async(b + (c.count - 1) * cases[i].bytes, 0, cases[i].bytes, NULL));
    OK(api->compare(&c, &m, NULL));
    assert_int_equal(m.count, 3);
    assert_int_equal(m.first, 700);
  }
  OK(api->mem_free(a));
  OK(api->mem_free(b));
}

static void comparisons_tolerate(void **state) {
  (void)state;
  CUdeviceptr a = new_floats();
  struct mismatch m;
  struct compare c = {.a = a, .count = FLOATS, .type = ncclFloat32};
  c.value = 0x3f800000; /* 1 */
  fill_floats(a, 1.01f, NULL);
  OK(api->compare(&c, &m, NULL));
  assert_int_equal(m.count, FLOATS);
  assert_int_equal(m.first, 0);
  c.tolerance = 0.02;
  OK(api->compare(&c, &m, NULL));
  assert_int_equal(m.count, 0);
  c.value = 0x7fc00000;
  OK(api->compare(&c, &m, NULL));
  assert_int_equal(m.count, FLOATS);
  fill_floats(a, -(0.0f / 0.0f), NULL);
  OK(api->compare(&c, &m, NULL));
  assert_int_equal(m.count, 0);
  OK(api->mem_free(a));
}

static void patterns_count_within_their_modulus(void **state) {
  (void)state;
  static const struct pattern cases[] = {
    {3, 5, 7}, {0, 10, 4}, {5, 3, 1000003}, {1, 0, 2}, {7, 1, 1}, {200, 1, 251}};
  CUdeviceptr a = new_floats();
  for (size_t c = 0; c < COUNT(cases); c++) {
    const struct pattern *p = &cases[c];
    float f[FLOATS];
    uint8_t bytes[FLOATS];
    OK(api->fill_pattern(a, FLOATS, ncclFloat32, p, NULL));
    OK(api->memcpy_dtoh(f, a, sizeof f));
    OK(api->fill_pattern(a, FLOATS, ncclUint8, p, NULL));
    OK(api->memcpy_dtoh(bytes, a, sizeof bytes));
    for (uint64_t i = 0; i < FLOATS; i++) {
      const uint64_t wanted = (p->start + p->step * i) % p->modulus;
      assert_true(f[i] == (float)wanted);
      assert_int_equal(bytes[i], wanted & 0xff);
    }
  }
  OK(api->mem_free(a));
}

static void a_query_does_not_wait(void **state) {
  (void)state;
  CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  CUevent before = new_event(0), after = new_event(0);
  float ms = -1;
  OK(api->stream_query(stream));
  OK(api->event_record(before, stream));
  OK(api->spin(LONG_US, stream));
  OK(api->event_record(after, stream));
  GIVES(CUDA_ERROR_NOT_READY, api->stream_query(stream));
  GIVES(CUDA_ERROR_NOT_READY, api->event_query(after));
  GIVES(CUDA_ERROR_NOT_READY, api->event_elapsed_time(&ms, before, after));
  OK(api->event_synchronize(after));
  OK(api->stream_query(stream));
  OK(api->event_query(after));
  OK(api->event_elapsed_time(&ms, before, after));
  assert_true(ms >= LONG_US / 1e3 && ms < 10 * LONG_US / 1e3);
  OK(api->event_destroy(before));
  OK(api->event_destroy(after));
  OK(api->stream_destroy(stream));
}

static void events_know_their_limits(void **state) {
  (void)state;
  CUevent fresh = new_event(0), used = new_event(0),
          quiet = new_event(CU_EVENT_DISABLE_TIMING);
  CUevent none;
  float ms;
  OK(api->event_query(fresh));
  OK(api->event_synchronize(fresh));
  OK(api->stream_wait_event(NULL, fresh, 0));
  OK(api->event_record(used, NULL));
  OK(api->event_record(quiet, NULL));
  OK(api->event_synchronize(quiet));
  GIVES(CUDA_ERROR_INVALID_HANDLE, api->event_elapsed_time(&ms, fresh, used));
  GIVES(CUDA_ERROR_INVALID_HANDLE, api->event_elapsed_time(&ms, used, fresh));
  GIVES(CUDA_ERROR_INVALID_HANDLE, api->event_elapsed_time(&ms, used, quiet));
  OK(api->event_elapsed_time(&ms, used, used));
  assert_true(ms == 0);
  GIVES(CUDA_ERROR_INVALID_VALUE, api->event_create(&none, 1u << 20));
  OK(api->event_destroy(fresh));
  OK(api->event_destroy(used));
  OK(api->event_destroy(quiet));
}

/* The waits are for what was recorded when they were asked for. */
static void streams_wait_for_events(void **state) {
  (void)state;
  CUdeviceptr a = new_floats(), b = new_floats();
  CUstream first = new_stream(CU_STREAM_NON_BLOCKING),
           second = new_stream(CU_STREAM_NON_BLOCKING);
  CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
  fill_floats(a, 0, NULL);
  OK(api->ctx_synchronize());
  OK(api->spin(LONG_US, first));
  fill_floats(a, 1, first);
  OK(api->event_record(event, first));
  OK(api->stream_wait_event(second, event, 0));
  OK(api->event_record(event, first));
  OK(api->event_destroy(event)); /* the wait goes on */
  OK(api->memcpy_dtod_async(b, a, FLOATS * sizeof(float), second));
  OK(api->stream_synchronize(second));
  assert_floats(b, 1);
  OK(api->stream_destroy(first));
  OK(api->stream_destroy(second));
  OK(api->mem_free(a));
  OK(api->mem_free(b));
}

static void blocking_streams_keep_step_with_the_default(void **state) {
  (void)state;
  CUdeviceptr a = new_floats(), b = new_floats();
  CUstream blocking = new_stream(CU_STREAM_DEFAULT),
           free_running = new_stream(CU_STREAM_NON_BLOCKING);
  fill_floats(a, 0, NULL);
  fill_floats(b, 0, NULL);
  OK(api->ctx_synchronize());
  OK(api->spin(LONG_US, NULL));
  fill_floats(a, 1, NULL);
  fill_floats(b, 5, free_running);
  OK(api->stream_synchronize(free_running));
  GIVES(CUDA_ERROR_NOT_READY, api->stream_query(NULL));
  OK(api->memcpy_dtod_async(b, a, FLOATS * sizeof(float), blocking));
  OK(api->stream_synchronize(blocking));
  assert_floats(b, 1);
  OK(api->spin(LONG_US, blocking));
  fill_floats(a, 2, blocking);
  OK(api->memcpy_dtod_async(b, a, FLOATS * sizeof(float), NULL));
  OK(api->stream_synchronize(NULL));
  assert_floats(b, 2);
  OK(api->stream_destroy(blocking));
  OK(api->stream_destroy(free_running));
  OK(api->mem_free(a));
  OK(api->mem_free(b));
}

static void a_destroyed_stream_runs_dry(void **state) {
  (void)state;
  CUdeviceptr a = new_floats();
  CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  fill_floats(a, 0, stream);
  OK(api->spin(LONG_US, stream));
  fill_floats(a, 3, stream);
  OK(api->stream_destroy(stream));
  OK(api->ctx_synchronize());
  assert_floats(a, 3);
  OK(api->mem_free(a));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    TEST(devices_describe_themselves),
    TEST(work_needs_a_context),
    TEST(memory_is_accounted_for),
    TEST(copies_move_bytes_in_order),
    TEST(fills_and_comparisons_agree),
    TEST(comparisons_tolerate),
    TEST(patterns_count_within_their_modulus),
    TEST(a_query_does_not_wait),
    TEST(events_know_their_limits),
    TEST(streams_wait_for_events),
    TEST(blocking_streams_keep_step_with_the_default),
    TEST(a_destroyed_stream_runs_dry),
  };
  return cmocka_run_group_tests(tests, device_open, device_close);
}
