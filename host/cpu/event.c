#include "host/cpu/event.h"

#include "host/cpu/device.h"
#include "host/cpu/gate.h"
#include "host/cpu/handle.h"

#include <stdlib.h>

/* An event is the place in a queue where it was recorded last, or a mark in a capture. */
struct event {
  pthread_mutex_t lock; /* outside of a queue's lock */
  int references;       /* atomic: the handle, and records under way */
  unsigned flags;
  CUdevice device;
  uint64_t records;       /* tells a record from those that it replaced */
  struct cpu_point point; /* queue NULL: never recorded, or in a capture */
  struct cpu_mark mark;
  int64_t time_ns; /* of the latest record, once its place is reached */
};

static void release(struct event *ev) {
  if (__atomic_fetch_sub(&ev->references, 1, __ATOMIC_ACQ_REL) != 1) return;
  if (ev->point.queue) cpu_queue_release(ev->point.queue);
  cpu_mark_clear(&ev->mark);
  pthread_mutex_destroy(&ev->lock);
  free(ev);
}

static struct event *find(CUevent handle) {
  return cpu_handle_get(CPU_HANDLE_EVENT, handle);
}

CUresult cpu_event_create(CUevent *event, unsigned flags) {
  CUdevice device;
  const CUresult rc = cpu_device_require(&device);
  if (rc) return rc;
  const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
  if (!event || flags & ~known) return CUDA_ERROR_INVALID_VALUE;
  struct event *ev = malloc(sizeof *ev);
  if (!ev) return CUDA_ERROR_OUT_OF_MEMORY;
  *ev = (struct event){.references = 1, .flags = flags, .device = device};
  pthread_mutex_init(&ev->lock, NULL);
  *event = cpu_handle_new(CPU_HANDLE_EVENT, ev);
  if (*event) return CUDA_SUCCESS;
  release(ev);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cpu_event_destroy(CUevent event) {
  struct event *ev = cpu_handle_take(CPU_HANDLE_EVENT, event);
  if (!ev) return CUDA_ERROR_INVALID_HANDLE;
  release(ev);
  return CUDA_SUCCESS;
}

/* On the stream's thread. */
static void stamp(void *what, uint64_t record) {
  struct event *ev = what;
  const int64_t now_ns = cpu_now_ns();
  pthread_mutex_lock(&ev->lock);
  if (ev->records == record) ev->time_ns = now_ns;
  pthread_mutex_unlock(&ev->lock);
  release(ev);
}

static CUresult record(struct event *ev, struct cpu_queue *queue) {
  uint64_t number;
  __atomic_fetch_add(&ev->references, 1, __ATOMIC_RELAXED);
  const struct cpu_item item = {stamp, ev, ev->records + 1};
  const CUresult rc = cpu_queue_push(queue, item, &number);
  if (rc) {
    __atomic_fetch_sub(&ev->references, 1, __ATOMIC_RELAXED);
    return rc;
  }
  ev->records++;
  cpu_mark_clear(&ev->mark);
  if (ev->point.queue) cpu_queue_release(ev->point.queue);
  ev->point = (struct cpu_point){cpu_queue_retain(queue), number};
  return CUDA_SUCCESS;
}

static CUresult record_captured(struct event *ev, struct cpu_stream *stream) {
  const CUresult rc = cpu_capture_record(stream, &ev->mark);
  if (rc) return rc;
  ev->records++;
  if (ev->point.queue) cpu_queue_release(ev->point.queue);
  ev->point = (struct cpu_point){0};
  return CUDA_SUCCESS;
}

CUresult cpu_event_record(CUevent event, CUstream stream) {
  struct cpu_stream *s;
  struct event *ev = find(event);
  if (!ev) return CUDA_ERROR_INVALID_HANDLE;
  CUresult rc = cpu_stream_enter(stream, &s);
  if (rc) return rc;
  if (s->device != ev->device) return CUDA_ERROR_INVALID_HANDLE;
  pthread_mutex_lock(&ev->lock);
  rc = cpu_is_capturing(s) ? record_captured(ev, s) : record(ev, s->queue);
  pthread_mutex_unlock(&ev->lock);
  return rc;
}

/* The place to wait for, with a reference to its queue; queue NULL if there is none. */
static CUresult take_point(CUevent event, struct cpu_point *point) {
  struct event *ev = find(event);
  if (!ev) return CUDA_ERROR_INVALID_HANDLE;
  pthread_mutex_lock(&ev->lock);
  CUresult rc = cpu_capture_check_mark(&ev->mark, true);
  if (!rc) rc = cpu_capture_check_unsafe();
  *point = rc ? (struct cpu_point){0} : ev->point;
  if (point->queue) cpu_queue_retain(point->queue);
  pthread_mutex_unlock(&ev->lock);
  return rc;
}

CUresult cpu_event_query(CUevent event) {
  struct cpu_point point;
  const CUresult rc = take_point(event, &point);
  if (rc || !point.queue) return rc;
  const bool is_reached = cpu_queue_reached(point.queue, point.number);
  if (!is_reached) cpu_queue_nudge(point.queue);
  cpu_queue_release(point.queue);
  return is_reached ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cpu_event_synchronize(CUevent event) {
  struct cpu_point point;
  const CUresult rc = take_point(event, &point);
  if (rc || !point.queue) return rc;
  cpu_queue_drive(point.queue, point.number);
  cpu_queue_release(point.queue);
  return CUDA_SUCCESS;
}

CUresult cpu_event_join(CUevent event, struct cpu_stream *stream) {
  struct event *ev = find(event);
  if (!ev) return CUDA_ERROR_INVALID_HANDLE;
  CUresult rc = CUDA_SUCCESS;
  pthread_mutex_lock(&ev->lock);
  if (ev->mark.capture || cpu_is_capturing(stream)) {
    if (ev->records) rc = cpu_capture_wait(stream, &ev->mark);
  } else if (ev->point.queue) {
    rc = cpu_queue_wait(stream->queue, ev->point);
  }
  pthread_mutex_unlock(&ev->lock);
  return rc;
}

static CUresult read_time(CUevent event, int64_t *time_ns, CUdevice *device) {
  struct event *ev = find(event);
  if (!ev) return CUDA_ERROR_INVALID_HANDLE;
  pthread_mutex_lock(&ev->lock);
  CUresult rc = cpu_capture_check_mark(&ev->mark, false);
  if (rc) {
    /* as it says */
  } else if (ev->flags & CU_EVENT_DISABLE_TIMING || !ev->point.queue) {
    rc = CUDA_ERROR_INVALID_HANDLE;
  } else if (!cpu_queue_reached(ev->point.queue, ev->point.number)) {
    rc = CUDA_ERROR_NOT_READY;
    cpu_queue_nudge(ev->point.queue);
  }
  *time_ns = ev->time_ns;
  *device = ev->device;
  pthread_mutex_unlock(&ev->lock);
  return rc;
}

CUresult cpu_event_elapsed(float *milliseconds, CUevent start, CUevent end) {
  int64_t from_ns, to_ns;
  CUdevice from, to;
  if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
  const CUresult first = read_time(start, &from_ns, &from);
  const CUresult second = read_time(end, &to_ns, &to);
  if (first && first != CUDA_ERROR_NOT_READY) return first;
  if (second) return second;
  if (first) return first;
  if (from != to) return CUDA_ERROR_INVALID_HANDLE;
  *milliseconds = (float)((double)(to_ns - from_ns) / 1e6);
  return CUDA_SUCCESS;
}
