#include "host/cpu/terms.h"
#include "host/cpu/env.h"
#include "host/cpu/log.h"

/* A variable's number of channels; a wrong one is `fallback`. */
static int read_count(const char *name, int fallback) {
  const int64_t asked = cpu_env_number(name, -1);
  return asked < 1 ? fallback : asked > 1024 ? 1024 : (int)asked;
}

/* NCCL_MAX_NCHANNELS, but for its older name; at least 1. */
static int read_most(void) {
  const int64_t asked =
    cpu_env_number("NCCL_MAX_NCHANNELS", cpu_env_number("NCCL_MAX_NRINGS", -2));
  if (asked == -2) return 0;
  if (asked >= 1) return asked > 1024 ? 1024 : (int)asked;
  cpu_log(CPU_LOG_GRAPH | CPU_LOG_ENV,
          "User asked for a maximum of %d channels, setting it to 1",
          (int)asked);
  return 1;
}

void cpu_terms_read(struct cpu_terms *terms, struct cpu_bounds config) {
  const int most = read_most();
  const int least = read_count("NCCL_MIN_NCHANNELS", read_count("NCCL_MIN_NRINGS", 0));
  const struct cpu_bounds ctas = {read_count("NCCL_MIN_CTAS", config.least),
                                  read_count("NCCL_MAX_CTAS", config.most)};
  terms->bounds.least = least > ctas.least ? least : ctas.least;
  terms->bounds.most = most && (!ctas.most || most < ctas.most) ? most : ctas.most;
  cpu_constants_load(&terms->constants);
}
