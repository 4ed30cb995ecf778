#include "host/backend.h"

static int load(const char *library, struct err *e) {
  (void)library;
  return err_set(e, "ENOSYS", "the cpu backend is not here yet");
}

struct coll_api cpu_coll = {.name = "cpu", .load = load};
