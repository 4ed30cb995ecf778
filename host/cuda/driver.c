#include "host/backend.h"

static int load(const char *library, struct err *e) {
  (void)library;
  return err_set(e, "ENOSYS", "the cuda backend is not here yet");
}

struct device_api cuda_device = {.name = "cuda", .load = load};
