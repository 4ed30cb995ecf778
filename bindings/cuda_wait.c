/* Waiting for devices, and destroying handles only when no work can use them any more. */
#include "bindings/cuda_parts.h"

#include "host/comms.h"
#include "host/interrupt.h"
#include "host/recorder.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <time.h>

enum wait_kind { WAIT_STREAM, WAIT_EVENT, WAIT_DEVICE };

struct wait {
  enum wait_kind kind;
  void *handle; /* of the stream or event */
  int device;   /* WAIT_DEVICE */
};

static bool is_done(struct cuda *c, const struct wait *w) {
  switch (w->kind) {
    case WAIT_STREAM: return c->api->stream_query(w->handle) != CUDA_ERROR_NOT_READY;
    case WAIT_EVENT: return c->api->event_query(w->handle) != CUDA_ERROR_NOT_READY;
    case WAIT_DEVICE: return cuda_is_idle(c, w->device);
  }
  return true;
}

enum { SPINS = 50, FIRST_PAUSE_NS = 10000, LONGEST_PAUSE_NS = 500000 };

/* At a prompt, where Ctrl-C must end a wait that nobody else will: a blocked driver cannot
   be called back. Spins at first, for most waits are short. */
static CUresult watch(struct cuda *c, const struct wait *w) {
  struct timespec pause = {.tv_nsec = FIRST_PAUSE_NS};
  for (int i = 0; !is_done(c, w); i++) {
    if (interrupt_is_asked()) return CUDA_INTERRUPTED;
    if (i < SPINS) continue;
    nanosleep(&pause, NULL);
    if (pause.tv_nsec < LONGEST_PAUSE_NS) pause.tv_nsec *= 2;
  }
  return CUDA_SUCCESS;
}

static CUresult synchronize(const struct device_api *api, const struct wait *w) {
  switch (w->kind) {
    case WAIT_STREAM: return api->stream_synchronize(w->handle);
    case WAIT_EVENT: return api->event_synchronize(w->handle);
    case WAIT_DEVICE: return api->ctx_synchronize();
  }
  return CUDA_SUCCESS;
}

/* The one place where the script's thread blocks on a device. What is known to be done is
   synchronised with all the same: the device's errors are told there. */
static CUresult block(struct cuda *c, const struct wait *w, bool is_watched,
                      const char *what) {
  recorder_wait(what);
  CUresult rc = is_watched ? watch(c, w) : CUDA_SUCCESS;
  if (!rc && w->kind == WAIT_DEVICE && is_watched) rc = cuda_use(c, w->device);
  if (!rc) rc = synchronize(c->api, w);
  recorder_wait(NULL);
  return rc;
}

static CUresult wait_stream(struct cuda *c, CUstream stream, bool is_watched,
                            const char *what) {
  const struct wait w = {.kind = WAIT_STREAM, .handle = stream};
  CUresult rc = block(c, &w, is_watched, what);
  if (!rc) recorder_complete_stream(stream);
  return rc;
}

CUresult cuda_wait_stream(struct cuda *c, CUstream stream, const char *what) {
  return wait_stream(c, stream, interrupt_is_watched(), what);
}

CUresult cuda_wait_surely(struct cuda *c, CUstream stream, const char *what) {
  return wait_stream(c, stream, false, what);
}

CUresult cuda_wait_event(struct cuda *c, CUevent event, const char *what) {
  const struct wait w = {.kind = WAIT_EVENT, .handle = event};
  return block(c, &w, interrupt_is_watched(), what);
}

CUresult cuda_wait_device(struct cuda *c, int device, const char *what) {
  CUresult rc = cuda_use(c, device);
  const struct wait w = {.kind = WAIT_DEVICE, .device = device};
  if (!rc) rc = block(c, &w, interrupt_is_watched(), what);
  if (rc) return rc;
  recorder_complete_stream(NULL);
  for (const struct stream *s = c->streams; s; s = s->next) {
    if (s->device == device) recorder_complete_stream(s->handle);
  }
  c->is_busy[device] = false;
  cuda_sweep(c);
  return cuda_use(c, device); /* the sweep may have left it */
}

void cuda_check_collectives(lua_State *L, const char *what) {
  char text[512];
  ncclResult_t rc;
  if (!comms_failed(&rc, text, sizeof text)) return;
  const char *name = comms_result_name(rc);
  luaL_error(L, "%s: a collective failed: %s: %s", what, name ? name : "?", text);
}

void cuda_check_may_wait(lua_State *L, struct cuda *c, const char *what) {
  if (c->is_capturing) {
    luaL_error(L, "%s: cannot wait for the device while a stream is being captured", what);
  }
}

void cuda_enqueued(struct cuda *c, int device) {
  if (device >= 0) {
    c->is_busy[device] = true;
    return;
  }
  for (int i = 0; i < c->count; i++) c->is_busy[i] = true;
}

static bool has_work(const struct cuda *c, CUstream stream) {
  return c->api->stream_query(stream) == CUDA_ERROR_NOT_READY;
}

static bool has_doomed_work(const struct cuda *c, int device) {
  for (size_t i = 0; i < c->doomed_count; i++) {
    const struct cuda_doomed *d = &c->doomed[i];
    if (d->device == device && d->kind == CUDA_IS_STREAM && has_work(c, d->handle.stream)) {
      return true;
    }
  }
  return false;
}

/* Asks every stream there is, open or waiting to be destroyed. A context that has failed
   reports that instead of "not ready": nothing runs in it any more. */
bool cuda_is_idle(struct cuda *c, int device) {
  if (!c->is_busy[device]) return true;
  if (cuda_use(c, device) || has_work(c, NULL)) return false;
  for (const struct stream *s = c->streams; s; s = s->next) {
    if (s->device == device && has_work(c, s->handle)) return false;
  }
  if (has_doomed_work(c, device)) return false;
  c->is_busy[device] = false;
  return true;
}

static void free_nccl(CUdeviceptr ptr) {
  struct err e;
  const struct coll_api *coll = backend_coll(&e);
  if (coll && coll->mem_free) coll->mem_free((void *)(uintptr_t)ptr);
}

static void destroy(struct cuda *c, const struct cuda_doomed *d) {
  if (cuda_use(c, d->device)) return;
  switch (d->kind) {
    case CUDA_IS_BUFFER: c->api->mem_free(d->handle.ptr); break;
    case CUDA_IS_NCCL_BUFFER: free_nccl(d->handle.ptr); break;
    case CUDA_IS_STREAM: c->api->stream_destroy(d->handle.stream); break;
    case CUDA_IS_EVENT: c->api->event_destroy(d->handle.event); break;
    case CUDA_IS_MODULE: c->api->module_unload(d->handle.module); break;
    case CUDA_IS_FOREIGN: d->fn(d->handle.data); break;
  }
  c->doomed_bytes -= d->bytes;
}

static void sweep_device(struct cuda *c, int device) {
  size_t kept = 0;
  for (size_t i = 0; i < c->doomed_count; i++) {
    const struct cuda_doomed d = c->doomed[i];
    if (d.device == device) {
      destroy(c, &d);
    } else {
      c->doomed[kept++] = d;
    }
  }
  c->doomed_count = kept;
}

void cuda_sweep(struct cuda *c) {
  if (c->holds) return;
  for (int i = 0; i < c->count && c->doomed_count; i++) {
    if (cuda_is_idle(c, i)) sweep_device(c, i);
  }
}

static bool make_room(struct cuda *c) {
  if (c->doomed_count < c->doomed_room) return true;
  size_t room = c->doomed_room ? c->doomed_room * 2 : 32;
  struct cuda_doomed *grown = realloc(c->doomed, room * sizeof *grown);
  if (!grown) return false;
  c->doomed = grown;
  c->doomed_room = room;
  return true;
}

void cuda_release(struct cuda *c, const struct cuda_doomed *doomed) {
  if (!make_room(c)) return; /* lost, which is better than freed under a kernel */
  c->doomed[c->doomed_count++] = *doomed;
  c->doomed_bytes += doomed->bytes;
  cuda_sweep(c);
}

void cuda_release_later(struct cuda *c, int device, void (*fn)(void *), void *data) {
  cuda_release(c,
               &(struct cuda_doomed){
                 .kind = CUDA_IS_FOREIGN, .device = device, .handle.data = data, .fn = fn});
}

void cuda_hold(struct cuda *c) {
  c->holds++;
}

void cuda_unhold(struct cuda *c) {
  if (c->holds > 0) c->holds--;
  cuda_sweep(c);
}
