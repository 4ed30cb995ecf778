#include "tests/plugins/cupti_records.h"

#include <string.h>

uint32_t records_version = 26;

static const struct {
  uint32_t kind, since;
  size_t size;
} sizes[] = {
  /* Of a kind, the newest first. */
  {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 130000, 216},
  {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 19, 208},
  {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 18, 200},
  {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 17, 176},
  {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 15, 168},
  {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 13, 160},
  {CUPTI_ACTIVITY_KIND_MEMCPY, 26, 96},
  {CUPTI_ACTIVITY_KIND_MEMCPY, 18, 88},
  {CUPTI_ACTIVITY_KIND_MEMCPY, 17, 80},
  {CUPTI_ACTIVITY_KIND_MEMCPY, 14, 72},
  {CUPTI_ACTIVITY_KIND_MEMCPY, 13, 64},
  {CUPTI_ACTIVITY_KIND_MEMCPY2, 18, 96},
  {CUPTI_ACTIVITY_KIND_MEMCPY2, 17, 88},
  {CUPTI_ACTIVITY_KIND_MEMCPY2, 14, 80},
  {CUPTI_ACTIVITY_KIND_MEMCPY2, 13, 72},
  {CUPTI_ACTIVITY_KIND_MEMSET, 18, 88},
  {CUPTI_ACTIVITY_KIND_MEMSET, 17, 80},
  {CUPTI_ACTIVITY_KIND_MEMSET, 14, 72},
  {CUPTI_ACTIVITY_KIND_MEMSET, 13, 64},
  {CUPTI_ACTIVITY_KIND_RUNTIME, 13, 40},
  {CUPTI_ACTIVITY_KIND_DRIVER, 13, 40},
  {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 26, 56},
  {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 13, 40},
  {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 13, 48},
};

size_t records_size(uint32_t kind, uint32_t version) {
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    if (sizes[i].kind == kind && version >= sizes[i].since) return sizes[i].size;
  }
  return 0;
}

static void put(uint8_t *record, size_t offset, uint64_t value, size_t bytes) {
  if (offset) memcpy(record + offset, &value, bytes);
}

size_t records_add(uint8_t *buffer, size_t at, uint32_t version, const void *head,
                   size_t head_size) {
  const uint32_t kind = ((const struct cupti_record *)head)->kind;
  const struct cupti_layout l = abi_layout(version);
  const size_t size = records_size(kind, version);
  uint8_t *r = buffer + at;
  memset(r, 0xee, size);
  memcpy(r, head, head_size < size ? head_size : size);
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    put(r, l.kernel_graph_node, 7700, 8);
    put(r, l.kernel_graph, 77, 4);
    put(r, l.kernel_local_memory, 777, 8);
  }
  if (kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    put(r, l.memcpy_graph_node, 7700, 8);
    put(r, l.memcpy_graph, 77, 4);
    put(r, l.memcpy_count, 7, 8);
  }
  if (kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {
    put(r, l.peer_graph_node, 7700, 8);
    put(r, l.peer_graph, 77, 4);
  }
  if (kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    put(r, l.memset_graph_node, 7700, 8);
    put(r, l.memset_graph, 77, 4);
  }
  return at + size;
}

CUptiResult records_next(uint8_t *buffer, size_t bytes, struct cupti_record **record) {
  uint8_t *at = (uint8_t *)*record;
  at = at ? at + records_size((*record)->kind, records_version) : buffer;
  if (at >= buffer + bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = (struct cupti_record *)(void *)at;
  return CUPTI_SUCCESS;
}

CUptiResult records_name(int domain, uint32_t cbid, const char **name) {
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && cbid == 211)
    *name = "cudaLaunchKernel_v7000";
  else if (domain == CUPTI_CB_DOMAIN_DRIVER_API && cbid == 307)
    *name = "cuLaunchKernel";
  else
    return 1;
  return CUPTI_SUCCESS;
}
