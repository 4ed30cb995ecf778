/* AllReduce of the CPU backend beside MPI_Allreduce, fp32 sum, in the same processes, turn
   about: prints a table, judges nothing.
   mpirun -n RANKS bench_vs_mpi [smallest_bytes [largest_bytes [rounds]]] */

#include "host/backend.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(call)                                                                        \
  do {                                                                                     \
    int rc_ = (call);                                                                      \
    if (rc_) {                                                                             \
      fprintf(stderr, "%s: %d %s\n", #call, rc_, cpu_coll.get_last_error(NULL));           \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                        \
    }                                                                                      \
  } while (0)

enum { ROUNDS_MAX = 101 };
enum way { BY_MPI, BY_CHOICE, BY_LL, BY_LL128, BY_SIMPLE, WAYS };
static const char *const names[WAYS] = {"MPI", "nclua", "LL", "LL128", "Simple"};

struct bench {
  int rank, ranks, rounds;
  float *send, *recv;
  ncclComm_t comms[WAYS];
  double us[WAYS][ROUNDS_MAX];
  size_t last_won[WAYS]; /* the largest size at which the way beat Simple */
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

static double median(double *v, int n) {
  qsort(v, (size_t)n, sizeof *v, compare);
  return v[n / 2];
}

/* Each call is waited for, as MPI's is. */
static void call(const struct bench *b, enum way way, size_t count) {
  if (way == BY_MPI) {
    MPI_Allreduce(b->send, b->recv, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return;
  }
  CHECK(cpu_coll.all_reduce(
    b->send, b->recv, count, ncclFloat32, ncclSum, b->comms[way], NULL));
  CHECK(cpu_device.stream_synchronize(NULL));
}

static double time_calls(const struct bench *b, enum way way, size_t bytes, int calls) {
  call(b, way, bytes / 4);
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now_us();
  for (int i = 0; i < calls; i++) call(b, way, bytes / 4);
  return (now_us() - start) / calls;
}

static double time_memcpy(const struct bench *b, size_t bytes, int calls) {
  double start = now_us();
  for (int i = 0; i < calls; i++) {
    memcpy(b->recv, b->send, bytes);
    __asm__ volatile("" ::: "memory");
  }
  return (now_us() - start) / calls;
}

static void print_row(struct bench *b, size_t bytes, double copy) {
  double bus = 2.0 * (b->ranks - 1) / b->ranks * (double)bytes / 1e3, us[WAYS];
  printf("%9zu", bytes);
  for (int w = 0; w < WAYS; w++) {
    us[w] = median(b->us[w], b->rounds);
    printf(" %9.2f", us[w]);
  }
  for (int w = BY_LL; w < BY_SIMPLE; w++) {
    if (us[w] < 0.98 * us[BY_SIMPLE]) b->last_won[w] = bytes; /* less is noise */
  }
  printf(" %8.2f %8.2f %7.2f %8.2f %6.0f%%\n",
         bus / us[BY_MPI],
         bus / us[BY_CHOICE],
         us[BY_MPI] / us[BY_CHOICE],
         (double)bytes / 1e3 / copy,
         100 * bus / us[BY_CHOICE] * copy / (double)bytes * 1e3);
  fflush(stdout);
}

/* One core's memcpy is measured while the others wait. */
static void run_size(struct bench *b, size_t bytes) {
  double copies[ROUNDS_MAX];
  int calls = bytes < (1 << 18) ? 100 : bytes < (1 << 22) ? 8 : 2;
  for (int i = 0; i < b->rounds; i++) {
    for (enum way w = 0; w < WAYS; w++) b->us[w][i] = time_calls(b, w, bytes, calls);
    MPI_Barrier(MPI_COMM_WORLD);
    if (b->rank == 0) copies[i] = time_memcpy(b, bytes, calls);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (b->rank == 0) print_row(b, bytes, median(copies, b->rounds));
}

static void open_comm(struct bench *b, enum way way) {
  ncclUniqueId id;
  setenv("NCCL_PROTO", names[way], 1);
  if (way == BY_CHOICE) unsetenv("NCCL_PROTO");
  if (b->rank == 0) CHECK(cpu_coll.get_unique_id(&id));
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  CHECK(cpu_coll.comm_init_rank(&b->comms[way], b->ranks, id, b->rank));
}

static void open_all(struct bench *b, size_t largest) {
  struct err e;
  CUcontext ctx;
  CUdeviceptr send, recv;
  CHECK(cpu_device.load(NULL, &e));
  CHECK(cpu_coll.load(NULL, &e));
  CHECK(cpu_device.init(0));
  CHECK(cpu_device.primary_ctx_retain(&ctx, 0));
  CHECK(cpu_device.ctx_set_current(ctx));
  CHECK(cpu_device.mem_alloc(&send, largest));
  CHECK(cpu_device.mem_alloc(&recv, largest));
  b->send = memset((void *)(uintptr_t)send, 0, largest);
  b->recv = memset((void *)(uintptr_t)recv, 0, largest);
  for (enum way w = BY_CHOICE; w < WAYS; w++) open_comm(b, w);
}

static void print_head(const struct bench *b) {
  if (b->rank) return;
  printf("%d ranks, us a call (median of %d); GB/s: bus bandwidth of MPI and nclua, what\n"
         "nclua is faster, one core's memcpy, what share of that the bus bandwidth is\n"
         "%9s",
         b->ranks,
         b->rounds,
         "bytes");
  for (int w = 0; w < WAYS; w++) printf(" %9s", names[w]);
  printf(" %8s %8s %7s %8s %7s\n", "MPI", "nclua", "faster", "memcpy", "share");
}

int main(int argc, char **argv) {
  static struct bench b;
  size_t smallest = argc > 1 ? strtoull(argv[1], NULL, 0) : 64;
  size_t largest = argc > 2 ? strtoull(argv[2], NULL, 0) : (size_t)64 << 20;
  b.rounds = argc > 3 ? atoi(argv[3]) : 21;
  if (smallest < 4 || b.rounds < 1 || b.rounds > ROUNDS_MAX) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &b.ranks);
  open_all(&b, largest);
  print_head(&b);
  for (size_t bytes = smallest; bytes <= largest; bytes *= 2) run_size(&b, bytes);
  for (int w = BY_LL; w < BY_SIMPLE && b.rank == 0; w++) {
    printf("%s beats Simple up to %zu bytes\n", names[w], b.last_won[w]);
  }
  for (enum way w = BY_CHOICE; w < WAYS; w++) CHECK(cpu_coll.comm_destroy(b.comms[w]));
  MPI_Finalize();
  return 0;
}
