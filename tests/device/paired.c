/* nclua with one more module, `paired`: the C loops to which paired.lua compares its own
   calls, over the same communicator, stream and memory.

     paired OUTPUT.csv [CYCLES]      in the root of the tree, for lib/ */

#include "bindings/nccl.h"
#include "bindings/open.h"
#include "host/backend.h"
#include "host/state.h"

#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* One measured region: `calls` in memory that advances by `step` bytes. */
struct loop {
  const struct device_api *device;
  const struct coll_api *coll;
  ncclComm_t comm;
  CUstream stream;
  CUdeviceptr memory;
  size_t bytes, step;
  int calls;
};

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* comm, buffer, stream, calls, bytes, step */
static struct loop check_loop(lua_State *L) {
  const struct comm *c = nccl_checkcomm(L, 1);
  const struct buffer *b = cuda_checkbuffer(L, 2);
  CUstream stream = cuda_optstream(L, 3, b->device);
  return (struct loop){
    c->cuda->api,
    c->api,
    c->handle,
    stream,
    b->ptr,
    (size_t)luaL_checkinteger(L, 5),
    (size_t)luaL_checkinteger(L, 6),
    (int)luaL_checkinteger(L, 4),
  };
}

static int reduce(const struct loop *l) {
  for (int i = 0; i < l->calls; i++) {
    void *at = (void *)(uintptr_t)(l->memory + (size_t)i * l->step);
    ncclResult_t rc =
      l->coll->all_reduce(at, at, l->bytes / 2, ncclFloat16, ncclSum, l->comm, l->stream);
    if (rc) return (int)rc;
  }
  return 0;
}

static void check(lua_State *L, const char *what, int rc) {
  if (rc) luaL_error(L, "%s: %d", what, rc);
}

static CUevent events[2];

static void begin(lua_State *L, const struct loop *l) {
  for (int i = 0; i < 2 && !events[i]; i++) {
    check(L, "event_create", l->device->event_create(&events[i], CU_EVENT_DEFAULT));
  }
  check(L, "event_record", l->device->event_record(events[0], l->stream));
}

/* Pushes the device's time in us. */
static void end(lua_State *L, const struct loop *l) {
  float ms = 0;
  check(L, "event_record", l->device->event_record(events[1], l->stream));
  check(L, "synchronize", l->device->stream_synchronize(l->stream));
  check(L, "elapsed", l->device->event_elapsed_time(&ms, events[0], events[1]));
  lua_pushnumber(L, (double)ms * 1000);
}

/* gpu_us, host_us_a_call */
static int eager(lua_State *L) {
  const struct loop l = check_loop(L);
  begin(L, &l);
  const int64_t start = now_ns();
  check(L, "all_reduce", reduce(&l));
  const double host_us = (double)(now_ns() - start) / 1000 / l.calls;
  end(L, &l);
  lua_pushnumber(L, host_us);
  return 2;
}

/* A graph of the calls, as a light userdata. */
static int capture(lua_State *L) {
  const struct loop l = check_loop(L);
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  check(
    L, "begin", l.device->stream_begin_capture(l.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  check(L, "all_reduce", reduce(&l));
  check(L, "end", l.device->stream_end_capture(l.stream, &graph));
  check(L, "instantiate", l.device->graph_instantiate(&exec, graph, 0));
  check(L, "destroy", l.device->graph_destroy(graph));
  lua_pushlightuserdata(L, exec);
  return 1;
}

/* ..., exec: gpu_us */
static int launch(lua_State *L) {
  const struct loop l = check_loop(L);
  begin(L, &l);
  check(L, "launch", l.device->graph_launch(lua_touserdata(L, 7), l.stream));
  end(L, &l);
  return 1;
}

/* ..., exec */
static int destroy(lua_State *L) {
  const struct loop l = check_loop(L);
  check(L, "destroy", l.device->graph_exec_destroy(lua_touserdata(L, 7)));
  return 0;
}

static const luaL_Reg functions[] = {
  {"eager", eager},
  {"capture", capture},
  {"launch", launch},
  {"destroy", destroy},
  {NULL, NULL},
};

static int open_paired(lua_State *L) {
  luaL_newlib(L, functions);
  return 1;
}

static int run(lua_State *L) {
  open_modules(L);
  luaL_requiref(L, "paired", open_paired, 0);
  if (state_load_embedded(L, "paired_script")) return lua_error(L);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_call(L, 2, 0);
  return 0;
}

int main(int argc, char **argv) {
  struct err e;
  const char *backend = getenv("NCLUA_BACKEND");
  if (argc < 2 || backend_choose(backend ? backend : "auto", NULL, &e)) {
    fprintf(stderr, "usage: paired OUTPUT.csv [CYCLES]\n");
    return 2;
  }
  lua_State *L = luaL_newstate();
  state_open(L);
  lua_pushcfunction(L, state_traceback);
  lua_pushcfunction(L, run);
  lua_pushstring(L, argv[1]);
  lua_pushinteger(L, argc > 2 ? atoi(argv[2]) : 50);
  const int rc = lua_pcall(L, 2, 0, 1);
  if (rc) fprintf(stderr, "paired: %s\n", lua_tostring(L, -1));
  lua_close(L);
  return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
