#ifndef PLUGINS_TRACE_CUPTI_H
#define PLUGINS_TRACE_CUPTI_H

/* CUPTI, opened at run time. */

#include "plugins/trace/abi.h"

struct cupti {
  CUptiResult (*get_version)(uint32_t *version);
  CUptiResult (*get_timestamp)(uint64_t *ns);
  CUptiResult (*get_result_string)(CUptiResult rc, const char **text);
  CUptiResult (*subscribe)(void **subscriber,
                           void (*callback)(void *context, int domain, uint32_t id,
                                            const void *data),
                           void *context);
  CUptiResult (*unsubscribe)(void *subscriber);
  CUptiResult (*activity_enable)(uint32_t kind);
  CUptiResult (*activity_disable)(uint32_t kind);
  CUptiResult (*activity_register_callbacks)(
    void (*requested)(uint8_t **buffer, size_t *bytes, size_t *most_records),
    void (*completed)(void *ctx, uint32_t stream, uint8_t *buffer, size_t bytes,
                      size_t used));
  CUptiResult (*activity_get_next_record)(uint8_t *buffer, size_t bytes,
                                          struct cupti_record **record);
  CUptiResult (*activity_get_num_dropped_records)(void *ctx, uint32_t stream,
                                                  size_t *dropped);
  CUptiResult (*activity_flush_all)(uint32_t flags);
  CUptiResult (*get_callback_name)(int domain, uint32_t cbid, const char **name);
  /* NULL where the library is older. */
  CUptiResult (*set_thread_id_type)(int type);
  CUptiResult (*activity_enable_driver)(uint32_t cbid, uint8_t enable);
  CUptiResult (*activity_enable_runtime)(uint32_t cbid, uint8_t enable);
};

/* From the file that NCLUA_CUPTI_LIB names, or the newest that is found: the process's own,
   on the loader's path, in the toolkit's usual folders. -1 with the reason in `why`. */
int cupti_open(struct cupti *cupti, char *why, size_t size);

/* What a result means to the user, in `why`; returns -1. */
int cupti_explain(const struct cupti *cupti, const char *what, CUptiResult rc, char *why,
                  size_t size);

#endif
