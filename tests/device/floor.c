/* The floor: NCCL called from plain C, one process a GPU. Prints rows of CSV,
   "program,case,bytes,metric,cycle,rank,value".

     gcc -O2 -I. tests/device/floor.c -o floor -ldl -lpthread
     floor [--ranks N] [--cycles N] [--only start]
     floor --exec PROGRAM [ARGUMENT ...]   starts a program with FLOOR_START_NS set

   NCLUA_CUDA_LIB and NCLUA_NCCL_LIB name other libraries, as for nclua. */

#include "host/abi_cuda.h"
#include "host/abi_nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 160, WARM_UPS = 3, PIECES = 1280, TOTAL_BYTES = 80 << 20, MOST_RANKS = 16 };

static CUresult (*init)(unsigned);
static CUresult (*device_get)(CUdevice *, int);
static CUresult (*ctx_retain)(CUcontext *, CUdevice);
static CUresult (*ctx_set_current)(CUcontext);
static CUresult (*mem_alloc)(CUdeviceptr *, size_t);
static CUresult (*memset_d8)(CUdeviceptr, unsigned char, size_t, CUstream);
static CUresult (*stream_create)(CUstream *, unsigned, int);
static CUresult (*stream_synchronize)(CUstream);
static CUresult (*event_create)(CUevent *, unsigned);
static CUresult (*event_record)(CUevent, CUstream);
static CUresult (*event_elapsed)(float *, CUevent, CUevent);
static CUresult (*begin_capture)(CUstream, int);
static CUresult (*end_capture)(CUstream, CUgraph *);
static CUresult (*graph_instantiate)(CUgraphExec *, CUgraph, unsigned long long);
static CUresult (*graph_launch)(CUgraphExec, CUstream);
static CUresult (*graph_exec_destroy)(CUgraphExec);
static CUresult (*graph_destroy)(CUgraph);
static ncclResult_t (*get_unique_id)(ncclUniqueId *);
static ncclResult_t (*comm_init_rank)(ncclComm_t *, int, ncclUniqueId, int);
static ncclResult_t (*comm_destroy)(ncclComm_t);
static ncclResult_t (*all_reduce)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
                                  ncclComm_t, CUstream);

static const struct {
  const char *name;
  void *slot;
} cuda_symbols[] =
  {
    {"cuInit", &init},
    {"cuDeviceGet", &device_get},
    {"cuDevicePrimaryCtxRetain", &ctx_retain},
    {"cuCtxSetCurrent", &ctx_set_current},
    {"cuMemAlloc_v2", &mem_alloc},
    {"cuMemsetD8Async", &memset_d8},
    {"cuStreamCreateWithPriority", &stream_create},
    {"cuStreamSynchronize", &stream_synchronize},
    {"cuEventCreate", &event_create},
    {"cuEventRecord", &event_record},
    {"cuEventElapsedTime", &event_elapsed},
    {"cuStreamBeginCapture_v2", &begin_capture},
    {"cuStreamEndCapture", &end_capture},
    {"cuGraphInstantiateWithFlags", &graph_instantiate},
    {"cuGraphLaunch", &graph_launch},
    {"cuGraphExecDestroy", &graph_exec_destroy},
    {"cuGraphDestroy", &graph_destroy},
},
  nccl_symbols[] = {
    {"ncclGetUniqueId", &get_unique_id},
    {"ncclCommInitRank", &comm_init_rank},
    {"ncclCommDestroy", &comm_destroy},
    {"ncclAllReduce", &all_reduce},
};

/* What the ranks share. */
static struct shared {
  pthread_barrier_t barrier;
  ncclUniqueId id;
} * shared;

static int rank, ranks = 2, cycles = 10;
static ncclComm_t comm;
static CUstream stream;
static CUevent before, after;
static CUdeviceptr memory;

static void die(const char *what, int rc) {
  fprintf(stderr, "floor: rank %d: %s: %d\n", rank, what, rc);
  exit(1);
}

#define CHECK(call)                                                                        \
  do {                                                                                     \
    int check_rc = (int)(call);                                                            \
    if (check_rc) die(#call, check_rc);                                                    \
  } while (0)

static void *open_library(const char *variable, const char *name) {
  const char *named = getenv(variable);
  void *library = dlopen(named && *named ? named : name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "floor: %s\n", dlerror());
    exit(1);
  }
  return library;
}

static void fill(void *library, const char *name, void *slot) {
  void *symbol = dlsym(library, name);
  if (!symbol) {
    fprintf(stderr, "floor: no '%s'\n", name);
    exit(1);
  }
  memcpy(slot, &symbol, sizeof symbol);
}

static void open_libraries(void) {
  void *cuda = open_library("NCLUA_CUDA_LIB", "libcuda.so.1");
  void *nccl = open_library("NCLUA_NCCL_LIB", "libnccl.so.2");
  for (size_t i = 0; i < sizeof cuda_symbols / sizeof *cuda_symbols; i++) {
    fill(cuda, cuda_symbols[i].name, cuda_symbols[i].slot);
  }
  for (size_t i = 0; i < sizeof nccl_symbols / sizeof *nccl_symbols; i++) {
    fill(nccl, nccl_symbols[i].name, nccl_symbols[i].slot);
  }
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void barrier(void) {
  pthread_barrier_wait(&shared->barrier);
}

/* The CPUs that this rank may use are those of the parent: run it under taskset, or not. */
static void join(void) {
  CUdevice device;
  CUcontext context;
  CHECK(init(0));
  CHECK(device_get(&device, rank));
  CHECK(ctx_retain(&context, device));
  CHECK(ctx_set_current(context));
  if (rank == 0) CHECK(get_unique_id(&shared->id));
  barrier();
  CHECK(comm_init_rank(&comm, ranks, shared->id, rank));
  CHECK(stream_create(&stream, CU_STREAM_NON_BLOCKING, 0));
  CHECK(event_create(&before, CU_EVENT_DEFAULT));
  CHECK(event_create(&after, CU_EVENT_DEFAULT));
  CHECK(mem_alloc(&memory, TOTAL_BYTES));
}

static void row(const char *name, size_t bytes, const char *metric, int cycle,
                double value) {
  if (cycle < 0) return; /* a warm-up */
  printf("c,%s,%zu,%s,%d,%d,%.3f\n", name, bytes, metric, cycle, rank, value);
}

/* `calls` of `bytes` each, one after the other in memory where `step` is not 0. */
static void reduce(int calls, size_t bytes, size_t step) {
  for (int i = 0; i < calls; i++) {
    void *at = (void *)(uintptr_t)(memory + (size_t)i * step);
    CHECK(all_reduce(at, at, bytes / 2, ncclFloat16, ncclSum, comm, stream));
  }
}

static double elapsed_us(void) {
  float ms = 0;
  CHECK(stream_synchronize(stream));
  CHECK(event_elapsed(&ms, before, after));
  return (double)ms * 1000;
}

static void measure_eager(const char *name, int calls, size_t bytes, size_t step,
                          int cycle) {
  CHECK(stream_synchronize(stream));
  barrier();
  CHECK(event_record(before, stream));
  int64_t start = now_ns();
  reduce(calls, bytes, step);
  double host_us = (double)(now_ns() - start) / 1000 / calls;
  CHECK(event_record(after, stream));
  row(name, bytes, "gpu_us", cycle, elapsed_us());
  row(name, bytes, "host_us_a_call", cycle, host_us);
}

static void measure_graph(CUgraphExec graph, size_t bytes, int cycle) {
  CHECK(stream_synchronize(stream));
  barrier();
  CHECK(event_record(before, stream));
  CHECK(graph_launch(graph, stream));
  CHECK(event_record(after, stream));
  row("graph", bytes, "gpu_us", cycle, elapsed_us());
}

static void decode(size_t bytes) {
  CUgraph graph;
  CUgraphExec exec;
  for (int i = -WARM_UPS; i < cycles; i++) measure_eager("eager", CALLS, bytes, 0, i);
  CHECK(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  reduce(CALLS, bytes, 0);
  CHECK(end_capture(stream, &graph));
  CHECK(graph_instantiate(&exec, graph, 0));
  CHECK(graph_destroy(graph));
  for (int i = -WARM_UPS; i < cycles; i++) measure_graph(exec, bytes, i);
  CHECK(graph_exec_destroy(exec)); /* before the communicator, which would hang */
}

static void run_rank(int only_start, int64_t start_ns) {
  static const size_t sizes[] = {8 << 10, 64 << 10, 256 << 10, 1 << 20};
  join();
  reduce(1, 8 << 10, 0);
  CHECK(stream_synchronize(stream));
  row("start", 8 << 10, "first_us", 0, (double)(now_ns() - start_ns) / 1000);
  CHECK(memset_d8(memory, 0, TOTAL_BYTES, stream)); /* sums of zeros stay finite */
  for (int i = 0; i < 4 && !only_start; i++) decode(sizes[i]);
  size_t piece = TOTAL_BYTES / PIECES;
  for (int i = -1; i < cycles && !only_start; i++) {
    measure_eager("pieces", PIECES, piece, piece, i);
  }
  fflush(stdout);
  barrier();
  CHECK(comm_destroy(comm));
}

/* One process a rank; the status is 0 if all ended with 0. */
static int fork_ranks(int only_start, int64_t start_ns) {
  pthread_barrierattr_t attributes;
  pid_t pids[MOST_RANKS];
  int failed = 0, status = 0;
  int flags = MAP_SHARED | MAP_ANONYMOUS;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (shared == MAP_FAILED) die("mmap", 0);
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attributes, (unsigned)ranks);
  for (rank = 0; rank < ranks; rank++) {
    pids[rank] = fork();
    if (pids[rank] != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the parent may be ended by `timeout` */
    run_rank(only_start, start_ns);
    exit(0);
  }
  for (int i = 0; i < ranks; i++) {
    wait(&status);
    failed |= status;
    for (int r = 0; status && r < ranks; r++) kill(pids[r], SIGKILL); /* they would wait */
  }
  return failed != 0;
}

static int start_program(char **argv) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)now_ns());
  setenv("FLOOR_START_NS", text, 1);
  execvp(argv[0], argv);
  perror(argv[0]);
  return 127;
}

int main(int argc, char **argv) {
  int only_start = 0;
  const char *told = getenv("FLOOR_START_NS");
  int64_t start_ns = told ? atoll(told) : now_ns();
  if (argc > 2 && strcmp(argv[1], "--exec") == 0) return start_program(argv + 2);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--ranks") == 0) ranks = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--cycles") == 0) cycles = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--only") == 0) only_start = 1;
  }
  if (ranks < 1 || ranks > MOST_RANKS || cycles < 1) die("usage", 0);
  open_libraries(); /* before the fork: nothing is initialised by it */
  return fork_ranks(only_start, start_ns);
}
