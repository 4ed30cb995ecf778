#include "host/backend.h"

static int load(const char *library, struct err *e) {
  (void)library;
  return err_set(e, "ENOSYS", "the cuda backend is not here yet");
}

struct coll_api cuda_coll = {.name = "cuda", .load = load};
