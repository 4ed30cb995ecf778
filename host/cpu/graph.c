#include "host/cpu/graph.h"

#include <stdlib.h>
#include <string.h>

static bool contains(const struct cpu_nodes *nodes, int node) {
  for (int i = 0; i < nodes->count; i++) {
    if (nodes->list[i] == node) return true;
  }
  return false;
}

/* Doubles an array of `size`-byte elements that is full. */
static bool make_room(void **array, int count, int *room, size_t size) {
  if (count < *room) return true;
  const int larger = *room ? 2 * *room : 4;
  void *moved = realloc(*array, (size_t)larger * size);
  if (!moved) return false;
  *array = moved;
  *room = larger;
  return true;
}

bool cpu_nodes_merge(struct cpu_nodes *to, const struct cpu_nodes *from) {
  for (int i = 0; i < from->count; i++) {
    if (contains(to, from->list[i])) continue;
    void *list = to->list;
    if (!make_room(&list, to->count, &to->room, sizeof *to->list)) return false;
    to->list = list;
    to->list[to->count++] = from->list[i];
  }
  return true;
}

bool cpu_nodes_set(struct cpu_nodes *to, int node) {
  to->count = 0;
  return cpu_nodes_merge(to, &(struct cpu_nodes){.list = &node, .count = 1});
}

void cpu_nodes_clear(struct cpu_nodes *nodes) {
  free(nodes->list);
  *nodes = (struct cpu_nodes){0};
}

struct cpu_graph *cpu_graph_new(void) {
  return calloc(1, sizeof(struct cpu_graph));
}

void cpu_graph_free(struct cpu_graph *graph) {
  if (!graph) return;
  for (int i = 0; i < graph->count; i++) {
    cpu_task_release(graph->nodes[i].task);
    cpu_nodes_clear(&graph->nodes[i].after);
  }
  free(graph->nodes);
  free(graph);
}

int cpu_graph_add(struct cpu_graph *graph, struct cpu_task *task,
                  const struct cpu_nodes *after) {
  struct cpu_nodes copy = {0};
  void *nodes = graph->nodes;
  const bool has_room = make_room(&nodes, graph->count, &graph->room, sizeof *graph->nodes);
  graph->nodes = nodes;
  if (!has_room || !cpu_nodes_merge(&copy, after)) {
    cpu_nodes_clear(&copy);
    return -1;
  }
  cpu_task_retain(task);
  graph->nodes[graph->count] = (struct cpu_node){task, copy};
  return graph->count++;
}

int cpu_graph_covers(const struct cpu_graph *graph, const struct cpu_nodes *roots,
                     const struct cpu_nodes *nodes) {
  bool *is_covered = calloc((size_t)graph->count + 1, sizeof *is_covered);
  if (!is_covered) return -1;
  for (int i = 0; i < roots->count; i++) is_covered[roots->list[i]] = true;
  for (int node = graph->count - 1; node >= 0; node--) {
    const struct cpu_nodes *after = &graph->nodes[node].after;
    for (int i = 0; is_covered[node] && i < after->count; i++) {
      is_covered[after->list[i]] = true;
    }
  }
  bool all = true;
  for (int i = 0; i < nodes->count; i++) all = all && is_covered[nodes->list[i]];
  free(is_covered);
  return all;
}
