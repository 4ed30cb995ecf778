/* What CUPTI records becomes part of the trace. CUDA's driver loads the plugin when
   CUDA_INJECTION64_PATH names it and calls InitializeInjection from cuInit. */
#include "plugins/trace/cupti.h"
#include "plugins/trace/decode.h"
#include "plugins/trace/devices.h"
#include "plugins/trace/kinds.h"
#include "plugins/trace/nvtx.h"
#include "plugins/trace/trace.h"
#include "plugins/trace/tracer.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
  pthread_mutex_t lock;
  bool is_open; /* the library */
  bool is_on;   /* atomic: callbacks may come */
  struct cupti cupti;
  struct decoder decoder;
  void *subscriber;
  uint64_t untimed_told;
  bool has_devices;
} inject = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* From here to `dropped`: on CUPTI's threads and the program's. They only move buffers. */
static void requested(uint8_t **buffer, size_t *bytes, size_t *most_records) {
  struct writer *w = tracer_current();
  *buffer = w ? writer_take(w) : NULL;
  *bytes = *buffer ? WRITER_BUFFER_BYTES : 0; /* without one CUPTI drops, and counts */
  *most_records = 0;                          /* as many as fit */
}

static void completed(void *ctx, uint32_t stream, uint8_t *buffer, size_t bytes,
                      size_t used) {
  (void)bytes;
  struct writer *w = tracer_current();
  if (!buffer || !w) return;
  writer_give(w, buffer, used);
  size_t dropped = 0;
  inject.cupti.activity_get_num_dropped_records(ctx, stream, &dropped);
  if (dropped) writer_lost(w, "CUPTI records", dropped);
}

static void ignore(void *context, int domain, uint32_t id, const void *data) {
  (void)context, (void)domain, (void)id, (void)data;
}

/* What CUPTI gave up on since the last time. */
static void store_untimed(struct store *store) {
  const struct decoder *d = &inject.decoder;
  if (d->untimed == inject.untimed_told) return;
  struct trace_row row = {.table = TRACE_LOST};
  PUT(&row, LOST, globalPid, d->session.global_pid);
  PUT(&row, LOST, timestamp, session_now_ns() - d->session.start_ns);
  PUT_TEXT(&row, LOST, source, "kernels without times");
  PUT(&row, LOST, count, d->untimed - inject.untimed_told);
  store_insert(store, &row);
  inject.untimed_told = d->untimed;
}

/* On the writer's thread. Where there are records the driver is initialised, and can say
   which GPUs there are. */
static void decode(struct store *store, const uint8_t *data, size_t bytes) {
  inject.decoder.own_tid = (uint32_t)gettid();
  decode_buffer(&inject.decoder, store, data, bytes);
  store_untimed(store);
  if (!inject.has_devices) inject.has_devices = devices_store(store) == 0;
}

/* CUPTI keeps a buffer until it is full, with its own flush period as well (seen with 13.0:
   kernels came only at the end): asked for, it gives what is complete. */
static void tick(struct store *store) {
  (void)store;
  const bool is_on = __atomic_load_n(&inject.is_on, __ATOMIC_ACQUIRE);
  if (is_on) inject.cupti.activity_flush_all(0);
}

/* CUPTI's clock is CLOCK_REALTIME on Linux so far; this does not rely on it. The shortest
   of some tries has the least in between. */
static int64_t measure_shift(void) {
  int64_t shift = 0, shortest = INT64_MAX;
  for (int i = 0; i < 20; i++) {
    uint64_t theirs = 0;
    const int64_t before = session_now_ns();
    if (inject.cupti.get_timestamp(&theirs)) return 0;
    const int64_t after = session_now_ns();
    if (after - before >= shortest) continue;
    shortest = after - before;
    shift = before + (after - before) / 2 - (int64_t)theirs;
  }
  return shift;
}

static void prepare_decoder(const struct writer *w) {
  uint32_t version = 0;
  inject.cupti.get_version(&version);
  inject.decoder = (struct decoder){
    .session = *writer_session(w),
    .shift_ns = measure_shift(),
    .layout = abi_layout(version),
    .next_record = inject.cupti.activity_get_next_record,
    .callback_name = inject.cupti.get_callback_name,
  };
  inject.untimed_told = 0;
  inject.has_devices = false;
}

static int start(struct writer *w, char *why, size_t size) {
  struct cupti *c = &inject.cupti;
  if (!inject.is_open && cupti_open(c, why, size)) return -1;
  inject.is_open = true;
  /* The claim comes first: a second profiler would get some records, and spoil the first's.
   */
  CUptiResult rc = c->subscribe(&inject.subscriber, ignore, NULL);
  if (rc) return cupti_explain(c, "cuptiSubscribe", rc, why, size);
  prepare_decoder(w);
  if (c->set_thread_id_type) c->set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  rc = c->activity_register_callbacks(requested, completed);
  if (rc) {
    cupti_explain(c, "cuptiActivityRegisterCallbacks", rc, why, size);
  } else if (kinds_enable(c, why, size) == 0) {
    __atomic_store_n(&inject.is_on, true, __ATOMIC_RELEASE);
    return 0;
  }
  c->unsubscribe(inject.subscriber);
  return -1;
}

/* What CUPTI still holds comes while the writer takes it. */
static void stop(void) {
  pthread_mutex_lock(&inject.lock);
  if (inject.is_on) {
    kinds_disable(&inject.cupti);
    inject.cupti.activity_flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    inject.cupti.unsubscribe(inject.subscriber);
    __atomic_store_n(&inject.is_on, false, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&inject.lock);
}

static void after_fork(void) {
  pthread_mutex_init(&inject.lock, NULL);
  inject.is_on = false;
}

static const struct tracer_source source = {decode, tick, stop, after_fork};

static int begin(struct writer *w, char *why, size_t size) {
  tracer_connect(&source);
  pthread_mutex_lock(&inject.lock);
  const int rc = inject.is_on ? 0 : start(w, why, size);
  pthread_mutex_unlock(&inject.lock);
  return rc;
}

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void) {
  char why[512];
  struct writer *w = tracer_writer();
  if (!w && !getenv("NCLUA_TRACE_FILE")) {
    fputs("nclua trace: NCLUA_TRACE_FILE does not name a file: nothing is recorded\n",
          stderr);
  }
  if (w && begin(w, why, sizeof why)) tracer_say("no GPU work is recorded: %s", why);
  tracer_stop_at_exit();
  return 1; /* the program goes on, whatever became of us */
}

int nclua_trace_start(const char *path, char *why, size_t size) {
  struct writer *w = tracer_start(path, why, size);
  if (!w) return -1;
  if (begin(w, why, size) == 0) return 0;
  char unused[8];
  tracer_stop(unused, sizeof unused);
  return -1;
}

int nclua_trace_stop(char *why, size_t size) {
  tracer_stop(why, size);
  return why[0] ? -1 : 0;
}

void nclua_trace_push(const char *text) {
  nvtx_push(text);
}

void nclua_trace_pop(void) {
  nvtx_pop();
}
