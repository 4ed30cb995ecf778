#ifndef TESTS_PLUGINS_FAKE_CUPTI_H
#define TESTS_PLUGINS_FAKE_CUPTI_H

/* How a test makes the fake CUPTI record something. FAKE_CUPTI_SUBSCRIBE is the result of
   cuptiSubscribe. */

#include <stddef.h>
#include <stdint.h>

#define FAKE_API __attribute__((visibility("default")))

/* A record of any kind, from its first bytes. */
FAKE_API void fake_add(const void *head, size_t head_size);

FAKE_API void fake_kernel(const char *name, int grid, int block, uint64_t start,
                          uint64_t end, uint32_t correlation);
FAKE_API void fake_call(uint32_t cbid, uint64_t start, uint64_t end, uint32_t correlation);

#endif
