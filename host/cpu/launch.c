/* Executable graphs. A graph's nodes are spread over lanes: a lane is a queue, the first is
   the stream that the graph is launched on, so that branches run side by side. */

#include "host/cpu/device.h"
#include "host/cpu/graph.h"
#include "host/cpu/handle.h"
#include "host/cpu/traced.h"

#include <stdlib.h>

enum { LANES_MAX = 16 };

struct exec {
  pthread_mutex_t lock; /* launches, which share the arrays below */
  struct cpu_graph *graph;
  int *lane;        /* of each node */
  uint64_t *number; /* of each node, in its lane's queue, for the launch under way */
  int lanes;
  struct cpu_queue *queues[LANES_MAX]; /* the first is the stream's, while launching */
  struct cpu_point last;               /* the end of the latest launch; queue NULL: none */
};

/* A node follows its predecessor in that one's lane, unless another node does already. */
static int choose_lane(struct exec *x, int node, int *ends) {
  const struct cpu_nodes *after = &x->graph->nodes[node].after;
  for (int i = 0; i < after->count; i++) {
    const int lane = x->lane[after->list[i]];
    if (ends[lane] == after->list[i]) return lane;
  }
  if (x->lanes < LANES_MAX) return x->lanes++;
  return node % LANES_MAX;
}

static void assign_lanes(struct exec *x) {
  int ends[LANES_MAX] = {0};
  for (int node = 0; node < x->graph->count; node++) {
    x->lane[node] = choose_lane(x, node, ends);
    ends[x->lane[node]] = node;
  }
}

static struct cpu_graph *copy_graph(const struct cpu_graph *from) {
  struct cpu_graph *graph = cpu_graph_new();
  for (int i = 0; graph && i < from->count; i++) {
    if (cpu_graph_add(graph, from->nodes[i].task, &from->nodes[i].after) >= 0) continue;
    cpu_graph_free(graph);
    return NULL;
  }
  return graph;
}

static void destroy(struct exec *x) {
  for (int lane = 1; lane < x->lanes; lane++) {
    if (x->queues[lane]) cpu_queue_close(x->queues[lane]);
  }
  if (x->last.queue) cpu_queue_release(x->last.queue);
  cpu_graph_free(x->graph);
  free(x->lane);
  free(x->number);
  pthread_mutex_destroy(&x->lock);
  free(x);
}

static bool prepare(struct exec *x, const struct cpu_graph *graph, CUdevice device) {
  const size_t count = (size_t)graph->count + 1;
  x->graph = copy_graph(graph);
  x->lane = malloc(count * sizeof *x->lane);
  x->number = malloc(count * sizeof *x->number);
  if (!x->graph || !x->lane || !x->number) return false;
  assign_lanes(x);
  for (int lane = 1; lane < x->lanes; lane++) {
    x->queues[lane] = cpu_queue_new(device, false);
    if (!x->queues[lane]) return false;
  }
  return true;
}

CUresult cpu_graph_instantiate(CUgraphExec *exec, CUgraph handle,
                               unsigned long long flags) {
  (void)flags; /* they concern device memory nodes and uploads */
  CUdevice device;
  CUresult rc = cpu_device_require(&device);
  if (!rc) rc = cpu_capture_check_unsafe();
  if (rc) return rc;
  const struct cpu_graph *graph = cpu_handle_get(CPU_HANDLE_GRAPH, handle);
  if (!graph || !exec) return CUDA_ERROR_INVALID_VALUE;
  struct exec *x = calloc(1, sizeof *x);
  if (!x) return CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_init(&x->lock, NULL);
  *exec = prepare(x, graph, device) ? cpu_handle_new(CPU_HANDLE_EXEC, x) : NULL;
  if (*exec) return CUDA_SUCCESS;
  destroy(x);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult launch_node(struct exec *x, int node) {
  const struct cpu_node *n = &x->graph->nodes[node];
  struct cpu_queue *queue = x->queues[x->lane[node]];
  for (int i = 0; i < n->after.count; i++) {
    const int other = n->after.list[i];
    const struct cpu_point point = {x->queues[x->lane[other]], x->number[other]};
    const CUresult rc = cpu_queue_wait(queue, point);
    if (rc) return rc;
  }
  cpu_task_retain(n->task);
  return cpu_queue_submit(queue, n->task, &x->number[node]);
}

/* Launches of one graph do not overlap, whatever streams they are given to. */
static CUresult launch(struct exec *x, struct cpu_queue *queue) {
  CUresult rc = x->last.queue ? cpu_queue_wait(queue, x->last) : CUDA_SUCCESS;
  const struct cpu_point start = {queue, cpu_queue_end(queue)};
  x->queues[0] = queue;
  for (int lane = 1; lane < x->lanes && !rc; lane++) {
    rc = cpu_queue_wait(x->queues[lane], start);
  }
  for (int node = 0; node < x->graph->count && !rc; node++) rc = launch_node(x, node);
  for (int lane = 1; lane < x->lanes && !rc; lane++) {
    struct cpu_queue *side = x->queues[lane];
    rc = cpu_queue_wait(queue, (struct cpu_point){side, cpu_queue_end(side)});
  }
  if (x->last.queue) cpu_queue_release(x->last.queue);
  x->last = (struct cpu_point){cpu_queue_retain(queue), cpu_queue_end(queue)};
  return rc;
}

CUresult cpu_graph_launch(CUgraphExec exec, CUstream stream) {
  struct cpu_stream *s;
  struct exec *x = cpu_handle_get(CPU_HANDLE_EXEC, exec);
  if (!x) return CUDA_ERROR_INVALID_VALUE;
  CUresult rc = cpu_stream_enter(stream, &s);
  if (rc) return rc;
  /* A capture takes no graph: seen on driver 580. */
  if (cpu_is_capturing(s)) return cpu_capture_check_sync(s);
  pthread_mutex_lock(&x->lock);
  cpu_traced_launch_begin();
  rc = launch(x, s->queue);
  cpu_traced_launch_end(s->device);
  pthread_mutex_unlock(&x->lock);
  return rc;
}

/* A launch under way goes on: its items hold the tasks, and closed queues run dry. */
CUresult cpu_graph_exec_destroy(CUgraphExec exec) {
  struct exec *x = cpu_handle_take(CPU_HANDLE_EXEC, exec);
  if (!x) return CUDA_ERROR_INVALID_VALUE;
  destroy(x);
  return CUDA_SUCCESS;
}

CUresult cpu_graph_destroy(CUgraph handle) {
  struct cpu_graph *graph = cpu_handle_take(CPU_HANDLE_GRAPH, handle);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  cpu_graph_free(graph);
  return CUDA_SUCCESS;
}
