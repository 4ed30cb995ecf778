/* Waiting for devices, and destroying handles only when no work can use them any more. */
#include "bindings/cuda_parts.h"

#include "host/comms.h"
#include "host/recorder.h"

#include <lauxlib.h>
#include <stdlib.h>

enum wait { WAIT_STREAM, WAIT_EVENT, WAIT_DEVICE };

/* The one place where the script's thread blocks on a device. */
static CUresult block(const struct device_api *api, enum wait kind, void *handle,
                      const char *what) {
  CUresult rc = CUDA_SUCCESS;
  recorder_wait(what);
  switch (kind) {
    case WAIT_STREAM: rc = api->stream_synchronize(handle); break;
    case WAIT_EVENT: rc = api->event_synchronize(handle); break;
    case WAIT_DEVICE: rc = api->ctx_synchronize(); break;
  }
  recorder_wait(NULL);
  return rc;
}

CUresult cuda_wait_stream(struct cuda *c, CUstream stream, const char *what) {
  CUresult rc = block(c->api, WAIT_STREAM, stream, what);
  if (!rc) recorder_complete_stream(stream);
  return rc;
}

CUresult cuda_wait_event(struct cuda *c, CUevent event, const char *what) {
  return block(c->api, WAIT_EVENT, event, what);
}

CUresult cuda_wait_device(struct cuda *c, int device, const char *what) {
  CUresult rc = cuda_use(c, device);
  if (!rc) rc = block(c->api, WAIT_DEVICE, NULL, what);
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
static bool is_idle(struct cuda *c, int device) {
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
    if (is_idle(c, i)) sweep_device(c, i);
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
