/* A program that knows nothing of nclua: AllReduces over all GPUs of this process.

     gcc -O2 trace_nccl.c -I/usr/local/cuda/include -L... -lcudart -lnccl -o trace_nccl
     trace_nccl [bytes [calls]] */

#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 8, EACH = 100 }; /* GPUs; calls between waits */

static void check(const char *what, int rc) {
  if (rc == 0) return;
  fprintf(stderr, "trace_nccl: %s: %d\n", what, rc);
  exit(EXIT_FAILURE);
}

int main(int argc, char **argv) {
  const size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 64 << 20;
  const int calls = argc > 2 ? atoi(argv[2]) : 20;
  ncclComm_t comms[MOST];
  cudaStream_t streams[MOST];
  void *memory[MOST];
  int count;
  check("cudaGetDeviceCount", cudaGetDeviceCount(&count));
  if (count > MOST) count = MOST;
  check("ncclCommInitAll", ncclCommInitAll(comms, count, NULL));
  for (int i = 0; i < count; i++) {
    check("cudaSetDevice", cudaSetDevice(i));
    check("cudaStreamCreate", cudaStreamCreate(&streams[i]));
    check("cudaMalloc", cudaMalloc(&memory[i], bytes));
    check("cudaMemset", cudaMemset(memory[i], 0, bytes));
  }
  for (int n = 0; n < calls; n++) {
    ncclGroupStart();
    for (int i = 0; i < count; i++) {
      check("ncclAllReduce",
            ncclAllReduce(
              memory[i], memory[i], bytes / 4, ncclFloat32, ncclSum, comms[i], streams[i]));
    }
    check("ncclGroupEnd", ncclGroupEnd());
    /* CUPTI completes a kernel's record when the program waits, not before. */
    for (int i = 0; n % EACH == EACH - 1 && i < count; i++) {
      check("cudaStreamSynchronize", cudaStreamSynchronize(streams[i]));
    }
  }
  for (int i = 0; i < count; i++) {
    check("cudaSetDevice", cudaSetDevice(i));
    check("cudaStreamSynchronize", cudaStreamSynchronize(streams[i]));
    check("ncclCommDestroy", ncclCommDestroy(comms[i]));
    check("cudaFree", cudaFree(memory[i]));
  }
  printf("%d GPUs, %d calls of %zu bytes\n", count, calls, bytes);
  return EXIT_SUCCESS;
}
