/* Ranges, marks and names, whoever made them, as rows. */
#include "plugins/trace/nvtx.h"

#include "plugins/trace/tracer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum { TEXT = 256, DEPTH = 64, OPEN_RANGES = 1024, NO_PUSH_POP_TRACKING = -2 };

/* Our copy of what a range was begun with. */
struct range {
  int64_t id; /* of a start/end range, 0: free */
  int64_t start, global_tid;
  struct nvtx_attributes attributes;
  const struct nvtx_domain *domain;
  char text[TEXT];
};

/* Push/pop ranges nest within a thread and domain: NVTX. */
struct stack {
  int depth; /* may exceed DEPTH: those are counted only */
  struct range ranges[DEPTH];
};

static pthread_key_t stack_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct range open_ranges[OPEN_RANGES];
static int64_t last_range; /* atomic */

static void make_key(void) {
  pthread_key_create(&stack_key, free);
}

static struct stack *own_stack(void) {
  pthread_once(&once, make_key);
  struct stack *s = pthread_getspecific(stack_key);
  if (s) return s;
  s = calloc(1, sizeof *s);
  if (s && pthread_setspecific(stack_key, s)) {
    free(s);
    return NULL;
  }
  return s;
}

/* UTF-8, whatever the locale; cut at a whole character. */
void nvtx_narrow(const wchar_t *wide, char *text, size_t size) {
  size_t n = 0;
  for (; *wide && n + 5 < size; wide++) {
    const uint32_t c = (uint32_t)*wide;
    if (c < 0x80) {
      text[n++] = (char)c;
      continue;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    text[n++] = (char)((0xff00 >> (more + 1) & 0xff) | (c >> 6 * more));
    for (int i = more - 1; i >= 0; i--) text[n++] = (char)(0x80 | (c >> 6 * i & 0x3f));
  }
  text[n] = '\0';
}

static void copy_message(const struct nvtx_attributes *a, char *text, size_t size) {
  text[0] = '\0';
  if (!a->message.ascii) return;
  if (a->message_type == NVTX_ASCII) snprintf(text, size, "%s", a->message.ascii);
  if (a->message_type == NVTX_WIDE) nvtx_narrow(a->message.wide, text, size);
  if (a->message_type == NVTX_REGISTERED) {
    snprintf(text, size, "%s", a->message.registered->text);
  }
}

static void begin_range(struct range *r, const struct writer *w,
                        const struct nvtx_domain *domain, const struct nvtx_attributes *a) {
  r->start = tracer_time(w);
  r->global_tid = session_global_tid(writer_session(w));
  r->attributes = *a;
  r->domain = domain;
  copy_message(a, r->text, sizeof r->text);
}

static void put_payload(struct trace_row *row, const struct nvtx_attributes *a) {
  switch (a->payload_type) {
    case NVTX_U64: PUT(row, NVTX, uint64Value, a->payload.u64); break;
    case NVTX_I64: PUT(row, NVTX, int64Value, a->payload.i64); break;
    case NVTX_DOUBLE: PUT_REAL(row, NVTX, doubleValue, a->payload.real); break;
    case NVTX_U32: PUT(row, NVTX, uint32Value, a->payload.u32); break;
    case NVTX_I32: PUT(row, NVTX, int32Value, a->payload.i32); break;
    case NVTX_FLOAT: PUT_REAL(row, NVTX, floatValue, (double)a->payload.single); break;
    default: break;
  }
}

/* A registered text is one of the file's names as well, as nsys has it. */
static void put_range(struct writer *w, const struct range *r, int type, int64_t end) {
  const struct nvtx_attributes *a = &r->attributes;
  struct trace_row row = {.table = TRACE_NVTX};
  PUT(&row, NVTX, start, r->start);
  if (end) PUT(&row, NVTX, end, end);
  PUT(&row, NVTX, eventType, type);
  if (r->id) PUT(&row, NVTX, rangeId, r->id);
  if (a->category) PUT(&row, NVTX, category, a->category);
  if (a->color_type) PUT(&row, NVTX, color, a->color);
  PUT_TEXT(&row, NVTX, text, r->text);
  if (a->message_type == NVTX_REGISTERED) PUT_TEXT(&row, NVTX, textId, r->text);
  PUT(&row, NVTX, globalTid, r->global_tid);
  PUT(&row, NVTX, domainId, r->domain ? r->domain->id : 0);
  put_payload(&row, a);
  writer_put(w, &row);
}

/* A name of something: what has neither end nor attributes. */
void nvtx_name(int type, int64_t domain, uint32_t category, const char *text) {
  struct writer *w = tracer_writer();
  if (!w) return;
  struct trace_row row = {.table = TRACE_NVTX};
  PUT(&row, NVTX, start, tracer_time(w));
  PUT(&row, NVTX, eventType, type);
  if (category) PUT(&row, NVTX, category, category);
  PUT_TEXT(&row, NVTX, text, text);
  PUT(&row, NVTX, globalTid, session_global_tid(writer_session(w)));
  PUT(&row, NVTX, domainId, domain);
  writer_put(w, &row);
}

struct nvtx_attributes nvtx_plain(const char *text) {
  return (struct nvtx_attributes){.message_type = NVTX_ASCII, .message.ascii = text};
}

void nvtx_mark(const struct nvtx_domain *domain, const struct nvtx_attributes *a) {
  struct writer *w = tracer_writer();
  if (!w || !a) return;
  struct range r = {.id = 0};
  begin_range(&r, w, domain, a);
  put_range(w, &r, NVTX_MARK, 0);
}

int nvtx_push_in(const struct nvtx_domain *domain, const struct nvtx_attributes *a) {
  struct writer *w = tracer_writer();
  struct stack *s = w && a ? own_stack() : NULL;
  if (!s) return NO_PUSH_POP_TRACKING;
  if (s->depth < DEPTH) begin_range(&s->ranges[s->depth], w, domain, a);
  return s->depth++;
}

/* The innermost of the domain; NVTX lets domains interleave, programs hardly do. */
int nvtx_pop_in(const struct nvtx_domain *domain) {
  struct writer *w = tracer_writer();
  struct stack *s = w ? own_stack() : NULL;
  if (!s || s->depth == 0) return NO_PUSH_POP_TRACKING;
  if (s->depth > DEPTH) return --s->depth;
  int at = s->depth - 1;
  while (at > 0 && s->ranges[at].domain != domain) at--;
  if (s->ranges[at].domain != domain) return NO_PUSH_POP_TRACKING;
  put_range(w, &s->ranges[at], NVTX_PUSH_POP, tracer_time(w));
  s->depth--;
  memmove(&s->ranges[at], &s->ranges[at + 1], (size_t)(s->depth - at) * sizeof *s->ranges);
  return s->depth;
}

/* An id's place follows from it; if that one is still open, the new range is not kept. */
uint64_t nvtx_start(const struct nvtx_domain *domain, const struct nvtx_attributes *a) {
  struct writer *w = tracer_writer();
  if (!w || !a) return 0;
  const int64_t id = __atomic_add_fetch(&last_range, 1, __ATOMIC_RELAXED);
  pthread_mutex_lock(&open_lock);
  struct range *r = &open_ranges[id % OPEN_RANGES];
  const int is_free = r->id == 0;
  if (is_free) {
    begin_range(r, w, domain, a);
    r->id = id;
  }
  pthread_mutex_unlock(&open_lock);
  if (!is_free) writer_lost(w, "NVTX ranges", 1);
  return (uint64_t)id;
}

void nvtx_end(uint64_t id) {
  struct writer *w = tracer_writer();
  pthread_mutex_lock(&open_lock);
  struct range *r = &open_ranges[id % OPEN_RANGES];
  struct range ended = {.id = 0};
  if (r->id == (int64_t)id) {
    ended = *r;
    r->id = 0;
  }
  pthread_mutex_unlock(&open_lock);
  if (w && ended.id) put_range(w, &ended, NVTX_START_END, tracer_time(w));
}

void nvtx_push(const char *text) {
  const struct nvtx_attributes a = nvtx_plain(text);
  nvtx_push_in(NULL, &a);
}

void nvtx_pop(void) {
  nvtx_pop_in(NULL);
}
