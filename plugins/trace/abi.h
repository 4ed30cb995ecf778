#ifndef PLUGINS_TRACE_ABI_H
#define PLUGINS_TRACE_ABI_H

/* The part of CUPTI's ABI that the tracer speaks, in our own declarations (CUDA 11.0 to
   13). A test holds them against the real headers where those are. */

#include <stddef.h>
#include <stdint.h>

typedef int CUptiResult;

enum {
  CUPTI_SUCCESS = 0,
  CUPTI_ERROR_MAX_LIMIT_REACHED = 12, /* also: there is no further record */
  CUPTI_ERROR_NOT_COMPATIBLE = 14,
  CUPTI_ERROR_NOT_INITIALIZED = 15,
  CUPTI_ERROR_INSUFFICIENT_PRIVILEGES = 35,
  CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39
};

enum {
  CUPTI_ACTIVITY_KIND_MEMCPY = 1,
  CUPTI_ACTIVITY_KIND_MEMSET = 2,
  CUPTI_ACTIVITY_KIND_KERNEL = 3,
  CUPTI_ACTIVITY_KIND_DRIVER = 4,
  CUPTI_ACTIVITY_KIND_RUNTIME = 5,
  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
  CUPTI_ACTIVITY_KIND_MEMCPY2 = 22, /* from one GPU to another */
  CUPTI_ACTIVITY_KIND_SYNCHRONIZATION = 38,
  CUPTI_ACTIVITY_KIND_GRAPH_TRACE = 51
};

enum { CUPTI_CB_DOMAIN_DRIVER_API = 1, CUPTI_CB_DOMAIN_RUNTIME_API = 2 };
enum { CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM = 1 };
enum { CUPTI_ACTIVITY_FLAG_FLUSH_FORCED = 1 };

/* Every record begins with its kind. */
struct cupti_record {
  uint32_t kind;
};

/* CUpti_ActivityKernel4 and all later ones have these members at these places. What came
   after them depends on the version: see struct cupti_layout. */
struct cupti_kernel {
  uint32_t kind;
  uint8_t cacheConfig, sharedMemoryConfig;
  uint16_t registersPerThread;
  int32_t partitionedGlobalCacheRequested, partitionedGlobalCacheExecuted;
  uint64_t start, end, completed;
  uint32_t deviceId, contextId, streamId;
  int32_t gridX, gridY, gridZ;
  int32_t blockX, blockY, blockZ;
  int32_t staticSharedMemory, dynamicSharedMemory;
  uint32_t localMemoryPerThread, localMemoryTotal;
  uint32_t correlationId;
  int64_t gridId;
  const char *name;
  void *reserved0;
  uint64_t queued, submitted;
  uint8_t launchType, isSharedMemoryCarveoutRequested, sharedMemoryCarveoutRequested,
    padding;
  uint32_t sharedMemoryExecuted;
};

/* CUpti_ActivityMemcpy and later. */
struct cupti_memcpy {
  uint32_t kind;
  uint8_t copyKind, srcKind, dstKind, flags;
  uint64_t bytes, start, end;
  uint32_t deviceId, contextId, streamId;
  uint32_t correlationId, runtimeCorrelationId;
};

/* CUpti_ActivityMemcpyPtoP and later. */
struct cupti_peer_copy {
  uint32_t kind;
  uint8_t copyKind, srcKind, dstKind, flags;
  uint64_t bytes, start, end;
  uint32_t deviceId, contextId, streamId;
  uint32_t srcDeviceId, srcContextId, dstDeviceId, dstContextId;
  uint32_t correlationId;
};

/* CUpti_ActivityMemset and later. */
struct cupti_memset {
  uint32_t kind;
  uint32_t value;
  uint64_t bytes, start, end;
  uint32_t deviceId, contextId, streamId;
  uint32_t correlationId;
  uint16_t flags, memoryKind;
};

/* CUpti_ActivityAPI: of the runtime and of the driver. */
struct cupti_api {
  uint32_t kind;
  uint32_t cbid;
  uint64_t start, end;
  uint32_t processId, threadId;
  uint32_t correlationId, returnValue;
};

/* CUpti_ActivitySynchronization and its successor. */
struct cupti_sync {
  uint32_t kind;
  uint32_t type;
  uint64_t start, end;
  uint32_t correlationId, contextId, streamId, cudaEventId;
};

/* CUpti_ActivityGraphTrace and its successor. */
struct cupti_graph {
  uint32_t kind;
  uint32_t correlationId;
  uint64_t start, end;
  uint32_t deviceId, graphId, contextId, streamId;
};

/* Where later members lie, by CUPTI's version; 0: this version has none. */
struct cupti_layout {
  size_t kernel_graph_node, kernel_graph, kernel_local_memory;
  size_t memcpy_graph_node, memcpy_graph, memcpy_count;
  size_t peer_graph_node, peer_graph;
  size_t memset_graph_node, memset_graph;
};

/* Numbers of the calls that bring about work on a GPU, ended by a 0. */
extern const uint32_t abi_driver_launches[], abi_runtime_launches[];

/* For a number of cuptiGetVersion. */
struct cupti_layout abi_layout(uint32_t version);

#endif
