#include "host/gpus.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_line(const char *path, char *line, int size) {
  FILE *file = fopen(path, "re");
  bool ok = file && fgets(line, size, file);
  if (file) fclose(file);
  return ok;
}

/* The value after "KEY:" and blanks, without the end of the line. */
static void copy_value(const char *line, const char *key, char *value, size_t size) {
  size_t length = strlen(key);
  if (strncmp(line, key, length) != 0) return;
  line += length;
  line += strspn(line, " \t");
  snprintf(value, size, "%.*s", (int)strcspn(line, "\n"), line);
}

/* A container sees every GPU of the machine in /proc and /sys, but only its own in /dev. */
static bool has_node(const char *root, const char *minor) {
  char path[PATH_MAX];
  if (!*minor) return true;
  snprintf(path, sizeof path, "%s/dev/nvidia%s", root, minor);
  return access(path, F_OK) == 0;
}

/* /proc/driver/nvidia/gpus/BUS/information, where the driver is loaded. */
static bool read_proc(const char *root, const char *name, struct gpu *gpu) {
  char path[PATH_MAX], line[256], minor[16] = "";
  snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus/%s/information", root, name);
  FILE *file = fopen(path, "re");
  if (!file) return false;
  *gpu = (struct gpu){0};
  snprintf(gpu->bus_id, sizeof gpu->bus_id, "%s", name);
  while (fgets(line, sizeof line, file)) {
    copy_value(line, "GPU UUID:", gpu->uuid, sizeof gpu->uuid);
    copy_value(line, "Device Minor:", minor, sizeof minor);
  }
  fclose(file);
  return has_node(root, minor);
}

/* Where /proc is hidden: a display or 3D controller of NVIDIA's; a switch is neither. */
static bool read_sys(const char *root, const char *name, struct gpu *gpu) {
  char path[PATH_MAX], line[64];
  snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/vendor", root, name);
  if (!read_line(path, line, sizeof line) || strncmp(line, "0x10de", 6) != 0) return false;
  snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/class", root, name);
  if (!read_line(path, line, sizeof line)) return false;
  if (strncmp(line, "0x0300", 6) != 0 && strncmp(line, "0x0302", 6) != 0) return false;
  *gpu = (struct gpu){0};
  snprintf(gpu->bus_id, sizeof gpu->bus_id, "%s", name);
  return true;
}

static int by_bus(const void *a, const void *b) {
  return strcmp(((const struct gpu *)a)->bus_id, ((const struct gpu *)b)->bus_id);
}

static int list(const char *root, const char *folder,
                bool (*read)(const char *root, const char *name, struct gpu *gpu),
                struct gpu gpus[GPUS_MOST]) {
  char path[PATH_MAX];
  int count = 0;
  snprintf(path, sizeof path, "%s%s", root, folder);
  DIR *dir = opendir(path);
  if (!dir) return 0;
  for (struct dirent *entry; (entry = readdir(dir)) && count < GPUS_MOST;) {
    if (entry->d_name[0] == '.') continue;
    count += read(root, entry->d_name, &gpus[count]);
  }
  closedir(dir);
  qsort(gpus, (size_t)count, sizeof *gpus, by_bus);
  return count;
}

/* One entry of CUDA_VISIBLE_DEVICES: an ordinal, or the beginning of a UUID. -1: none. */
static int find(const struct gpu *all, int count, const char *entry, size_t length) {
  char *end = NULL;
  long ordinal = strtol(entry, &end, 10);
  if (length && end == entry + length) {
    return ordinal >= 0 && ordinal < count ? (int)ordinal : -1;
  }
  for (int i = 0; length > strlen("GPU-") && i < count; i++) {
    if (strncmp(all[i].uuid, entry, length) == 0) return i;
  }
  return -1;
}

/* The driver ignores what follows an entry that it does not know. */
static int filter(const struct gpu *all, int count, const char *visible,
                  struct gpu gpus[GPUS_MOST]) {
  int kept = 0;
  while (kept < GPUS_MOST) {
    visible += strspn(visible, " ");
    size_t length = strcspn(visible, ", ");
    int i = find(all, count, visible, length);
    if (i < 0) break;
    gpus[kept++] = all[i];
    visible += length;
    visible += strspn(visible, " ");
    if (*visible++ != ',') break;
  }
  return kept;
}

int gpus_visible(const char *root, struct gpu gpus[GPUS_MOST], struct err *e) {
  struct gpu all[GPUS_MOST];
  int count = list(root, "/proc/driver/nvidia/gpus", read_proc, all);
  if (!count) count = list(root, "/sys/bus/pci/devices", read_sys, all);
  if (!count) return err_set(e, "ENODEV", "no GPU in /proc/driver/nvidia or /sys/bus/pci");
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  if (visible) return filter(all, count, visible, gpus);
  memcpy(gpus, all, (size_t)count * sizeof *all);
  return count;
}
