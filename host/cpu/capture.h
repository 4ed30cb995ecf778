#ifndef HOST_CPU_CAPTURE_H
#define HOST_CPU_CAPTURE_H

/* Streams as the parts of the backend see them, and what is captured from them: a graph of
   tasks, where every stream in the capture has a frontier, the nodes its next task follows.
   An event recorded in a capture carries a frontier to other streams. */

#include "host/cpu/queue.h"

#include <pthread.h>

struct cpu_capture;

/* Nodes of a graph, by number. */
struct cpu_nodes {
  int *list;
  int count, room;
};

struct cpu_stream {
  struct cpu_queue *queue;
  CUdevice device;
  unsigned flags;
  bool is_default;
  uint64_t default_seen;       /* atomic: place in the default stream already waited for */
  struct cpu_capture *capture; /* atomic; changes under the captures' lock */
  struct cpu_nodes frontier;
  struct cpu_stream *next_captured;
};

/* NULL stands for the current device's default stream. CUDA_ERROR_INVALID_HANDLE if the
   handle is dead; nothing else is checked. */
CUresult cpu_stream_find(CUstream handle, struct cpu_stream **stream);

/* The same for a stream that is going to be given work: keeps blocking streams and the
   default stream in step, and refuses what a capture forbids. */
CUresult cpu_stream_enter(CUstream handle, struct cpu_stream **stream);

/* Waits for all that is in the stream (and, for the default stream, in the blocking ones).
 */
CUresult cpu_stream_drain(struct cpu_stream *stream);

/* Where a captured event was recorded. */
struct cpu_mark {
  struct cpu_capture *capture; /* a reference, NULL if none */
  struct cpu_nodes frontier;
};

void cpu_mark_clear(struct cpu_mark *mark);

bool cpu_is_capturing(const struct cpu_stream *stream);

/* Adds a task to the graph; owns one reference of it. */
CUresult cpu_capture_add(struct cpu_stream *stream, struct cpu_task *task);

/* What an event recorded now stands for; clears the mark first. */
CUresult cpu_capture_record(struct cpu_stream *stream, struct cpu_mark *mark);

/* The stream waits for a mark, which may bring it into the mark's capture. A mark without
   capture stands for work outside of the one that `stream` is in. */
CUresult cpu_capture_wait(struct cpu_stream *stream, const struct cpu_mark *mark);

/* Why an event with this mark cannot be asked for its state; a capture that is under way
   is invalidated if so wished. */
CUresult cpu_capture_check_mark(const struct cpu_mark *mark, bool invalidates);

/* A call that captures of this thread, or global ones, forbid: invalidates them. */
CUresult cpu_capture_check_unsafe(void);

/* A synchronising call on this stream: if it is capturing, invalidates the capture. */
CUresult cpu_capture_check_sync(struct cpu_stream *stream);

/* Work for the default stream: what captures of blocking streams of the device forbid. */
CUresult cpu_capture_check_default(CUdevice device);

/* The stream is going away. */
void cpu_capture_leave(struct cpu_stream *stream);

#endif
