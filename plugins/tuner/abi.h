#ifndef PLUGINS_TUNER_ABI_H
#define PLUGINS_TUNER_ABI_H

/* NCCL's tuner plugin ABI, versions 2 to 6, in our own declarations (NCCL 2.21 to 2.30).
   The cost table is one flat block of floats, [algorithm][protocol], although its declared
   type is float **. A cell of -1 is not available. *channels arrives as 0: keep NCCL's. */

#include <stddef.h>
#include <stdint.h>

enum { ABI_SUCCESS = 0, ABI_WARN = 2, ABI_INFO = 3, ABI_TUNING = 64 };
enum { ABI_FUNCTIONS = 5, ABI_MAX_ALGORITHMS = 8, ABI_PROTOCOLS = 3 };

typedef void (*abi_logger)(int level, unsigned long subsystem, const char *file, int line,
                           const char *format, ...);

struct abi_v2 {
  const char *name;
  int (*init)(size_t ranks, size_t nodes, abi_logger logger, void **context);
  int (*get_coll_info)(void *context, int func, size_t bytes, int coll_net, int nvls,
                       int ops, int *algorithm, int *protocol, int *channels);
  int (*destroy)(void *context);
};

struct abi_v3 {
  const char *name;
  int (*init)(size_t ranks, size_t nodes, abi_logger logger, void **context);
  int (*get_coll_info)(void *context, int func, size_t bytes, int ops, float **table,
                       int algorithms, int protocols, int *channels);
  int (*destroy)(void *context);
};

struct abi_v4 {
  const char *name;
  int (*init)(size_t ranks, size_t nodes, abi_logger logger, void **context);
  int (*get_coll_info)(void *context, int func, size_t bytes, int ops, float **table,
                       int algorithms, int protocols, int registered, int *channels);
  int (*destroy)(void *context);
};

struct abi_v5 {
  const char *name;
  int (*init)(void **context, uint64_t comm_id, size_t ranks, size_t nodes,
              abi_logger logger, void *nvl_domain, void *constants);
  int (*get_coll_info)(void *context, int func, size_t bytes, int ops, float **table,
                       int algorithms, int protocols, int registered, int *channels);
  int (*finalize)(void *context);
};

struct abi_v6 {
  struct abi_v5 v5;
  int (*get_chunk_size)(void *context, int func, size_t bytes, int algorithm, int protocol,
                        int channels, size_t *chunk); /* NULL: NCCL's own */
};

#endif
