/* InitializeInjectionNvtx2: each library that has NVTX inside calls it when
   NVTX_INJECTION64_PATH names the plugin, and calls our functions from then on. */
#include "plugins/trace/nvtx.h"
#include "plugins/trace/tracer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXPORT_CALLBACKS = 1, MODULE_CORE = 1, MODULE_CORE2 = 5, WIDE_TEXT = 256 };

static int64_t last_domain; /* atomic */

static struct nvtx_attributes wide(const wchar_t *text) {
  return (struct nvtx_attributes){.message_type = NVTX_WIDE, .message.wide = text};
}

static void mark_ex(const struct nvtx_attributes *a) {
  nvtx_mark(NULL, a);
}

static void mark_a(const char *text) {
  const struct nvtx_attributes a = nvtx_plain(text);
  nvtx_mark(NULL, &a);
}

static void mark_w(const wchar_t *text) {
  const struct nvtx_attributes a = wide(text);
  nvtx_mark(NULL, &a);
}

static uint64_t start_ex(const struct nvtx_attributes *a) {
  return nvtx_start(NULL, a);
}

static uint64_t start_a(const char *text) {
  const struct nvtx_attributes a = nvtx_plain(text);
  return nvtx_start(NULL, &a);
}

static uint64_t start_w(const wchar_t *text) {
  const struct nvtx_attributes a = wide(text);
  return nvtx_start(NULL, &a);
}

static int push_ex(const struct nvtx_attributes *a) {
  return nvtx_push_in(NULL, a);
}

static int push_a(const char *text) {
  const struct nvtx_attributes a = nvtx_plain(text);
  return nvtx_push_in(NULL, &a);
}

static int push_w(const wchar_t *text) {
  const struct nvtx_attributes a = wide(text);
  return nvtx_push_in(NULL, &a);
}

static int pop_any(void) {
  return nvtx_pop_in(NULL);
}

static void name_category_a(uint32_t category, const char *text) {
  nvtx_name(NVTX_CATEGORY, 0, category, text);
}

static void name_category_w(uint32_t category, const wchar_t *text) {
  char narrow[WIDE_TEXT];
  nvtx_narrow(text, narrow, sizeof narrow);
  nvtx_name(NVTX_CATEGORY, 0, category, narrow);
}

static void name_thread_a(uint32_t tid, const char *text) {
  struct writer *w = tracer_writer();
  if (!w || !text) return;
  nvtx_name(NVTX_THREAD, 0, 0, text);
  struct trace_row row = {.table = TRACE_THREAD};
  PUT_TEXT(&row, THREAD, nameId, text);
  PUT(&row, THREAD, globalTid, session_tid(writer_session(w), tid));
  writer_put(w, &row);
}

static void name_thread_w(uint32_t tid, const wchar_t *text) {
  char narrow[WIDE_TEXT];
  nvtx_narrow(text, narrow, sizeof narrow);
  name_thread_a(tid, narrow);
}

static void end_in(const struct nvtx_domain *domain, uint64_t id) {
  (void)domain; /* ids are the process's */
  nvtx_end(id);
}

static int64_t id_of(const struct nvtx_domain *domain) {
  return domain ? domain->id : 0;
}

static void domain_category_a(const struct nvtx_domain *domain, uint32_t category,
                              const char *text) {
  nvtx_name(NVTX_CATEGORY, id_of(domain), category, text);
}

static void domain_category_w(const struct nvtx_domain *domain, uint32_t category,
                              const wchar_t *text) {
  char narrow[WIDE_TEXT];
  nvtx_narrow(text, narrow, sizeof narrow);
  nvtx_name(NVTX_CATEGORY, id_of(domain), category, narrow);
}

static struct nvtx_registered *register_a(const struct nvtx_domain *domain,
                                          const char *text) {
  (void)domain;
  struct nvtx_registered *r = malloc(sizeof *r);
  char *copy = strdup(text ? text : "");
  if (!r || !copy) {
    free(r);
    free(copy);
    return NULL;
  }
  r->text = copy;
  return r;
}

static struct nvtx_registered *register_w(const struct nvtx_domain *domain,
                                          const wchar_t *text) {
  char narrow[WIDE_TEXT] = "";
  if (text) nvtx_narrow(text, narrow, sizeof narrow);
  return register_a(domain, narrow);
}

/* Never freed: ranges that are still open name it. */
static struct nvtx_domain *create_a(const char *name) {
  struct nvtx_domain *d = malloc(sizeof *d);
  if (!d) return NULL;
  d->id = __atomic_add_fetch(&last_domain, 1, __ATOMIC_RELAXED);
  nvtx_name(NVTX_DOMAIN, d->id, 0, name ? name : "");
  return d;
}

static struct nvtx_domain *create_w(const wchar_t *name) {
  char narrow[WIDE_TEXT] = "";
  if (name) nvtx_narrow(name, narrow, sizeof narrow);
  return create_a(narrow);
}

typedef void any_function(void);

/* Places in a module's table: NvtxCallbackIdCore, NvtxCallbackIdCore2. */
static const struct entry {
  unsigned module, place;
  any_function *function;
} entries[] = {
#define ENTRY(module, place, name) {module, place, (any_function *)(name)},
  ENTRY(MODULE_CORE, 1, mark_ex) ENTRY(MODULE_CORE, 2, mark_a) ENTRY(MODULE_CORE, 3, mark_w)
    ENTRY(MODULE_CORE, 4, start_ex) ENTRY(MODULE_CORE, 5, start_a)
      ENTRY(MODULE_CORE, 6, start_w) ENTRY(MODULE_CORE, 7, nvtx_end)
        ENTRY(MODULE_CORE, 8, push_ex) ENTRY(MODULE_CORE, 9, push_a)
          ENTRY(MODULE_CORE, 10, push_w) ENTRY(MODULE_CORE, 11, pop_any)
            ENTRY(MODULE_CORE, 12, name_category_a) ENTRY(MODULE_CORE, 13, name_category_w)
              ENTRY(MODULE_CORE, 14, name_thread_a) ENTRY(MODULE_CORE, 15, name_thread_w)
                ENTRY(MODULE_CORE2, 1, nvtx_mark) ENTRY(MODULE_CORE2, 2, nvtx_start)
                  ENTRY(MODULE_CORE2, 3, end_in) ENTRY(MODULE_CORE2, 4, nvtx_push_in) ENTRY(
                    MODULE_CORE2, 5, nvtx_pop_in) ENTRY(MODULE_CORE2, 8, domain_category_a)
                    ENTRY(MODULE_CORE2, 9, domain_category_w) ENTRY(
                      MODULE_CORE2, 10, register_a) ENTRY(MODULE_CORE2, 11, register_w)
                      ENTRY(MODULE_CORE2, 12, create_a) ENTRY(MODULE_CORE2, 13, create_w)};

struct callbacks {
  size_t size;
  int (*get_module_function_table)(unsigned module, any_function ****table, unsigned *size);
};

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id));

int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id)) {
  const struct callbacks *callbacks = get_export_table(EXPORT_CALLBACKS);
  if (!callbacks || callbacks->size < sizeof *callbacks) return 0;
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    any_function ***table = NULL;
    unsigned size = 0;
    if (!callbacks->get_module_function_table(entries[i].module, &table, &size)) continue;
    if (table && entries[i].place < size) *table[entries[i].place] = entries[i].function;
  }
  return 1;
}
