#include "host/affinity.h"

#include "host/gpus.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int affinity_parse(const char *list, cpu_set_t *cpus, struct err *e) {
  CPU_ZERO(cpus);
  for (const char *at = list; *at && *at != '\n'; at += *at == ',') {
    char *end = NULL;
    unsigned long first = strtoul(at, &end, 10), last = first;
    if (end == at) return err_set(e, "EINVAL", "not a list of CPUs: '%s'", list);
    if (*end == '-') {
      at = end + 1;
      last = strtoul(at, &end, 10);
    }
    if (end == at || last >= CPU_SETSIZE || (*end && *end != ',' && *end != '\n')) {
      return err_set(e, "EINVAL", "not a list of CPUs: '%s'", list);
    }
    for (unsigned long cpu = first; cpu <= last; cpu++) CPU_SET(cpu, cpus);
    at = end;
  }
  return 0;
}

static int read_list(const char *root, const char *bus_id, char *list, int size,
                     struct err *e) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/local_cpulist", root, bus_id);
  FILE *file = fopen(path, "re");
  if (!file) return err_errno(e, "%s", path);
  char *got = fgets(list, size, file);
  fclose(file);
  return got ? 0 : err_set(e, "ENODATA", "%s is empty", path);
}

int affinity_of_gpu(const char *root, int ordinal, cpu_set_t *cpus, struct err *e) {
  struct gpu gpus[GPUS_MOST];
  char list[1024];
  cpu_set_t allowed;
  int count = gpus_visible(root, gpus, e);
  if (count < 0) return -1;
  if (ordinal < 0 || ordinal >= count) {
    return err_set(e, "ENODEV", "no GPU %d: %d can be seen", ordinal, count);
  }
  if (read_list(root, gpus[ordinal].bus_id, list, sizeof list, e)) return -1;
  if (affinity_parse(list, cpus, e)) return -1;
  if (sched_getaffinity(0, sizeof allowed, &allowed))
    return err_errno(e, "sched_getaffinity");
  CPU_AND(cpus, cpus, &allowed);
  if (CPU_COUNT(cpus)) return 0;
  return err_set(e, "EPERM", "none of the CPUs near GPU %d is allowed here", ordinal);
}
