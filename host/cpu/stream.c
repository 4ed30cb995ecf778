#include "host/cpu/stream.h"

#include "host/cpu/capture.h"
#include "host/cpu/device.h"
#include "host/cpu/event.h"
#include "host/cpu/handle.h"

#include <stdlib.h>

static struct cpu_stream defaults[CPU_DEVICES_MAX];
static int blocking[CPU_DEVICES_MAX]; /* atomic: live streams in step with the default */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Made when first used, and never unmade. */
static CUresult find_default(struct cpu_stream **stream) {
  CUdevice device;
  const CUresult rc = cpu_device_require(&device);
  if (rc) return rc;
  struct cpu_stream *s = &defaults[device];
  *stream = s;
  if (__atomic_load_n(&s->queue, __ATOMIC_ACQUIRE)) return CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  if (!s->queue) {
    s->device = device;
    s->is_default = true;
    __atomic_store_n(&s->queue, cpu_queue_new(device, false), __ATOMIC_RELEASE);
  }
  const bool is_made = s->queue;
  pthread_mutex_unlock(&lock);
  return is_made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cpu_stream_find(CUstream handle, struct cpu_stream **stream) {
  if (!handle) return find_default(stream);
  *stream = cpu_handle_get(CPU_HANDLE_STREAM, handle);
  return *stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

bool cpu_stream_is_on(CUstream handle, CUdevice device) {
  if (!handle) return true;
  const struct cpu_stream *s = cpu_handle_get(CPU_HANDLE_STREAM, handle);
  return s && s->device == device;
}

/* The default stream cannot be captured. */
bool cpu_stream_is_capturing(CUstream handle) {
  const struct cpu_stream *s = handle ? cpu_handle_get(CPU_HANDLE_STREAM, handle) : NULL;
  return s && cpu_is_capturing(s);
}

static CUresult wait_for_blocking(struct cpu_stream *s) {
  CUresult rc = cpu_capture_check_default(s->device);
  if (rc || __atomic_load_n(&blocking[s->device], __ATOMIC_ACQUIRE) == 0) return rc;
  struct cpu_point *points;
  const int count = cpu_queue_pending(s->device, true, &points);
  if (count < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  for (int i = 0; i < count && !rc; i++) rc = cpu_queue_wait(s->queue, points[i]);
  cpu_points_free(points, count);
  return rc;
}

static CUresult wait_for_default(struct cpu_stream *s) {
  struct cpu_queue *q = __atomic_load_n(&defaults[s->device].queue, __ATOMIC_ACQUIRE);
  if (!q) return CUDA_SUCCESS;
  const uint64_t end = cpu_queue_end(q);
  if (end == __atomic_load_n(&s->default_seen, __ATOMIC_ACQUIRE)) return CUDA_SUCCESS;
  const CUresult rc = cpu_queue_wait(s->queue, (struct cpu_point){q, end});
  if (!rc) __atomic_store_n(&s->default_seen, end, __ATOMIC_RELEASE);
  return rc;
}

CUresult cpu_stream_enter(CUstream handle, struct cpu_stream **stream) {
  const CUresult rc = cpu_stream_find(handle, stream);
  if (rc) return rc;
  struct cpu_stream *s = *stream;
  if (s->is_default) return wait_for_blocking(s);
  if (s->flags & CU_STREAM_NON_BLOCKING || cpu_is_capturing(s)) return CUDA_SUCCESS;
  return wait_for_default(s);
}

CUresult cpu_stream_submit(CUstream handle, struct cpu_task *task) {
  struct cpu_stream *s;
  const CUresult rc = cpu_stream_enter(handle, &s);
  if (rc) {
    cpu_task_release(task);
    return rc;
  }
  if (cpu_is_capturing(s)) return cpu_capture_add(s, task);
  return cpu_queue_submit(s->queue, task, NULL);
}

CUresult cpu_stream_create(CUstream *stream, unsigned flags, int priority) {
  (void)priority; /* accepted, as CUDA accepts any; threads of one process share alike */
  CUdevice device;
  CUresult rc = cpu_device_require(&device);
  if (rc) return rc;
  if (!stream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  const bool is_blocking = !(flags & CU_STREAM_NON_BLOCKING);
  struct cpu_stream *s = malloc(sizeof *s);
  struct cpu_queue *q = cpu_queue_new(device, is_blocking);
  if (!s || !q) goto fail;
  *s = (struct cpu_stream){.queue = q, .device = device, .flags = flags};
  *stream = cpu_handle_new(CPU_HANDLE_STREAM, s);
  if (!*stream) goto fail;
  if (is_blocking) __atomic_fetch_add(&blocking[device], 1, __ATOMIC_ACQ_REL);
  return CUDA_SUCCESS;
fail:
  if (q) cpu_queue_close(q);
  free(s);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

/* What is queued still runs, without the handle. */
CUresult cpu_stream_destroy(CUstream handle) {
  struct cpu_stream *s = cpu_handle_take(CPU_HANDLE_STREAM, handle);
  if (!s) return CUDA_ERROR_INVALID_HANDLE;
  cpu_capture_leave(s);
  /* Still counted while it has work: the default stream must go on waiting for it. */
  const bool is_idle = cpu_queue_reached(s->queue, cpu_queue_end(s->queue));
  if (is_idle && !(s->flags & CU_STREAM_NON_BLOCKING)) {
    __atomic_fetch_sub(&blocking[s->device], 1, __ATOMIC_ACQ_REL);
  }
  cpu_queue_close(s->queue);
  free(s->frontier.list);
  free(s);
  return CUDA_SUCCESS;
}

static CUresult drain_device(CUdevice device, bool blocking_only) {
  struct cpu_point *points;
  const int count = cpu_queue_pending(device, blocking_only, &points);
  if (count < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  /* All begin before the first is waited for: they may depend on each other. */
  for (int i = 0; i < count; i++) cpu_queue_nudge(points[i].queue);
  for (int i = 0; i < count; i++) cpu_queue_drive(points[i].queue, points[i].number);
  cpu_points_free(points, count);
  return CUDA_SUCCESS;
}

CUresult cpu_stream_drain(struct cpu_stream *s) {
  if (s->is_default && __atomic_load_n(&blocking[s->device], __ATOMIC_ACQUIRE)) {
    const CUresult rc = drain_device(s->device, true);
    if (rc) return rc;
  }
  cpu_queue_drive(s->queue, cpu_queue_end(s->queue));
  return CUDA_SUCCESS;
}

CUresult cpu_stream_synchronize(CUstream handle) {
  struct cpu_stream *s;
  CUresult rc = cpu_stream_find(handle, &s);
  if (!rc) rc = cpu_capture_check_sync(s);
  return rc ? rc : cpu_stream_drain(s);
}

CUresult cpu_stream_query(CUstream handle) {
  struct cpu_stream *s;
  CUresult rc = cpu_stream_find(handle, &s);
  if (!rc) rc = cpu_capture_check_sync(s);
  if (rc || cpu_queue_reached(s->queue, cpu_queue_end(s->queue))) return rc;
  cpu_queue_nudge(s->queue);
  return CUDA_ERROR_NOT_READY;
}

CUresult cpu_stream_wait_event(CUstream handle, CUevent event, unsigned flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  struct cpu_stream *s;
  const CUresult rc = cpu_stream_enter(handle, &s);
  return rc ? rc : cpu_event_join(event, s);
}

CUresult cpu_stream_priorities(int *least, int *greatest) {
  CUdevice device;
  const CUresult rc = cpu_device_require(&device);
  if (rc) return rc;
  if (least) *least = 0;
  if (greatest) *greatest = -5; /* as on a GPU of today */
  return CUDA_SUCCESS;
}

CUresult cpu_ctx_synchronize(void) {
  CUdevice device;
  CUresult rc = cpu_device_require(&device);
  if (!rc) rc = cpu_capture_check_unsafe();
  return rc ? rc : drain_device(device, false);
}
