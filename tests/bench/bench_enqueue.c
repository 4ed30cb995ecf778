/* What one Lua call that enqueues a collective costs over the call of the backend's
   function pointer itself: arguments, checks, flight recorder. A backend whose collectives
   do nothing stands behind both, and rounds of either kind alternate.

     build/tests/bench/bench_enqueue [calls a round [rounds]] */

#include "bindings/open.h"
#include "host/backend.h"
#include "host/state.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_ROUNDS = 999 };

struct ncclComm {
  int calls;
};

static struct ncclComm fake;

static int load(const char *library, struct err *e) {
  (void)library;
  (void)e;
  return 0;
}

static ncclResult_t get_version(int *version) {
  *version = 22803;
  return ncclSuccess;
}

static const char *get_error_string(ncclResult_t rc) {
  return rc ? "failed" : "no error";
}

static ncclResult_t comm_init_all(ncclComm_t *comms, int count, const int *devices) {
  (void)devices;
  for (int i = 0; i < count; i++) comms[i] = &fake;
  return ncclSuccess;
}

static ncclResult_t end(ncclComm_t comm) {
  (void)comm;
  return ncclSuccess;
}

static ncclResult_t async_error(ncclComm_t comm, ncclResult_t *state) {
  (void)comm;
  *state = ncclSuccess;
  return ncclSuccess;
}

static ncclResult_t one(const ncclComm_t comm, int *count) {
  (void)comm;
  *count = 1;
  return ncclSuccess;
}

static ncclResult_t zero(const ncclComm_t comm, int *index) {
  (void)comm;
  *index = 0;
  return ncclSuccess;
}

static ncclResult_t all_reduce(const void *send, void *recv, size_t count,
                               ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               CUstream stream) {
  (void)send, (void)recv, (void)count, (void)type, (void)op, (void)stream;
  comm->calls++;
  return ncclSuccess;
}

static ncclResult_t all_gather(const void *send, void *recv, size_t count,
                               ncclDataType_t type, ncclComm_t comm, CUstream stream) {
  (void)send, (void)recv, (void)count, (void)type, (void)stream;
  comm->calls++;
  return ncclSuccess;
}

static ncclResult_t send(const void *buffer, size_t count, ncclDataType_t type, int peer,
                         ncclComm_t comm, CUstream stream) {
  (void)buffer, (void)count, (void)type, (void)peer, (void)stream;
  comm->calls++;
  return ncclSuccess;
}

static ncclResult_t group(void) {
  return ncclSuccess;
}

static void use_null_backend(void) {
  struct err e;
  backend_choose("cpu", NULL, &e);
  cpu_coll = (struct coll_api){
    .name = "null",
    .load = load,
    .get_version = get_version,
    .get_error_string = get_error_string,
    .comm_init_all = comm_init_all,
    .comm_finalize = end,
    .comm_destroy = end,
    .comm_abort = end,
    .comm_get_async_error = async_error,
    .comm_count = one,
    .comm_cu_device = zero,
    .comm_user_rank = zero,
    .all_reduce = all_reduce,
    .all_gather = all_gather,
    .send = send,
    .group_start = group,
    .group_end = group,
  };
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double c_round(int calls) {
  char memory[64];
  const double start = now_ns();
  for (int i = 0; i < calls; i++) {
    cpu_coll.all_reduce(memory, memory, 16, ncclFloat32, ncclSum, &fake, NULL);
  }
  return (now_ns() - start) / calls;
}

static double lua_round(lua_State *L, int calls) {
  lua_pushvalue(L, -1);
  lua_pushinteger(L, calls);
  const double start = now_ns();
  lua_call(L, 1, 0);
  return (now_ns() - start) / calls;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return values[count / 2];
}

/* The case {name, function} is on top of the stack. */
static void measure(lua_State *L, int calls, int rounds) {
  static double from_c[MOST_ROUNDS], from_lua[MOST_ROUNDS];
  lua_rawgeti(L, -1, 2);
  lua_round(L, calls);
  for (int i = 0; i < rounds; i++) {
    from_c[i] = c_round(calls);
    from_lua[i] = lua_round(L, calls);
  }
  lua_pop(L, 1);
  lua_rawgeti(L, -1, 1);
  const double c = median(from_c, rounds), lua = median(from_lua, rounds);
  printf("%-42s %8.1f %8.1f %8.1f\n", lua_tostring(L, -1), c, lua, lua - c);
  lua_pop(L, 1);
}

static int run(lua_State *L) {
  const int calls = (int)luaL_checkinteger(L, 1), rounds = (int)luaL_checkinteger(L, 2);
  if (state_load_embedded(L, "bench_enqueue")) return lua_error(L);
  lua_call(L, 0, 1);
  printf("%-42s %8s %8s %8s\n", "ns a call, medians", "C", "Lua", "own");
  for (int i = 1; lua_rawgeti(L, 3, i) == LUA_TTABLE; i++) {
    measure(L, calls, rounds);
    lua_pop(L, 1);
  }
  return 0;
}

static int number(int argc, char **argv, int i, int otherwise, int most) {
  const int value = argc > i ? atoi(argv[i]) : otherwise;
  return value < 1 ? 1 : value > most ? most : value;
}

int main(int argc, char **argv) {
  use_null_backend();
  lua_State *L = luaL_newstate();
  state_open(L);
  open_modules(L);
  lua_pushcfunction(L, run);
  lua_pushinteger(L, number(argc, argv, 1, 100000, 100000000));
  lua_pushinteger(L, number(argc, argv, 2, 21, MOST_ROUNDS));
  const int rc = lua_pcall(L, 2, 0, 0);
  if (rc) fprintf(stderr, "bench_enqueue: %s\n", lua_tostring(L, -1));
  lua_close(L);
  return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
