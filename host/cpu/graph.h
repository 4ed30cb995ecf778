#ifndef HOST_CPU_GRAPH_H
#define HOST_CPU_GRAPH_H

/* A captured graph: tasks, each after the nodes it depends on, which have lower numbers. */

#include "host/cpu/capture.h"

struct cpu_node {
  struct cpu_task *task; /* a reference */
  struct cpu_nodes after;
};

struct cpu_graph {
  struct cpu_node *nodes;
  int count, room;
};

/* Copies and merges sets of nodes; false if memory is short. */
bool cpu_nodes_merge(struct cpu_nodes *to, const struct cpu_nodes *from);
bool cpu_nodes_set(struct cpu_nodes *to, int node);
void cpu_nodes_clear(struct cpu_nodes *nodes);

struct cpu_graph *cpu_graph_new(void);
void cpu_graph_free(struct cpu_graph *graph);

/* The new node's number, or -1 if memory is short; takes a reference of the task. */
int cpu_graph_add(struct cpu_graph *graph, struct cpu_task *task,
                  const struct cpu_nodes *after);

/* Are all of `nodes` among `roots` or what these depend on, directly or not? 1, 0, or -1 if
   memory is short. */
int cpu_graph_covers(const struct cpu_graph *graph, const struct cpu_nodes *roots,
                     const struct cpu_nodes *nodes);

#endif
