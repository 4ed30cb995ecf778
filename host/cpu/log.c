#include "host/cpu/log.h"
#include "host/backend.h"
#include "host/cpu/log_settings.h"
#include "host/cpu/stream.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE_BYTES 1024
#define UNREAD (-1)

static struct cpu_log_settings settings;
static _Atomic int level = UNREAD; /* settings.level, once they are read */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int line_device = -1;

/* A rank that was forked may have another NCCL_DEBUG, and its "%p" is another. */
static void forget(void) {
  atomic_store(&level, UNREAD);
}

static int read_level(void) {
  static bool watches_forks;
  pthread_mutex_lock(&lock);
  if (atomic_load(&level) == UNREAD) {
    if (!watches_forks) pthread_atfork(NULL, NULL, forget);
    watches_forks = true;
    cpu_log_settings_read(&settings);
    atomic_store(&level, settings.level);
  }
  pthread_mutex_unlock(&lock);
  return settings.level;
}

static bool is_on(enum cpu_log_level at, unsigned long subsystems) {
  int most = atomic_load_explicit(&level, memory_order_acquire);
  if (most == UNREAD) most = read_level();
  return most >= (int)at && settings.subsystems & subsystems;
}

bool cpu_log_is_on(unsigned long subsystems) {
  return is_on(CPU_LOG_INFO, subsystems);
}

int cpu_log_set_device(int device) {
  const int before = line_device;
  line_device = device;
  return before;
}

/* NCCL names device 0 where no device is current. */
static int find_device(void) {
  const int device = line_device >= 0 ? line_device : cpu_device_current();
  return device < 0 ? 0 : device;
}

/* A line on its way; text that does not fit is cut. */
struct line {
  size_t length;
  char text[LINE_BYTES];
};

static void add_list(struct line *l, const char *format, va_list args) {
  const size_t room = sizeof l->text - l->length;
  const int wanted = vsnprintf(l->text + l->length, room, format, args);
  if (wanted > 0) l->length += (size_t)wanted < room ? (size_t)wanted : room - 1;
}

static void add(struct line *l, const char *format, ...)
  __attribute__((format(printf, 2, 3)));

static void add(struct line *l, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add_list(l, format, args);
  va_end(args);
}

static void add_stamp(struct line *l, enum cpu_log_level at) {
  if (!(settings.stamped >> at & 1)) return;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  l->length += cpu_log_settings_stamp(
    &settings, &now, l->text + l->length, sizeof l->text - l->length);
}

static void begin(struct line *l, enum cpu_log_level at, const char *file, int number) {
  l->length = 0;
  if (at == CPU_LOG_WARN) add(l, "\n");
  add_stamp(l, at);
  if (at == CPU_LOG_VERSION) return;
  add(l, "%s:%d:%ld ", settings.host, (int)getpid(), syscall(SYS_gettid));
  if (at == CPU_LOG_WARN)
    add(l, "[%d] %s:%d NCCL WARN ", find_device(), file, number);
  else if (at == CPU_LOG_INFO)
    add(l, "[%d] NCCL INFO ", find_device());
  else if (at == CPU_LOG_TRACE)
    add(l, "[%d] %s:%d NCCL TRACE ", find_device(), file, number);
}

/* One write a line, for what several processes print into one pipe. Ranks leave without
   flushing anything. */
static void end(struct line *l) {
  l->text[l->length++] = '\n';
  pthread_mutex_lock(&lock);
  fwrite(l->text, 1, l->length, settings.file);
  fflush(settings.file);
  pthread_mutex_unlock(&lock);
}

void cpu_log(unsigned long subsystems, const char *format, ...) {
  if (!is_on(CPU_LOG_INFO, subsystems)) return;
  struct line l;
  va_list args;
  begin(&l, CPU_LOG_INFO, NULL, 0);
  va_start(args, format);
  add_list(&l, format, args);
  va_end(args);
  end(&l);
}

void cpu_log_warn(const char *file, int line, const char *text) {
  if (!is_on(CPU_LOG_WARN, CPU_LOG_ALL)) return;
  struct line l;
  begin(&l, CPU_LOG_WARN, file, line);
  add(&l, "%s", text);
  end(&l);
}

void cpu_log_plugin(int at, unsigned long subsystems, const char *file, int line,
                    const char *format, ...) {
  if (at < CPU_LOG_VERSION || at > CPU_LOG_TRACE) return;
  if (!is_on((enum cpu_log_level)at, subsystems)) return;
  struct line l;
  va_list args;
  begin(&l, (enum cpu_log_level)at, file ? file : "", line);
  va_start(args, format);
  add_list(&l, format, args);
  va_end(args);
  end(&l);
}

static void print(enum cpu_log_level at, const char *text) {
  struct line l;
  begin(&l, at, NULL, 0);
  add(&l, "%s", text);
  end(&l);
}

/* The version's "cuda" is that of the virtual driver. */
void cpu_log_version(int rank) {
  static atomic_flag done = ATOMIC_FLAG_INIT;
  if (!is_on(rank == 0 ? CPU_LOG_VERSION : CPU_LOG_INFO, CPU_LOG_ALL)) return;
  if (atomic_flag_test_and_set(&done)) return;
  const enum cpu_log_level at =
    settings.level > CPU_LOG_WARN ? CPU_LOG_INFO : CPU_LOG_VERSION;
  char text[256], model[200] = "";
  int nccl = 0, driver = 0;
  cpu_coll.get_version(&nccl);
  cpu_device.driver_get_version(&driver);
  cpu_device.device_get_name(model, sizeof model, 0);
  if (at == CPU_LOG_INFO) cpu_log(CPU_LOG_INIT, "cudaDriverVersion %d", driver);
  snprintf(text,
           sizeof text,
           "NCCL version %d.%d.%d+cuda%d.%d",
           nccl / 10000,
           nccl / 100 % 100,
           nccl % 100,
           driver / 1000,
           driver % 1000 / 10);
  print(at, text);
  snprintf(text, sizeof text, "This is not NCCL: the ranks run on %s", model);
  print(at, text);
}
