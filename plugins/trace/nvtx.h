#ifndef PLUGINS_TRACE_NVTX_H
#define PLUGINS_TRACE_NVTX_H

/* NVTX 3's ABI (nvtxTypes.h, nvToolsExt.h), as far as it is recorded, and what becomes rows
   of NVTX_EVENTS. A domain of NULL is the default one. */

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* Nsight Systems' numbers, see ENUM_NSYS_EVENT_TYPE. */
enum {
  NVTX_CATEGORY = 33,
  NVTX_MARK = 34,
  NVTX_THREAD = 39,
  NVTX_PUSH_POP = 59,
  NVTX_START_END = 60,
  NVTX_DOMAIN = 75
};
enum { NVTX_ASCII = 1, NVTX_WIDE = 2, NVTX_REGISTERED = 3 };
enum { NVTX_U64 = 1, NVTX_I64, NVTX_DOUBLE, NVTX_U32, NVTX_I32, NVTX_FLOAT };

struct nvtx_attributes {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  union {
    uint64_t u64;
    int64_t i64;
    double real;
    uint32_t u32;
    int32_t i32;
    float single;
  } payload;
  int32_t message_type;
  union {
    const char *ascii;
    const wchar_t *wide;
    const struct nvtx_registered *registered;
  } message;
};

struct nvtx_domain {
  int64_t id; /* the default domain is 0, and has no struct */
};

/* Lives as long as the program may use its handle. */
struct nvtx_registered {
  char *text;
};

void nvtx_mark(const struct nvtx_domain *domain, const struct nvtx_attributes *attributes);

/* The depth before, or a negative number: nothing is recorded. */
int nvtx_push_in(const struct nvtx_domain *domain,
                 const struct nvtx_attributes *attributes);
/* The depth after. */
int nvtx_pop_in(const struct nvtx_domain *domain);

/* A range that may end on another thread; its id. */
uint64_t nvtx_start(const struct nvtx_domain *domain,
                    const struct nvtx_attributes *attributes);
void nvtx_end(uint64_t id);

/* A range of the calling thread in the default domain. The text is copied. */
void nvtx_push(const char *text);
void nvtx_pop(void);

/* The name of a category, thread or domain. */
void nvtx_name(int type, int64_t domain, uint32_t category, const char *text);

struct nvtx_attributes nvtx_plain(const char *text);

/* To UTF-8, whatever the locale; cut at a whole character. */
void nvtx_narrow(const wchar_t *wide, char *text, size_t size);

#endif
