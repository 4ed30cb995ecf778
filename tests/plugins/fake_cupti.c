/* A CUPTI without a GPU: the tracer opens it through NCLUA_CUPTI_LIB, the test makes it
   record. */
#include "tests/plugins/fake_cupti.h"

#include "tests/plugins/cupti_records.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void (*request)(uint8_t **buffer, size_t *bytes, size_t *most);
static void (*complete)(void *ctx, uint32_t stream, uint8_t *buffer, size_t bytes,
                        size_t used);
static uint8_t *buffer;
static size_t room, used, dropped;
static bool enabled[64], runtime_calls[1024];

#define FAKE(name) __attribute__((visibility("default"))) CUptiResult name

FAKE(cuptiGetVersion)(uint32_t *version);
FAKE(cuptiGetTimestamp)(uint64_t *ns);
FAKE(cuptiGetResultString)(CUptiResult rc, const char **text);
FAKE(cuptiSubscribe)(void **subscriber, void *callback, void *context);
FAKE(cuptiUnsubscribe)(void *subscriber);
FAKE(cuptiActivityEnable)(uint32_t kind);
FAKE(cuptiActivityDisable)(uint32_t kind);
FAKE(cuptiActivityRegisterCallbacks)
(void (*requested)(uint8_t **, size_t *, size_t *),
 void (*completed)(void *, uint32_t, uint8_t *, size_t, size_t));
FAKE(cuptiActivityGetNextRecord)(uint8_t *data, size_t bytes, struct cupti_record **r);
FAKE(cuptiActivityGetNumDroppedRecords)(void *ctx, uint32_t stream, size_t *count);
FAKE(cuptiActivityFlushAll)(uint32_t flags);
FAKE(cuptiGetCallbackName)(int domain, uint32_t cbid, const char **name);
FAKE(cuptiActivityEnableDriverApi)(uint32_t cbid, uint8_t enable);
FAKE(cuptiActivityEnableRuntimeApi)(uint32_t cbid, uint8_t enable);

CUptiResult cuptiGetVersion(uint32_t *version) {
  *version = records_version;
  return CUPTI_SUCCESS;
}

/* Another epoch than the tracer's, so that the tracer must translate. */
CUptiResult cuptiGetTimestamp(uint64_t *ns) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult rc, const char **text) {
  *text = rc == CUPTI_ERROR_NOT_INITIALIZED ? "CUPTI_ERROR_NOT_INITIALIZED" : "another";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(void **subscriber, void *callback, void *context) {
  (void)callback, (void)context;
  *subscriber = &enabled;
  const char *rc = getenv("FAKE_CUPTI_SUBSCRIBE");
  return rc ? atoi(rc) : CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(void *subscriber) {
  return subscriber ? CUPTI_SUCCESS : 1;
}

CUptiResult cuptiActivityEnable(uint32_t kind) {
  enabled[kind] = true;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(uint32_t kind) {
  enabled[kind] = false;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(void (*requested)(uint8_t **, size_t *,
                                                             size_t *),
                                           void (*completed)(void *, uint32_t, uint8_t *,
                                                             size_t, size_t)) {
  request = requested;
  complete = completed;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *data, size_t bytes,
                                       struct cupti_record **r) {
  return records_next(data, bytes, r);
}

CUptiResult cuptiActivityGetNumDroppedRecords(void *ctx, uint32_t stream, size_t *count) {
  (void)ctx, (void)stream;
  *count = dropped;
  dropped = 0;
  return CUPTI_SUCCESS;
}

/* The tracer's writer calls it as well: a full buffer goes, the one in use stays ours. */
CUptiResult cuptiActivityFlushAll(uint32_t flags) {
  if (flags != CUPTI_ACTIVITY_FLAG_FLUSH_FORCED || !buffer) return CUPTI_SUCCESS;
  complete(NULL, 0, buffer, room, used);
  buffer = NULL;
  used = room = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(int domain, uint32_t cbid, const char **name) {
  return records_name(domain, cbid, name);
}

CUptiResult cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable) {
  return cbid && enable ? CUPTI_SUCCESS : 1;
}

CUptiResult cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable) {
  runtime_calls[cbid] = enable;
  return CUPTI_SUCCESS;
}

static bool is_wanted(const void *head) {
  const uint32_t kind = ((const struct cupti_record *)head)->kind;
  if (enabled[kind]) return true;
  return kind == CUPTI_ACTIVITY_KIND_RUNTIME &&
         runtime_calls[((const struct cupti_api *)head)->cbid];
}

void fake_add(const void *head, size_t head_size) {
  const uint32_t kind = ((const struct cupti_record *)head)->kind;
  const size_t size = records_size(kind, records_version);
  if (!is_wanted(head)) return;
  if (buffer && used + size > room) cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  size_t most = 0;
  if (!buffer) request(&buffer, &room, &most);
  if (!buffer) {
    dropped++;
    return;
  }
  used = records_add(buffer, used, records_version, head, head_size);
}

void fake_kernel(const char *name, int grid, int block, uint64_t start, uint64_t end,
                 uint32_t correlation) {
  const struct cupti_kernel k = {
    .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    .start = start,
    .end = end,
    .deviceId = 1,
    .streamId = 7,
    .gridX = grid,
    .gridY = 1,
    .gridZ = 1,
    .blockX = block,
    .blockY = 1,
    .blockZ = 1,
    .correlationId = correlation,
    .name = name,
  };
  fake_add(&k, sizeof k);
}

void fake_call(uint32_t cbid, uint64_t start, uint64_t end, uint32_t correlation) {
  const struct cupti_api a = {
    .kind = CUPTI_ACTIVITY_KIND_RUNTIME,
    .cbid = cbid,
    .start = start,
    .end = end,
    .processId = (uint32_t)getpid(),
    .threadId = (uint32_t)gettid(),
    .correlationId = correlation,
  };
  fake_add(&a, sizeof a);
}
