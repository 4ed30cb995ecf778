/* host/gpus.c and host/affinity.c on a made-up machine. */
#include "host/affinity.h"
#include "host/gpus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];

/* Writes root/path, making its folders. */
static void put(const char *path, const char *text) {
  char full[512];
  snprintf(full, sizeof full, "%s/%s", root, path);
  for (char *at = full + 1; (at = strchr(at, '/')); at++) {
    *at = '\0';
    mkdir(full, 0755);
    *at = '/';
  }
  FILE *file = fopen(full, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void put_gpu(const char *bus, const char *uuid, int minor, const char *cpus) {
  char path[128], text[256];
  snprintf(path, sizeof path, "proc/driver/nvidia/gpus/%s/information", bus);
  snprintf(
    text,
    sizeof text,
    "Model: \t\t NVIDIA H200\nGPU UUID: \t %s\nBus Location: \t %s\nDevice Minor: \t %d\n",
    uuid,
    bus,
    minor);
  put(path, text);
  snprintf(path, sizeof path, "sys/bus/pci/devices/%s/local_cpulist", bus);
  put(path, cpus);
}

static int make_machine(void **state) {
  (void)state;
  snprintf(root, sizeof root, "/tmp/nclua-gpus-XXXXXX");
  return mkdtemp(root) ? 0 : -1;
}

static int remove_machine(void **state) {
  char command[128];
  (void)state;
  unsetenv("CUDA_VISIBLE_DEVICES");
  snprintf(command, sizeof command, "rm -rf '%s'", root);
  return system(command);
}

static void test_none(void **state) {
  struct gpu gpus[GPUS_MOST];
  struct err e;
  (void)state;
  assert_int_equal(gpus_visible(root, gpus, &e), -1);
  assert_string_equal(e.code, "ENODEV");
}

static void test_proc(void **state) {
  static const struct {
    const char *visible, *order; /* of the last digit of the UUIDs */
  } cases[] = {
    {NULL, "123"},
    {"", ""},
    {"2,0", "31"},
    {"1", "2"},
    {"0,7,1", "1"}, /* what follows an unknown one is ignored */
    {"-1", ""},
    {"GPU-3,GPU-1", "31"},
    {" 1 , 2 ", "23"},
    {"nonsense", ""},
  };
  struct gpu gpus[GPUS_MOST];
  struct err e;
  (void)state;
  put_gpu("0000:9b:00.0", "GPU-3000", 2, "0\n");
  put_gpu("0000:19:00.0", "GPU-1000", 0, "0\n");
  put_gpu("0000:3b:00.0", "GPU-2000", 1, "0\n");
  put_gpu("0000:5d:00.0", "GPU-4000", 5, "0\n"); /* not in this container */
  put("dev/nvidia0", "");
  put("dev/nvidia1", "");
  put("dev/nvidia2", "");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char order[GPUS_MOST + 1] = "";
    if (cases[i].visible) setenv("CUDA_VISIBLE_DEVICES", cases[i].visible, 1);
    int count = gpus_visible(root, gpus, &e);
    for (int g = 0; g < count; g++) order[g] = gpus[g].uuid[4];
    assert_string_equal(order, cases[i].order);
  }
}

static void test_sys(void **state) {
  struct gpu gpus[GPUS_MOST];
  struct err e;
  (void)state;
  put("sys/bus/pci/devices/0000:19:00.0/vendor", "0x10de\n");
  put("sys/bus/pci/devices/0000:19:00.0/class", "0x030200\n");
  put("sys/bus/pci/devices/0000:07:00.0/vendor", "0x10de\n");
  put("sys/bus/pci/devices/0000:07:00.0/class", "0x068000\n"); /* a switch */
  put("sys/bus/pci/devices/0000:01:00.0/vendor", "0x1a03\n");
  put("sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n"); /* another maker's */
  assert_int_equal(gpus_visible(root, gpus, &e), 1);
  assert_string_equal(gpus[0].bus_id, "0000:19:00.0");
}

static void test_parse(void **state) {
  static const struct {
    const char *list;
    int count; /* -1: refused */
  } cases[] = {{"0", 1},
               {"0-3", 4},
               {"0-3,8,10-11\n", 7},
               {"", 0},
               {"a", -1},
               {"1-", -1},
               {"5000", -1}};
  cpu_set_t cpus;
  struct err e;
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int rc = affinity_parse(cases[i].list, &cpus, &e);
    assert_int_equal(rc ? -1 : CPU_COUNT(&cpus), cases[i].count);
  }
}

static void test_affinity(void **state) {
  cpu_set_t cpus, allowed;
  struct err e;
  char list[32];
  size_t cpu = 0;
  (void)state;
  assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  while (!CPU_ISSET(cpu, &allowed)) cpu++;
  snprintf(list, sizeof list, "%zu,1020-1023\n", cpu);
  put_gpu("0000:19:00.0", "GPU-1000", 0, list);
  put_gpu("0000:3b:00.0", "GPU-2000", 1, "1020-1023\n");
  put("dev/nvidia0", "");
  put("dev/nvidia1", "");
  assert_int_equal(affinity_of_gpu(root, 0, &cpus, &e), 0);
  assert_int_equal(CPU_COUNT(&cpus), 1);
  assert_true(CPU_ISSET(cpu, &cpus));
  assert_int_equal(affinity_of_gpu(root, 1, &cpus, &e), -1);
  assert_string_equal(e.code, "EPERM");
  assert_int_equal(affinity_of_gpu(root, 2, &cpus, &e), -1);
  assert_string_equal(e.code, "ENODEV");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_none, make_machine, remove_machine),
    cmocka_unit_test_setup_teardown(test_proc, make_machine, remove_machine),
    cmocka_unit_test_setup_teardown(test_sys, make_machine, remove_machine),
    cmocka_unit_test(test_parse),
    cmocka_unit_test_setup_teardown(test_affinity, make_machine, remove_machine),
  };
  unsetenv("CUDA_VISIBLE_DEVICES");
  return cmocka_run_group_tests(tests, NULL, NULL);
}
