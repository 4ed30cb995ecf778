#include "host/inventory.h"

#include "host/backend.h"
#include "host/cuda/search.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *inventory_title(enum inventory_library library) {
  static const char *const titles[] = {"CUDA driver", "NCCL", "NVRTC", "CUPTI"};
  return titles[library];
}

struct visitor {
  bool (*visit)(const char *path, const char *version, void *context);
  void *context;
};

static bool pass_on(const struct search_hit *hit, void *context) {
  const struct visitor *v = context;
  return v->visit(hit->path, hit->version, v->context);
}

void inventory_each(enum inventory_library library,
                    bool (*visit)(const char *path, const char *version, void *context),
                    void *context) {
  static const enum search_library libraries[] = {
    [INVENTORY_DRIVER] = SEARCH_DRIVER,
    [INVENTORY_NCCL] = SEARCH_NCCL,
    [INVENTORY_NVRTC] = SEARCH_NVRTC,
    [INVENTORY_CUPTI] = SEARCH_CUPTI,
  };
  struct visitor v = {visit, context};
  search_each(libraries[library], pass_on, &v);
}

/* What the child sends: this once, then so many struct inventory_device. */
struct answer {
  bool failed;
  char code[64], text[512];
  int driver_version, count;
};

/* In the child. */
static void describe(int ordinal, struct inventory_device *d) {
  CUdevice device;
  CUuuid uuid = {{0}};
  size_t bytes = 0;
  int major = 0, minor = 0, used = 0;
  *d = (struct inventory_device){.name = "?"};
  if (cuda_device.device_get(&device, ordinal)) return;
  cuda_device.device_get_name(d->name, (int)sizeof d->name, device);
  cuda_device.device_get_pci_bus_id(d->bus_id, (int)sizeof d->bus_id, device);
  cuda_device.device_total_mem(&bytes, device);
  d->memory_bytes = bytes;
  cuda_device.device_get_attribute(
    &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  cuda_device.device_get_attribute(
    &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  snprintf(d->compute_capability, sizeof d->compute_capability, "%d.%d", major, minor);
  if (cuda_device.device_get_uuid(&uuid, device)) return;
  for (int i = 0; i < 16; i++) {
    const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
    used += snprintf(d->uuid + used,
                     sizeof d->uuid - (size_t)used,
                     "%s%02x",
                     dash,
                     (unsigned)(unsigned char)uuid.bytes[i]);
  }
}

static bool send_all(int fd, const void *data, size_t bytes) {
  for (const char *at = data; bytes;) {
    ssize_t n = write(fd, at, bytes);
    if (n <= 0) return false;
    at += n;
    bytes -= (size_t)n;
  }
  return true;
}

static void answer(int fd) {
  struct answer a = {0};
  struct err e = {.code = "", .text = ""};
  a.failed = cuda_device.load(NULL, &e) != 0;
  snprintf(a.code, sizeof a.code, "%s", e.code);
  snprintf(a.text, sizeof a.text, "%s", e.text);
  if (!a.failed) cuda_device.driver_get_version(&a.driver_version);
  if (!a.failed && cuda_device.device_get_count(&a.count)) a.count = 0;
  if (a.count > INVENTORY_MOST_DEVICES) a.count = INVENTORY_MOST_DEVICES;
  send_all(fd, &a, sizeof a);
  for (int i = 0; i < a.count; i++) {
    struct inventory_device d;
    describe(i, &d);
    if (!send_all(fd, &d, sizeof d)) return;
  }
}

static long long now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* Reads just so many bytes before the deadline. */
static bool receive(int fd, void *data, size_t bytes, long long deadline_ms) {
  for (char *at = data; bytes;) {
    long long left = deadline_ms - now_ms();
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int ready = poll(&p, 1, left > 0 ? (int)left : 0);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    ssize_t n = read(fd, at, bytes);
    if (n <= 0) return false;
    at += n;
    bytes -= (size_t)n;
  }
  return true;
}

/* Codes are static strings: those that may come are few, the rest have one name. */
static const char *known_code(const char *code) {
  static const char *const codes[] = {"no_library",
                                      "driver_too_old",
                                      "CUDA_ERROR_NO_DEVICE",
                                      "CUDA_ERROR_NOT_INITIALIZED",
                                      "CUDA_ERROR_STUB_LIBRARY"};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    if (strcmp(codes[i], code) == 0) return codes[i];
  }
  return "driver";
}

static int collect(int fd, int timeout_s, struct inventory_devices *out, struct err *e) {
  struct answer a;
  long long deadline = now_ms() + timeout_s * 1000LL;
  *out = (struct inventory_devices){0};
  if (!receive(fd, &a, sizeof a, deadline)) {
    return err_set(e, "ETIMEDOUT", "the CUDA driver gave no answer in %d s", timeout_s);
  }
  if (a.failed) return err_set(e, known_code(a.code), "%s", a.text);
  out->driver_version = a.driver_version;
  for (; out->count < a.count; out->count++) {
    if (!receive(fd, &out->list[out->count], sizeof *out->list, deadline)) {
      return err_set(e, "ETIMEDOUT", "the CUDA driver stopped answering");
    }
  }
  return 0;
}

/* It has answered, or it hangs; one that hangs in the kernel cannot even be killed. */
static void end(pid_t child) {
  const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
  kill(child, SIGKILL);
  for (int i = 0; i < 200 && waitpid(child, NULL, WNOHANG) == 0; i++) {
    nanosleep(&pause, NULL);
  }
}

int inventory_read_devices(int timeout_s, struct inventory_devices *out, struct err *e) {
  int fd[2];
  if (pipe2(fd, O_CLOEXEC)) return err_errno(e, "pipe");
  pid_t child = fork();
  if (child == 0) {
    close(fd[0]);
    answer(fd[1]);
    _exit(0);
  }
  int rc = child < 0 ? err_errno(e, "fork") : 0;
  close(fd[1]);
  if (!rc) rc = collect(fd[0], timeout_s, out, e);
  close(fd[0]);
  if (child > 0) end(child);
  return rc;
}
