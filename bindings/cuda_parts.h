#ifndef BINDINGS_CUDA_PARTS_H
#define BINDINGS_CUDA_PARTS_H

/* What the files of nclua.cuda share among themselves. */

#include "bindings/cuda.h"

#define CUDA_BUFFER "cuda.buffer"
#define CUDA_STREAM "cuda.stream"
#define CUDA_EVENT "cuda.event"
#define CUDA_GRAPH "cuda.graph"
#define CUDA_KERNEL "cuda.kernel"

struct event {
  struct cuda *cuda;
  CUevent handle; /* NULL: closed */
  int device;
  bool has_timing, is_recorded;
};

enum cuda_kind {
  CUDA_IS_BUFFER,
  CUDA_IS_NCCL_BUFFER,
  CUDA_IS_STREAM,
  CUDA_IS_EVENT,
  CUDA_IS_MODULE,
  CUDA_IS_FOREIGN /* another module's */
};

/* A native handle that nothing in Lua refers to any more. */
struct cuda_doomed {
  enum cuda_kind kind;
  int device;
  size_t bytes; /* of memory */
  union {
    CUdeviceptr ptr;
    CUstream stream;
    CUevent event;
    CUmodule module;
    void *data;
  } handle;
  void (*fn)(void *data); /* CUDA_IS_FOREIGN */
};

/* Makes the state's struct, without loading a backend. */
void cuda_make_state(lua_State *L);
struct cuda *cuda_state(lua_State *L);

/* The opened state; raises if there is none. For functions that return no nil. */
struct cuda *cuda_need(lua_State *L);

/* Destroys the handle as soon as no work of its device can use it: now, or in a later
   cuda_sweep. Never blocks, so that finalizers may call it. */
void cuda_release(struct cuda *c, const struct cuda_doomed *doomed);

/* Destroys what was released and is in use no more. */
void cuda_sweep(struct cuda *c);

CUresult cuda_wait_event(struct cuda *c, CUevent event, const char *what);

/* For the rest of a call whose memory is in use until then: Ctrl-C does not end it. */
CUresult cuda_wait_surely(struct cuda *c, CUstream stream, const char *what);

/* Has the device nothing to do, in any stream? */
bool cuda_is_idle(struct cuda *c, int device);

/* cuda_use, raising. */
void cuda_enter(lua_State *L, struct cuda *c, int device, const char *what);

struct stream *cuda_checkstream(lua_State *L, int arg);
struct event *cuda_checkevent(lua_State *L, int arg);

/* One type a file; each makes its metatable. */
void cuda_buffer_type(lua_State *L);
void cuda_stream_type(lua_State *L);
void cuda_event_type(lua_State *L);
void cuda_graph_type(lua_State *L);
void cuda_kernel_type(lua_State *L);
void cuda_time_type(lua_State *L);

/* Constructors and functions of the module. */
int cuda_buffer_new(lua_State *L);
int cuda_stream_new(lua_State *L);
int cuda_event_new(lua_State *L);
int cuda_kernel_new(lua_State *L);
int cuda_time(lua_State *L);

/* stream:capture(fn) */
int cuda_graph_capture(lua_State *L);

/* What methods of a buffer at index 1 have in common. `begin` gives the stream for its
   work, with the device current; `end` takes the backend's answer and returns the buffer
   for chaining. Without a stream argument the work comes after all that the device was
   given before, and is done on return; `must_wait`: also with one, for memory of this call
   is used. */
CUstream cuda_begin(lua_State *L, const struct buffer *b, int stream_arg, const char *what);
int cuda_end(lua_State *L, const struct buffer *b, CUstream stream, const char *what,
             CUresult rc, bool must_wait);

/* Waits for what the buffer's device was given before, and makes it current. */
void cuda_settle(lua_State *L, const struct buffer *b, const char *what);

/* The bits of the number at `index`; or pushes the reason and returns false. */
bool cuda_element(lua_State *L, int index, ncclDataType_t type, uint64_t *bits);

/* Raises unless both have the same dtype and count. */
void cuda_check_alike(lua_State *L, const struct buffer *a, const struct buffer *b,
                      const char *what);

/* The methods that move or look at elements, for the buffer's method table. */
int cuda_copy_from(lua_State *L);
int cuda_data_fill(lua_State *L);
int cuda_data_pattern(lua_State *L);
int cuda_data_to_table(lua_State *L);
int cuda_data_to_string(lua_State *L);
int cuda_data_get(lua_State *L);
int cuda_data_set(lua_State *L);
int cuda_data_compare(lua_State *L);

#endif
