#ifndef BINDINGS_CUDA_H
#define BINDINGS_CUDA_H

/* The handles of nclua.cuda, and what a module that works on them (nclua.nccl) needs:
   checks, the current device, deferred release, captures. */

#include "bindings/bind.h"
#include "host/backend.h"

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

enum { CUDA_MOST_DEVICES = 64, CUDA_TIMERS = 16 };

struct cuda_doomed;

/* A pair of events, waiting to time something. */
struct cuda_timer {
  CUevent start, end;
  int device;
};

/* What a Lua state knows of the backend; one a state, alive until the last finalizer. */
struct cuda {
  const struct device_api *api; /* NULL until something needed a device */
  int count;                    /* devices */
  int chosen;                   /* by cuda.set_device: where new handles live */
  int current;                  /* the device whose context this thread has; -1: unknown */
  CUcontext contexts[CUDA_MOST_DEVICES]; /* NULL: not retained yet */
  bool is_busy[CUDA_MOST_DEVICES];       /* something was enqueued since the last wait */
  uint64_t epoch; /* changes whenever a buffer, slice or stream is made or closed */
  int holds;      /* captures and groups that run */
  bool is_capturing, is_spoiled;
  int range_depth;
  struct stream *streams; /* the open ones, doubly linked */
  struct cuda_doomed *doomed;
  size_t doomed_count, doomed_room, doomed_bytes;
  struct cuda_timer timers[CUDA_TIMERS];
  int timer_count;
};

/* What another module made of a buffer's memory, and must undo before that is freed. */
struct cuda_tie {
  struct cuda_tie *next, **link;      /* link NULL: in no list */
  void (*undo)(struct cuda_tie *tie); /* the buffer is closing; it is untied already */
};

/* A buffer, or a slice of one: then `owner` is the buffer, kept alive by user value 1. */
struct buffer {
  const struct bind_tag *tag;
  struct cuda *cuda;
  struct buffer *owner;
  CUdeviceptr ptr; /* 0: closed */
  size_t count, bytes;
  ncclDataType_t type;
  int device;
  bool is_nccl;          /* allocated by ncclMemAlloc */
  struct cuda_tie *ties; /* of a buffer, not of a slice */
};

struct stream {
  const struct bind_tag *tag;
  struct cuda *cuda;
  CUstream handle; /* NULL: closed */
  int device;
  struct stream *previous, *next;
};

/* The module's opener. nclua.nccl opens it first:
   luaL_requiref(L, "nclua.cuda", luaopen_nclua_cuda, 0); lua_pop(L, 1); */
int luaopen_nclua_cuda(lua_State *L);

/* The state's struct with the backend loaded and devices counted, or NULL with *e filled.
 */
struct cuda *cuda_open(lua_State *L, struct err *e);

/* Makes the device's primary context this thread's current one, retaining it at first. One
   comparison if it is so already. Whatever allocates in Lua may run a finalizer, which may
   close any handle and leave another device current: check handles and call this after the
   last allocation, just before the backend. */
CUresult cuda_use(struct cuda *c, int device);

/* After a call into NCCL that may have changed the thread's device (comm_init_all). */
void cuda_forget_current(struct cuda *c);

/* Something is in a stream of this device (-1: of any device). To be called after each
   enqueueing call and after group_end: closed memory is not freed while a device is busy.
 */
void cuda_enqueued(struct cuda *c, int device);

/* Between hold and unhold nothing that is closed or collected is destroyed: a group has
   calls pending that are in no stream yet. Holds nest. */
void cuda_hold(struct cuda *c);
void cuda_unhold(struct cuda *c);

/* Calls fn(data) as soon as no work of the device can use what it frees: now or later, but
   before memory that is closed afterwards is freed. Never blocks. */
void cuda_release_later(struct cuda *c, int device, void (*fn)(void *), void *data);

void cuda_tie(struct buffer *b, struct cuda_tie *tie);
void cuda_untie(struct cuda_tie *tie);

/* Every blocking wait goes through these two, which tell the flight recorder; `what` is a
   static string such as "stream:sync". The device: for all of its streams. */
CUresult cuda_wait_stream(struct cuda *c, CUstream stream, const char *what);
CUresult cuda_wait_device(struct cuda *c, int device, const char *what);

/* The answer of a wait that Ctrl-C ended; no result of the driver is negative. */
enum { CUDA_INTERRUPTED = -1 };

/* After a wait: raises "WHAT: a collective failed: why" if a communicator has an error of
   its own. The stream says nothing of it: the data would be taken for a result. */
void cuda_check_collectives(lua_State *L, const char *what);

/* Raises if a capture runs: waiting in one would invalidate it. */
void cuda_check_may_wait(lua_State *L, struct cuda *c, const char *what);

/* Failures: raises "WHAT: CUDA_ERROR_X: sentence"; or returns nil, that message, code. */
int cuda_raise(lua_State *L, const struct cuda *c, const char *what, CUresult rc);
int cuda_fail(lua_State *L, const struct cuda *c, const char *what, CUresult rc);

/* An open buffer or slice whose buffer is open; else raises. */
struct buffer *cuda_checkbuffer(lua_State *L, int arg);

/* An optional stream: NULL for none or nil, the device's default stream. Raises if it is
   closed or belongs to another device. */
CUstream cuda_optstream(lua_State *L, int arg, int device);

/* A number argument as the bits of one element; raises if it does not fit in the type. */
uint64_t cuda_checkelement(lua_State *L, int arg, ncclDataType_t type);

/* Captures. The graph that a capture makes owns what took part in it: it keeps those
   objects alive, and closing one of them closes the graph.
   - each enqueueing call notes what it uses: the communicator (arg is any stack index), and
     each buffer. Without a capture this is one comparison;
   - the closing function of a noted type calls cuda_close_graphs BEFORE it releases
     anything (on hardware, destroying a communicator whose graph lives never returns). */
void cuda_capture_note(lua_State *L, struct cuda *c, int arg);

void cuda_close_graphs(lua_State *L, struct cuda *c, int arg);

#endif
