#include "host/cpu/capture.h"

#include "host/cpu/device.h"
#include "host/cpu/graph.h"
#include "host/cpu/handle.h"

#include <stdlib.h>

struct cpu_capture {
  int references;          /* under the lock: the list below, and marks */
  struct cpu_graph *graph; /* NULL once the capture is over */
  bool is_invalid;
  int mode;
  pthread_t thread;
  struct cpu_stream *origin;
  struct cpu_stream *streams; /* all that are in it, the origin too */
  struct cpu_nodes orphans;   /* the frontiers of streams that were destroyed in it */
  struct cpu_capture *next;
};

/* Captures are rare and short: one lock for all. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cpu_capture *captures; /* under way */
static int capture_count;            /* atomic: how many */

static void release(struct cpu_capture *c) {
  if (--c->references > 0) return;
  cpu_nodes_clear(&c->orphans);
  free(c);
}

static void mark_clear(struct cpu_mark *mark) {
  if (mark->capture) release(mark->capture);
  mark->capture = NULL;
  cpu_nodes_clear(&mark->frontier);
}

void cpu_mark_clear(struct cpu_mark *mark) {
  if (!mark->capture) return;
  pthread_mutex_lock(&lock);
  mark_clear(mark);
  pthread_mutex_unlock(&lock);
}

bool cpu_is_capturing(const struct cpu_stream *s) {
  return __atomic_load_n(&s->capture, __ATOMIC_ACQUIRE) != NULL;
}

static void join(struct cpu_capture *c, struct cpu_stream *s) {
  s->frontier.count = 0;
  s->next_captured = c->streams;
  c->streams = s;
  __atomic_store_n(&s->capture, c, __ATOMIC_RELEASE);
}

/* All its streams are ordinary ones again. */
static void end(struct cpu_capture *c) {
  for (struct cpu_stream *s = c->streams; s; s = s->next_captured) {
    __atomic_store_n(&s->capture, NULL, __ATOMIC_RELEASE);
  }
  struct cpu_capture **link = &captures;
  while (*link != c) link = &(*link)->next;
  *link = c->next;
  __atomic_fetch_sub(&capture_count, 1, __ATOMIC_RELEASE);
  c->streams = NULL;
  c->graph = NULL;
  release(c);
}

static CUresult begin(struct cpu_stream *s, int mode) {
  if (s->capture) return CUDA_ERROR_ILLEGAL_STATE;
  struct cpu_capture *c = malloc(sizeof *c);
  struct cpu_graph *graph = cpu_graph_new();
  if (!c || !graph) {
    free(c);
    cpu_graph_free(graph);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *c = (struct cpu_capture){.references = 1, .graph = graph, .mode = mode, .origin = s};
  c->thread = pthread_self();
  c->next = captures;
  captures = c;
  __atomic_fetch_add(&capture_count, 1, __ATOMIC_RELEASE);
  join(c, s);
  return CUDA_SUCCESS;
}

CUresult cpu_capture_begin(CUstream stream, int mode) {
  struct cpu_stream *s;
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult rc = cpu_stream_find(stream, &s);
  if (rc) return rc;
  if (s->is_default) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  pthread_mutex_lock(&lock);
  rc = begin(s, mode);
  pthread_mutex_unlock(&lock);
  return rc;
}

/* Every stream's work must have come back to the origin. */
static CUresult check_joined(const struct cpu_capture *c) {
  int covers = cpu_graph_covers(c->graph, &c->origin->frontier, &c->orphans);
  for (struct cpu_stream *s = c->streams; s && covers > 0; s = s->next_captured) {
    covers = cpu_graph_covers(c->graph, &c->origin->frontier, &s->frontier);
  }
  if (covers < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  return covers ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

static CUresult invalidate(struct cpu_capture *c, CUresult why) {
  c->is_invalid = true;
  return why;
}

/* Whatever is wrong with it, the capture is over afterwards, unless the call was not for
   this stream or thread. */
static CUresult finish(struct cpu_stream *s, struct cpu_graph **graph) {
  struct cpu_capture *c = s->capture;
  if (!c) return CUDA_ERROR_ILLEGAL_STATE;
  if (c->origin != s) return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      !pthread_equal(c->thread, pthread_self())) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  const CUresult rc =
    c->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : check_joined(c);
  *graph = c->graph;
  end(c);
  return rc;
}

CUresult cpu_capture_end(CUstream stream, CUgraph *handle) {
  struct cpu_stream *s;
  struct cpu_graph *graph = NULL;
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  *handle = NULL;
  CUresult rc = cpu_stream_find(stream, &s);
  if (rc) return rc;
  pthread_mutex_lock(&lock);
  rc = finish(s, &graph);
  pthread_mutex_unlock(&lock);
  if (!rc) {
    *handle = cpu_handle_new(CPU_HANDLE_GRAPH, graph);
    if (*handle) return CUDA_SUCCESS;
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  }
  cpu_graph_free(graph);
  return rc;
}

static CUresult add(struct cpu_stream *s, struct cpu_task *task) {
  struct cpu_capture *c = s->capture;
  if (!c) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED; /* ended by another thread */
  if (c->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  const int node = cpu_graph_add(c->graph, task, &s->frontier);
  if (node >= 0 && cpu_nodes_set(&s->frontier, node)) return CUDA_SUCCESS;
  c->is_invalid = true;
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cpu_capture_add(struct cpu_stream *s, struct cpu_task *task) {
  pthread_mutex_lock(&lock);
  const CUresult rc = add(s, task);
  pthread_mutex_unlock(&lock);
  cpu_task_release(task); /* the graph has its own reference */
  return rc;
}

static CUresult record(struct cpu_stream *s, struct cpu_mark *mark) {
  struct cpu_capture *c = s->capture;
  if (!c || c->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  mark_clear(mark);
  if (!cpu_nodes_merge(&mark->frontier, &s->frontier)) return CUDA_ERROR_OUT_OF_MEMORY;
  mark->capture = c;
  c->references++;
  return CUDA_SUCCESS;
}

CUresult cpu_capture_record(struct cpu_stream *s, struct cpu_mark *mark) {
  pthread_mutex_lock(&lock);
  const CUresult rc = record(s, mark);
  pthread_mutex_unlock(&lock);
  return rc;
}

static CUresult wait(struct cpu_stream *s, const struct cpu_mark *mark) {
  struct cpu_capture *c = mark->capture;
  if (!c) return invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (!c->graph) {
    return s->capture ? invalidate(s->capture, CUDA_ERROR_INVALID_VALUE)
                      : CUDA_ERROR_INVALID_VALUE;
  }
  if (c->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (s->is_default) return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (s->capture && s->capture != c) {
    s->capture->is_invalid = true;
    return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  if (!s->capture) join(c, s);
  if (cpu_nodes_merge(&s->frontier, &mark->frontier)) return CUDA_SUCCESS;
  return invalidate(c, CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cpu_capture_wait(struct cpu_stream *s, const struct cpu_mark *mark) {
  pthread_mutex_lock(&lock);
  const CUresult rc = mark->capture || s->capture ? wait(s, mark) : CUDA_SUCCESS;
  pthread_mutex_unlock(&lock);
  return rc;
}

CUresult cpu_capture_check_mark(const struct cpu_mark *mark, bool invalidates) {
  struct cpu_capture *c = mark->capture;
  if (!c) return CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  const bool is_over = !c->graph;
  if (!is_over && invalidates) c->is_invalid = true;
  pthread_mutex_unlock(&lock);
  return is_over ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_CAPTURED_EVENT;
}

CUresult cpu_capture_check_unsafe(void) {
  if (__atomic_load_n(&capture_count, __ATOMIC_ACQUIRE) == 0) return CUDA_SUCCESS;
  CUresult rc = CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  for (struct cpu_capture *c = captures; c; c = c->next) {
    const bool is_mine = pthread_equal(c->thread, pthread_self());
    if (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
        (c->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && is_mine)) {
      rc = invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
  }
  pthread_mutex_unlock(&lock);
  return rc;
}

CUresult cpu_capture_check_sync(struct cpu_stream *s) {
  const CUresult rc = cpu_capture_check_unsafe();
  if (!cpu_is_capturing(s)) return rc;
  pthread_mutex_lock(&lock);
  if (s->capture) s->capture->is_invalid = true;
  pthread_mutex_unlock(&lock);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static bool has_blocking(const struct cpu_capture *c, CUdevice device) {
  for (const struct cpu_stream *s = c->streams; s; s = s->next_captured) {
    if (s->device == device && !(s->flags & CU_STREAM_NON_BLOCKING)) return true;
  }
  return false;
}

CUresult cpu_capture_check_default(CUdevice device) {
  if (__atomic_load_n(&capture_count, __ATOMIC_ACQUIRE) == 0) return CUDA_SUCCESS;
  CUresult rc = CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  for (struct cpu_capture *c = captures; c; c = c->next) {
    if (!has_blocking(c, device)) continue;
    rc = invalidate(c, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  pthread_mutex_unlock(&lock);
  return rc;
}

/* A destroyed origin takes the capture with it; another stream leaves its work in it. */
void cpu_capture_leave(struct cpu_stream *s) {
  struct cpu_graph *orphan = NULL;
  pthread_mutex_lock(&lock);
  struct cpu_capture *c = s->capture;
  if (c && c->origin == s) {
    orphan = c->graph;
    end(c);
  } else if (c) {
    struct cpu_stream **link = &c->streams;
    while (*link != s) link = &(*link)->next_captured;
    *link = s->next_captured;
    if (!cpu_nodes_merge(&c->orphans, &s->frontier)) c->is_invalid = true;
  }
  pthread_mutex_unlock(&lock);
  cpu_graph_free(orphan);
}
