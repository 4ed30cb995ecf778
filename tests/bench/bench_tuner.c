/* What nclua's tuner plugin adds to a call: nothing configured, rules, and observing.

     build/tests/bench/bench_tuner PLUGIN.so [calls]

   Calls come in batches that the observer's ring can hold, as a program's do: between two
   of them NCCL launches a kernel, which takes longer than writing a line. */

#include "plugins/tuner/abi.h"
#include "plugins/tuner/steer.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 2000, CELLS = 21, ALL_REDUCE = 4 };

typedef void flush_function(void);

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void quiet(int level, unsigned long subsystem, const char *file, int line,
                  const char *format, ...) {
  (void)level;
  (void)subsystem;
  (void)file;
  (void)line;
  (void)format;
}

static void call_once(const struct abi_v4 *abi, void *context, size_t bytes) {
  float table[CELLS];
  int channels = 0;
  for (int i = 0; i < CELLS; i++) table[i] = (float)(i + 1);
  abi->get_coll_info(context,
                     ALL_REDUCE,
                     bytes,
                     1,
                     (float **)(void *)table,
                     CELLS / ABI_PROTOCOLS,
                     ABI_PROTOCOLS,
                     0,
                     &channels);
}

/* The least batch's time a call: what interrupts a batch is not the plugin's. */
static double measure(const struct abi_v4 *abi, void *context, flush_function *flush,
                      long calls) {
  double best = 1e30;
  for (long done = 0; done < calls; done += BATCH) {
    const double begin = now_ns();
    for (size_t i = 0; i < BATCH; i++) call_once(abi, context, (size_t)4 << i % 29);
    const double each = (now_ns() - begin) / BATCH;
    if (each < best) best = each;
    flush();
  }
  return best;
}

/* The configuration is read once a process, so each has one of its own. */
static int run(const char *plugin, long calls, const char *title) {
  void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (!library) return fprintf(stderr, "bench_tuner: %s\n", dlerror());
  void *symbol = dlsym(library, "nclua_tuner_flush");
  flush_function *flush;
  memcpy(&flush, &symbol, sizeof flush);
  const struct abi_v4 *abi = dlsym(library, "ncclTunerPlugin_v4");
  if (!abi || !flush) return fprintf(stderr, "bench_tuner: not nclua's plugin\n");
  void *context = NULL;
  if (abi->init(8, 1, quiet, &context)) return fprintf(stderr, "bench_tuner: init\n");
  printf("%-10s %7.1f ns a call\n", title, measure(abi, context, flush, calls));
  abi->destroy(context);
  return 0;
}

int main(int argc, char **argv) {
  const long calls = argc > 2 ? atol(argv[2]) : 100000;
  const char *title = getenv("BENCH_TITLE");
  if (argc < 2) {
    fprintf(stderr, "usage: bench_tuner PLUGIN.so [calls]\n");
    return EXIT_FAILURE;
  }
  if (title) return run(argv[1], calls, title) ? EXIT_FAILURE : EXIT_SUCCESS;
  static const char *const settings[][2] = {
    {"plain", "NCLUA_TUNER_NONE=1"},
    {"forcing", "NCLUA_TUNER_FORCE=all_reduce:Tree/Simple/2"},
    {"observing", "NCLUA_TUNER_OBSERVE=/dev/null"},
  };
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    char command[4096];
    const int n = snprintf(command,
                           sizeof command,
                           "env BENCH_TITLE=%s %s '%s' '%s' %ld",
                           settings[i][0],
                           settings[i][1],
                           argv[0],
                           argv[1],
                           calls);
    if (n < 0 || (size_t)n >= sizeof command || system(command)) return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
