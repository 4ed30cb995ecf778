/* How fast records of kernels come into a trace's file: buffers as CUPTI fills them are
   given to the writer as fast as it takes them.

     build/tests/bench/bench_trace [records [file]] */

#include "plugins/trace/decode.h"
#include "plugins/trace/writer.h"
#include "tests/plugins/cupti_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *const names[] = {
  "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
  "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEEEEviT0_",
  "_Z4axpyPfPKff",
};

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t fill(uint8_t *buffer, long first, long left) {
  size_t used = 0;
  const size_t size = records_size(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, records_version);
  for (long i = 0; i < left && used + size <= WRITER_BUFFER_BYTES; i++) {
    const long n = first + i;
    const struct cupti_kernel k = {
      .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
      .registersPerThread = 96,
      .start = (uint64_t)n * 10000,
      .end = (uint64_t)n * 10000 + 8000,
      .streamId = 7,
      .gridX = 24,
      .gridY = 1,
      .gridZ = 1,
      .blockX = 544,
      .blockY = 1,
      .blockZ = 1,
      .correlationId = (uint32_t)n,
      .gridId = n,
      .name = names[n % 3],
    };
    used = records_add(buffer, used, records_version, &k, sizeof k);
  }
  return used;
}

static void give_all(struct writer *w, long records) {
  const size_t size = records_size(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, records_version);
  for (long n = 0; n < records;) {
    uint8_t *buffer = writer_take(w);
    if (!buffer) {
      usleep(200);
      continue;
    }
    const size_t used = fill(buffer, n, records - n);
    n += (long)(used / size);
    writer_give(w, buffer, used);
  }
}

int main(int argc, char **argv) {
  const long records = argc > 1 ? atol(argv[1]) : 1000000;
  const char *path = argc > 2 ? argv[2] : "bench_trace.sqlite";
  char why[256];
  struct decoder decoder = {.session = session_new(),
                            .layout = abi_layout(records_version),
                            .next_record = records_next,
                            .callback_name = records_name};
  const struct writer_options options = {.path = path,
                                         .session = decoder.session,
                                         .memory_bytes = 8 << 20,
                                         .decode = decode_buffer,
                                         .context = &decoder};
  struct writer *w = writer_start(&options, why, sizeof why);
  if (!w) {
    fprintf(stderr, "bench_trace: %s\n", why);
    return EXIT_FAILURE;
  }
  const double start = now_s();
  give_all(w, records);
  writer_stop(w, why, sizeof why);
  const double seconds = now_s() - start;
  writer_free(w);
  struct stat file;
  if (stat(path, &file)) return EXIT_FAILURE;
  unlink(path);
  printf("%ld kernel records: %.2f s, %.0f records/s, %.0f bytes a record%s%s\n",
         records,
         seconds,
         (double)records / seconds,
         (double)file.st_size / (double)records,
         why[0] ? ": " : "",
         why);
  return why[0] ? EXIT_FAILURE : EXIT_SUCCESS;
}
