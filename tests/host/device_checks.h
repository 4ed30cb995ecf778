#ifndef TESTS_HOST_DEVICE_CHECKS_H
#define TESTS_HOST_DEVICE_CHECKS_H

/* Tests that hold for the device of any backend, in the driver's own result codes. They run
   on the one that NCLUA_BACKEND names, default cpu; their codes were seen on a GPU with
   driver 580. */

#include "host/backend.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Goes on after a difference, so that one run shows them all; device_none_differ fails. */
#define GIVES(wanted, call) device_check(wanted, call, #call, __FILE__, __LINE__)
#define OK(call) GIVES(CUDA_SUCCESS, call)
#define TEST(function) cmocka_unit_test_teardown(function, device_none_differ)

/* LONG_US is long enough for the host to look around meanwhile. */
enum { LONG_US = 30000, FLOATS = 3000 };

extern const struct device_api *api;
extern CUcontext device_context;

void device_check(CUresult wanted, CUresult rc, const char *call, const char *file,
                  int line);
int device_none_differ(void **state);

/* For a group of tests: opens device 0 and makes it current. */
int device_open(void **state);
int device_close(void **state);

CUstream new_stream(unsigned flags);
CUevent new_event(unsigned flags);
CUdeviceptr new_floats(void);
void fill_floats(CUdeviceptr floats, float value, CUstream stream);
void assert_floats(CUdeviceptr floats, float value);

#endif
