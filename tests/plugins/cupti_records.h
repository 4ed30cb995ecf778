#ifndef TESTS_PLUGINS_CUPTI_RECORDS_H
#define TESTS_PLUGINS_CUPTI_RECORDS_H

/* Activity records as CUPTI of a given version writes them: the sizes are those of
   cupti_activity.h and cupti_activity_deprecated.h. */

#include "plugins/trace/abi.h"

/* The size of a record of this kind, 0 for a kind that is not made here. */
size_t records_size(uint32_t kind, uint32_t version);

/* Appends a record of that size, which begins with `head` and is 0xee where the head ends,
   but for the members that the layout names; those are node = 7700, graph = 77,
   local memory = 777, count = 7. Returns the new end. */
size_t records_add(uint8_t *buffer, size_t at, uint32_t version, const void *head,
                   size_t head_size);

/* cuptiActivityGetNextRecord for records of records_version. */
extern uint32_t records_version;
CUptiResult records_next(uint8_t *buffer, size_t bytes, struct cupti_record **record);

/* cuptiGetCallbackName: knows cudaLaunchKernel_v7000 (211) and cuLaunchKernel (307). */
CUptiResult records_name(int domain, uint32_t cbid, const char **name);

#endif
