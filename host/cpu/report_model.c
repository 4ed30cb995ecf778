#include "host/cpu/report_model.h"
#include "host/cpu/log.h"

#include <stdarg.h>
#include <stdio.h>

enum { BLOCK = 3 }; /* algorithms side by side */

/* A line or message that is put together; what does not fit is left out. */
struct text {
  size_t length;
  char bytes[1024];
};

static void add(struct text *t, const char *format, ...)
  __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const size_t room = sizeof t->bytes - t->length;
  const int wanted = vsnprintf(t->bytes + t->length, room, format, args);
  va_end(args);
  if (wanted > 0) t->length += (size_t)wanted < room ? (size_t)wanted : room - 1;
}

void cpu_report_matrix(const struct cpu_enabled *e) {
  struct text t = {0};
  if (!cpu_log_is_on(CPU_LOG_ENV)) return;
  add(&t, "\n     Function | ");
  for (int p = 0; p < CPU_PROTOCOLS; p++) add(&t, "%8s  ", cpu_protocol_names[p]);
  add(&t, " | ");
  for (int a = 0; a < CPU_ALGORITHMS; a++) add(&t, "%13s  ", cpu_algorithm_names[a]);
  add(&t, "\n");
  for (int f = 0; f < CPU_MODELLED; f++) {
    add(&t, "%13s | ", cpu_function_names[f]);
    for (int p = 0; p < CPU_PROTOCOLS; p++) add(&t, "%8d  ", e->protocols[f][p]);
    add(&t, " | ");
    for (int a = 0; a < CPU_ALGORITHMS; a++) add(&t, "%13d  ", e->algorithms[f][a]);
    add(&t, "\n");
  }
  cpu_log(CPU_LOG_ENV, "Enabled NCCL Func/Proto/Algo Matrix:%s", t.bytes);
}

static void report_headings(int first, int limit) {
  struct text algorithms = {0}, protocols = {0};
  add(&algorithms, "  Algorithm   |");
  add(&protocols, "  Protocol    |");
  for (int a = first; a < limit; a++) {
    add(&algorithms, " %14s   %14s   %14s |", "", cpu_algorithm_names[a], "");
  }
  /* NCCL heads nine columns even where there are three. */
  for (int i = 0; i < BLOCK * CPU_PROTOCOLS; i++) {
    add(&protocols, " %14s |", cpu_protocol_names[i % CPU_PROTOCOLS]);
  }
  cpu_log(CPU_LOG_TUNING, "%s", algorithms.bytes);
  cpu_log(CPU_LOG_TUNING, "%s", protocols.bytes);
}

static void report_block(const struct cpu_model *m, int first, int limit) {
  const int cells = (limit - first) * CPU_PROTOCOLS;
  struct text threads = {0};
  report_headings(first, limit);
  add(&threads, " Max NThreads |");
  for (int i = 0; i < cells; i++) add(&threads, " %14d |", (&m->max_threads[first][0])[i]);
  cpu_log(CPU_LOG_TUNING, "%s", threads.bytes);
  for (int f = 0; f < CPU_MODELLED; f++) {
    const float *latency = m->latency[f][first], *bandwidth = m->bandwidth[f][first];
    struct text row = {0};
    add(&row, "%13s |", cpu_function_names[f]);
    for (int i = 0; i < cells; i++) {
      add(&row, "%8.1f/%6.1f |", (double)latency[i], (double)bandwidth[i]);
    }
    cpu_log(CPU_LOG_TUNING, "%s", row.bytes);
  }
}

void cpu_report_table(const struct cpu_model *m) {
  if (!cpu_log_is_on(CPU_LOG_TUNING)) return;
  for (int first = 0; first < CPU_ALGORITHMS; first += BLOCK) {
    const int limit = first + BLOCK;
    report_block(m, first, limit < CPU_ALGORITHMS ? limit : CPU_ALGORITHMS);
  }
}

void cpu_report_thresholds(const struct cpu_model *m) {
  const int64_t *tree = m->thresholds[CPU_TREE], *ring = m->thresholds[CPU_RING];
  cpu_log(CPU_LOG_INIT,
          "threadThresholds %ld/%ld/%ld | %ld/%ld/%ld | %ld | %ld",
          (long)tree[CPU_LL],
          (long)tree[CPU_LL128],
          (long)tree[CPU_SIMPLE],
          (long)ring[CPU_LL],
          (long)ring[CPU_LL128],
          (long)ring[CPU_SIMPLE],
          (long)m->thresholds[2][CPU_SIMPLE],
          (long)m->thresholds[3][CPU_SIMPLE]);
}
