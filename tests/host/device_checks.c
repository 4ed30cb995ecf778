#include "tests/host/device_checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const struct device_api *api;
CUcontext device_context;
static unsigned differences;

void device_check(CUresult wanted, CUresult rc, const char *call, const char *file,
                  int line) {
  if (rc == wanted) return;
  differences++;
  const char *is = NULL, *should = NULL;
  api->get_error_name(rc, &is);
  api->get_error_name(wanted, &should);
  print_error("%s:%d: %s: got %s (%d), wanted %s\n",
              file,
              line,
              call,
              is ? is : "an unknown code",
              rc,
              should);
}

int device_none_differ(void **state) {
  (void)state;
  const unsigned count = differences;
  differences = 0;
  return count != 0;
}

int device_open(void **state) {
  (void)state;
  struct err e;
  const char *backend = getenv("NCLUA_BACKEND");
  if (backend_choose(backend ? backend : "cpu", NULL, &e)) goto fail;
  api = backend_device(&e);
  if (!api) goto fail;
  OK(api->init(0));
  OK(api->primary_ctx_retain(&device_context, 0));
  OK(api->ctx_set_current(device_context));
  return device_none_differ(NULL);
fail:
  print_error("%s\n", e.text);
  return -1;
}

int device_close(void **state) {
  (void)state;
  OK(api->primary_ctx_release(0));
  return device_none_differ(NULL);
}

CUstream new_stream(unsigned flags) {
  CUstream stream = NULL;
  OK(api->stream_create_with_priority(&stream, flags, 0));
  return stream;
}

CUevent new_event(unsigned flags) {
  CUevent event = NULL;
  OK(api->event_create(&event, flags));
  return event;
}

CUdeviceptr new_floats(void) {
  CUdeviceptr ptr = 0;
  OK(api->mem_alloc(&ptr, FLOATS * sizeof(float)));
  return ptr;
}

void fill_floats(CUdeviceptr floats, float value, CUstream stream) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  OK(api->fill(floats, FLOATS, sizeof value, bits, stream));
}

void assert_floats(CUdeviceptr floats, float value) {
  float host[FLOATS];
  OK(api->memcpy_dtoh(host, floats, sizeof host));
  for (int i = 0; i < FLOATS; i++) {
    if (host[i] == value) continue;
    fail_msg("float %d is %g, not %g", i, (double)host[i], (double)value);
  }
}
