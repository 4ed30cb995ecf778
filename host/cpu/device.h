#ifndef HOST_CPU_DEVICE_H
#define HOST_CPU_DEVICE_H

/* The virtual devices, what the table `cpu_device` is made of, and how its parts find each
   other. Each part is one file that fills its own members' functions. */

#include "host/cpu/queue.h"

enum { CPU_DEVICES_MAX = 64 };

/* How many there are: NCLUA_CPU_DEVICES, default 8. */
int cpu_device_count(void);

/* CUDA_SUCCESS, or why this thread may not use its current device; *device is set. */
CUresult cpu_device_require(CUdevice *device);

/* describe.c */
CUresult cpu_device_get_name(char *name, int bytes, CUdevice device);
CUresult cpu_device_get_uuid(CUuuid *uuid, CUdevice device);
CUresult cpu_device_get_attribute(int *value, int attribute, CUdevice device);
CUresult cpu_device_get_pci_bus_id(char *id, int bytes, CUdevice device);
CUresult cpu_error_name(CUresult rc, const char **name);
CUresult cpu_error_string(CUresult rc, const char **text);

/* memory.c */
CUresult cpu_mem_total(size_t *bytes, CUdevice device);
CUresult cpu_mem_get_info(size_t *free_bytes, size_t *total_bytes);
CUresult cpu_mem_alloc(CUdeviceptr *ptr, size_t bytes);
CUresult cpu_mem_free(CUdeviceptr ptr);
CUresult cpu_mem_host_alloc(void **ptr, size_t bytes, unsigned flags);
CUresult cpu_mem_free_host(void *ptr);

/* Does [ptr, ptr + bytes) lie within one live allocation? */
bool cpu_mem_is_valid(CUdeviceptr ptr, size_t bytes);

/* copy.c */
CUresult cpu_memcpy_htod(CUdeviceptr dst, const void *src, size_t bytes);
CUresult cpu_memcpy_dtoh(void *dst, CUdeviceptr src, size_t bytes);
CUresult cpu_memcpy_htod_async(CUdeviceptr dst, const void *src, size_t bytes,
                               CUstream stream);
CUresult cpu_memcpy_dtoh_async(void *dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cpu_memcpy_dtod_async(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                               CUstream stream);
CUresult cpu_memset_d8_async(CUdeviceptr dst, unsigned char value, size_t count,
                             CUstream stream);
CUresult cpu_fill(CUdeviceptr dst, size_t count, size_t element_bytes, uint64_t bits,
                  CUstream stream);
CUresult cpu_spin(unsigned microseconds, CUstream stream);

/* Repeats the first `laid` bytes of dst up to `bytes`. */
void cpu_repeat(unsigned char *dst, size_t laid, size_t bytes);

/* pattern.c */
CUresult cpu_fill_pattern(CUdeviceptr dst, size_t count, ncclDataType_t type,
                          const struct pattern *p, CUstream stream);
CUresult cpu_compare(const struct compare *what, struct mismatch *out, CUstream stream);

/* stream.c */
CUresult cpu_stream_create(CUstream *stream, unsigned flags, int priority);
CUresult cpu_stream_destroy(CUstream stream);
CUresult cpu_stream_synchronize(CUstream stream);
CUresult cpu_stream_query(CUstream stream);
CUresult cpu_stream_wait_event(CUstream stream, CUevent event, unsigned flags);
CUresult cpu_stream_priorities(int *least, int *greatest);
CUresult cpu_ctx_synchronize(void);

/* event.c */
CUresult cpu_event_create(CUevent *event, unsigned flags);
CUresult cpu_event_destroy(CUevent event);
CUresult cpu_event_record(CUevent event, CUstream stream);
CUresult cpu_event_query(CUevent event);
CUresult cpu_event_synchronize(CUevent event);
CUresult cpu_event_elapsed(float *milliseconds, CUevent start, CUevent end);

/* capture.c, graph.c */
CUresult cpu_capture_begin(CUstream stream, int mode);
CUresult cpu_capture_end(CUstream stream, CUgraph *graph);
CUresult cpu_graph_instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
CUresult cpu_graph_launch(CUgraphExec exec, CUstream stream);
CUresult cpu_graph_exec_destroy(CUgraphExec exec);
CUresult cpu_graph_destroy(CUgraph graph);

#endif
