#ifndef HOST_CPU_CONSTANTS_H
#define HOST_CPU_CONSTANTS_H

/* What an operation costs on this processor. `nclua calibrate` measures it and keeps it in
   a file for each machine; the shipped figures serve until then. */

#include "host/cpu/numbers.h"

#include <stddef.h>

struct cpu_cell_constants {
  float base_us;        /* of any operation, however few its steps */
  float hop_us;         /* a step, where each rank has a core */
  float bandwidth_gbps; /* 1e9 bytes a second that a channel moves on a core of its own */
  /* The same where ranks take turns on the cores; the bandwidth is that of a whole core. */
  float shared_hop_us, shared_bandwidth_gbps;
};

struct cpu_constants {
  char date[16]; /* of the measurement, "2026-01-31"; "": the shipped figures */
  struct cpu_cell_constants cells[CPU_ALGORITHMS][CPU_PROTOCOLS];
};

/* NCLUA_CPU_CONSTANTS ("none": the shipped figures), else this machine's file in
   XDG_CONFIG_HOME/nclua or ~/.config/nclua. "" if it has no name. */
void cpu_constants_path(char *path, size_t bytes);

/* A file that is missing is as good as none; one with a mistake is told in the log. */
void cpu_constants_load(struct cpu_constants *constants);

#endif
