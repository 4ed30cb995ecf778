/* AllReduce of the CPU backend, fp32 sum, one process a rank: prints a table, judges
   nothing.  bench_cpu_allreduce [ranks [largest_bytes]] */

#include "host/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SMALLEST ((size_t)1 << 10)
#define ROUNDS 15

#define CHECK(call)                                                                        \
  do {                                                                                     \
    int rc_ = (call);                                                                      \
    if (rc_) {                                                                             \
      fprintf(stderr, "%s: %d %s\n", #call, rc_, cpu_coll.get_last_error(NULL));           \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

/* Shared with the children. */
struct board {
  ncclUniqueId id;
};

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *v, size_t n) {
  qsort(v, n, sizeof *v, compare);
  return v[n / 2];
}

struct rank {
  ncclComm_t comm;
  CUdeviceptr send, recv;
};

static double time_once(const struct rank *r, size_t bytes, int calls, bool each) {
  double start = now_us();
  for (int i = 0; i < calls; i++) {
    CHECK(cpu_coll.all_reduce((void *)(uintptr_t)r->send,
                              (void *)(uintptr_t)r->recv,
                              bytes / 4,
                              ncclFloat32,
                              ncclSum,
                              r->comm,
                              NULL));
    if (each) CHECK(cpu_device.stream_synchronize(NULL));
  }
  CHECK(cpu_device.stream_synchronize(NULL));
  return (now_us() - start) / calls;
}

static double measure(const struct rank *r, size_t bytes, bool each) {
  double us[ROUNDS];
  int calls = bytes < (1 << 18) ? 500 : bytes < (1 << 22) ? 40 : 4;
  time_once(r, bytes, calls, each);
  for (int i = 0; i < ROUNDS; i++) us[i] = time_once(r, bytes, calls, each);
  return median(us, ROUNDS);
}

static double measure_memcpy(size_t bytes, char *dst, const char *src) {
  double us[ROUNDS];
  int calls = bytes < (1 << 20) ? 200 : 4;
  for (int i = 0; i < ROUNDS; i++) {
    double start = now_us();
    for (int k = 0; k < calls; k++) {
      memcpy(dst, src, bytes);
      __asm__ volatile("" ::: "memory");
    }
    us[i] = (now_us() - start) / calls;
  }
  return median(us, ROUNDS);
}

static void print_row(size_t bytes, int ranks, double alone, double streamed, double copy) {
  double bus = 2.0 * (ranks - 1) / ranks * (double)bytes / 1e3;
  printf("%10zu %12.2f %12.2f %10.2f %10.2f %12.2f\n",
         bytes,
         alone,
         streamed,
         bus / alone,
         bus / streamed,
         (double)bytes / 1e3 / copy);
  fflush(stdout);
}

static void run_rank(const struct board *board, int rank, int ranks, size_t largest) {
  struct err e;
  CUcontext ctx;
  struct rank r;
  CHECK(cpu_device.load(NULL, &e));
  CHECK(cpu_coll.load(NULL, &e));
  CHECK(cpu_device.init(0));
  CHECK(cpu_device.primary_ctx_retain(&ctx, 0));
  CHECK(cpu_device.ctx_set_current(ctx));
  CHECK(cpu_coll.comm_init_rank(&r.comm, ranks, board->id, rank));
  CHECK(cpu_device.mem_alloc(&r.send, largest));
  CHECK(cpu_device.mem_alloc(&r.recv, largest));
  memset((void *)(uintptr_t)r.send, 0, largest);
  memset((void *)(uintptr_t)r.recv, 0, largest);
  for (size_t bytes = SMALLEST; bytes <= largest; bytes *= 2) {
    double alone = measure(&r, bytes, true);
    double streamed = measure(&r, bytes, false);
    double copy = 0;
    if (rank == 0) {
      copy = measure_memcpy(bytes, (char *)(uintptr_t)r.recv, (char *)(uintptr_t)r.send);
      print_row(bytes, ranks, alone, streamed, copy);
    }
  }
  CHECK(cpu_coll.comm_destroy(r.comm));
}

int main(int argc, char **argv) {
  int ranks = argc > 1 ? atoi(argv[1]) : 2, failures = 0;
  size_t largest = argc > 2 ? strtoull(argv[2], NULL, 0) : (size_t)64 << 20;
  struct board *board =
    mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(board == MAP_FAILED);
  CHECK(cpu_coll.get_unique_id(&board->id));
  printf("%d ranks; us: a call and its synchronisation, a call among many; GB/s: bus "
         "bandwidth of both, one core's memcpy\n%10s %12s %12s %10s %10s %12s\n",
         ranks,
         "bytes",
         "alone_us",
         "streamed_us",
         "alone",
         "streamed",
         "memcpy");
  fflush(stdout);
  for (int r = 0; r < ranks; r++) {
    if (fork()) continue;
    run_rank(board, r, ranks, largest);
    _exit(0);
  }
  for (int r = 0; r < ranks; r++) {
    int status;
    wait(&status);
    failures += status != 0;
  }
  return failures > 0;
}
