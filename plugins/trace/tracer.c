#include "plugins/trace/tracer.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PATH = 4096 };
enum state { UNUSED, RUNNING, ENDED };

static struct {
  pthread_mutex_t lock;
  enum state state;
  struct writer *writer;              /* atomic; NULL unless RUNNING */
  struct writer *retired;             /* the last one: producers may still hold it */
  const struct tracer_source *source; /* atomic */
} tracer = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct writer *tracer_current(void) {
  return __atomic_load_n(&tracer.writer, __ATOMIC_ACQUIRE);
}

int64_t tracer_time(const struct writer *w) {
  return session_now_ns() - writer_session(w)->start_ns;
}

static const struct tracer_source *source(void) {
  return __atomic_load_n(&tracer.source, __ATOMIC_ACQUIRE);
}

void tracer_connect(const struct tracer_source *s) {
  __atomic_store_n(&tracer.source, s, __ATOMIC_RELEASE);
}

void tracer_say(const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  fprintf(stderr, "nclua trace: %s\n", text);
  struct writer *w = tracer_current();
  if (!w) return;
  struct trace_row row = {.table = TRACE_DIAGNOSTIC};
  PUT(&row, DIAGNOSTIC, timestamp, tracer_time(w));
  PUT(&row, DIAGNOSTIC, severity, 2); /* nsys: a warning */
  PUT_TEXT(&row, DIAGNOSTIC, text, text);
  PUT(&row, DIAGNOSTIC, globalPid, writer_session(w)->global_pid);
  writer_put(w, &row);
}

/* A fork has one thread of its parent's, and none that writes. It may begin a trace of its
   own, as it may use a GPU that its parent has not used. */
static void after_fork(void) {
  pthread_mutex_init(&tracer.lock, NULL);
  if (source()) source()->after_fork();
  if (tracer.writer) tracer.retired = tracer.writer;
  tracer.writer = NULL;
  tracer.state = UNUSED;
}

static size_t memory_bytes(void) {
  const char *mebibytes = getenv("NCLUA_TRACE_MEMORY");
  const long n = mebibytes ? atol(mebibytes) : 0;
  return n > 0 && n < 1 << 20 ? (size_t)n << 20 : 0;
}

static void decode(void *context, struct store *store, const uint8_t *data, size_t bytes) {
  (void)context;
  source()->decode(store, data, bytes);
}

static void tick(void *context, struct store *store) {
  (void)context;
  if (source()) source()->tick(store);
}

/* With the lock held. */
static struct writer *start(const char *path, char *why, size_t size) {
  static bool is_watching_forks;
  if (tracer.state == RUNNING) {
    snprintf(why, size, "a trace is running already");
    return NULL;
  }
  const struct writer_options options = {
    .path = path,
    .session = session_new(),
    .memory_bytes = memory_bytes(),
    .decode = decode,
    .tick = tick,
  };
  struct writer *w = writer_start(&options, why, size);
  if (!w) return NULL;
  if (!is_watching_forks) pthread_atfork(NULL, NULL, after_fork);
  is_watching_forks = true;
  tracer.state = RUNNING;
  __atomic_store_n(&tracer.writer, w, __ATOMIC_RELEASE);
  return w;
}

struct writer *tracer_start(const char *path, char *why, size_t size) {
  pthread_mutex_lock(&tracer.lock);
  struct writer *w = start(path, why, size);
  pthread_mutex_unlock(&tracer.lock);
  return w;
}

static void stop_at_exit(void) {
  char why[256];
  tracer_stop(why, sizeof why);
  if (why[0]) fprintf(stderr, "nclua trace: the file is not complete: %s\n", why);
}

void tracer_stop_at_exit(void) {
  atexit(stop_at_exit);
}

static struct writer *start_named(const char *pattern, char *why, size_t size) {
  static bool is_stopping_at_exit;
  char path[PATH];
  snprintf(why, size, "the path '%.64s...' is too long", pattern);
  if (session_name(pattern, path, sizeof path)) return NULL;
  struct writer *w = start(path, why, size);
  if (w && !is_stopping_at_exit) tracer_stop_at_exit();
  is_stopping_at_exit = is_stopping_at_exit || w;
  return w;
}

struct writer *tracer_start_named(const char *pattern, char *why, size_t size) {
  pthread_mutex_lock(&tracer.lock);
  struct writer *w = start_named(pattern, why, size);
  pthread_mutex_unlock(&tracer.lock);
  return w;
}

/* With the lock held: the trace that the environment asks for. */
static struct writer *start_unasked(void) {
  char why[256];
  const char *pattern = getenv("NCLUA_TRACE_FILE");
  if (!pattern || !*pattern) return NULL;
  struct writer *w = start_named(pattern, why, sizeof why);
  if (w) return w;
  tracer.state = ENDED; /* said once */
  fprintf(stderr, "nclua trace: %s\n", why);
  return NULL;
}

struct writer *tracer_writer(void) {
  struct writer *w = tracer_current();
  if (w || __atomic_load_n(&tracer.state, __ATOMIC_RELAXED) == ENDED) return w;
  pthread_mutex_lock(&tracer.lock);
  w = tracer.state == UNUSED ? start_unasked() : tracer.writer;
  pthread_mutex_unlock(&tracer.lock);
  return w;
}

/* The writer is not freed: a producer on another thread may be about to use it. */
void tracer_stop(char *why, size_t size) {
  why[0] = '\0';
  if (source()) source()->stop();
  pthread_mutex_lock(&tracer.lock);
  struct writer *w = tracer.writer;
  tracer.state = ENDED;
  __atomic_store_n(&tracer.writer, NULL, __ATOMIC_RELEASE);
  if (w) {
    writer_keep(w, tracer.retired);
    tracer.retired = w;
  }
  pthread_mutex_unlock(&tracer.lock);
  if (w) writer_stop(w, why, size);
}
