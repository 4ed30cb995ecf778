#include "host/cpu/constants.h"
#include "host/cpu/device.h"
#include "host/cpu/enabled.h"
#include "host/cpu/log.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Measured with nclua calibrate on an AMD EPYC (Zen 5) virtual machine with 2 cores: the
   best of several runs, rounded. */
static const struct cpu_constants shipped = {
  .cells =
    {
      [CPU_TREE] = {{0.15f, 0.22f, 6.5f, 2.6f, 4},
                    {0.15f, 0.25f, 9, 2.6f, 6},
                    {0.15f, 0.28f, 18, 2.6f, 12}},
      [CPU_RING] = {{0.15f, 0.22f, 7.5f, 0.85f, 5.5f},
                    {0.15f, 0.25f, 11.5f, 0.9f, 8},
                    {0.15f, 0.28f, 25, 0.9f, 20}},
      [CPU_PAT] = {[CPU_SIMPLE] = {0.15f, 0.32f, 22, 1.4f, 16}},
    },
};

/* FNV-1a over what decides the figures: the processor's model and how many cores it has. */
static uint64_t hash_processor(void) {
  char text[256], name[200] = "";
  uint64_t hash = UINT64_C(14695981039346656037);
  cpu_device_get_name(name, sizeof name, 0);
  snprintf(text, sizeof text, "%s|%ld", name, sysconf(_SC_NPROCESSORS_ONLN));
  for (const char *c = text; *c; c++) {
    hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
  }
  return hash;
}

void cpu_constants_path(char *path, size_t bytes) {
  const char *chosen = getenv("NCLUA_CPU_CONSTANTS"), *folder = getenv("XDG_CONFIG_HOME");
  const char *home = getenv("HOME"), *below = "";
  *path = 0;
  if (chosen && *chosen) {
    if (strcasecmp(chosen, "none") != 0) snprintf(path, bytes, "%s", chosen);
    return;
  }
  if (!folder || *folder != '/') {
    folder = home;
    below = "/.config";
  }
  if (!folder || *folder != '/') return;
  snprintf(path,
           bytes,
           "%s%s/nclua/cpu-%016llx.conf",
           folder,
           below,
           (unsigned long long)hash_processor());
}

static int find(const char *name, const char *const *names, int count) {
  for (int i = 0; i < count; i++) {
    if (strcasecmp(name, names[i]) == 0) return i;
  }
  return -1;
}

static bool is_sane(float value, float least) {
  return isfinite(value) && value >= least && value < 1e6f;
}

/* "Ring LL 0.3 0.2 8.5 3.1 7.9": the figures of a cell, in their order. */
static bool read_cell(const char *line, struct cpu_constants *c) {
  char algorithm[16], protocol[16];
  struct cpu_cell_constants cell;
  if (sscanf(line,
             "%15s %15s %f %f %f %f %f",
             algorithm,
             protocol,
             &cell.base_us,
             &cell.hop_us,
             &cell.bandwidth_gbps,
             &cell.shared_hop_us,
             &cell.shared_bandwidth_gbps) != 7) {
    return false;
  }
  const int a = find(algorithm, cpu_algorithm_names, CPU_ALGORITHMS);
  const int p = find(protocol, cpu_protocol_names, CPU_PROTOCOLS);
  if (a < 0 || p < 0 || !is_sane(cell.base_us, 0) || !is_sane(cell.hop_us, 0) ||
      !is_sane(cell.shared_hop_us, 0) || !is_sane(cell.bandwidth_gbps, 1e-6f) ||
      !is_sane(cell.shared_bandwidth_gbps, 1e-6f)) {
    return false;
  }
  c->cells[a][p] = cell;
  return true;
}

static bool read_line(const char *line, struct cpu_constants *c) {
  line += strspn(line, " \t\r\n");
  if (*line == '#' || !*line) return true;
  return sscanf(line, "date %15s", c->date) == 1 || read_cell(line, c);
}

static bool read_file(FILE *file, struct cpu_constants *c, int *number) {
  char line[256];
  bool is_right = true;
  strcpy(c->date, "undated");
  for (*number = 0; is_right && fgets(line, sizeof line, file); ++*number) {
    is_right = read_line(line, c);
  }
  return is_right;
}

void cpu_constants_load(struct cpu_constants *constants) {
  char path[PATH_MAX], text[PATH_MAX + 64];
  int line = 0;
  *constants = shipped;
  cpu_constants_path(path, sizeof path);
  FILE *file = *path ? fopen(path, "re") : NULL;
  if (!file) return;
  struct cpu_constants measured = shipped;
  if (read_file(file, &measured, &line)) {
    *constants = measured;
  } else {
    snprintf(text, sizeof text, "%s:%d: not a line of nclua calibrate", path, line);
    cpu_log_warn(__FILE__, __LINE__, text);
  }
  fclose(file);
}
