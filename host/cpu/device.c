#include "host/backend.h"

static int load(const char *library, struct err *e) {
  (void)library;
  return err_set(e, "ENOSYS", "the cpu backend is not here yet");
}

struct device_api cpu_device = {.name = "cpu", .load = load};
