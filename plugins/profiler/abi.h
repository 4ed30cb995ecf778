#ifndef PLUGINS_PROFILER_ABI_H
#define PLUGINS_PROFILER_ABI_H

/* NCCL's profiler plugin ABI, versions 1 to 6 (NCCL 2.23 to 2.29), in our own declarations.
   A descriptor is a head and, at byte 24, a union whose members differ by version. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
  ABI_GROUP = 1,
  ABI_COLL = 2,
  ABI_P2P = 4,
  ABI_PROXY_OP = 8,
  ABI_PROXY_STEP = 16,
  ABI_PROXY_CONTROL = 32,
  ABI_KERNEL_CHANNEL = 64,  /* from v3 */
  ABI_NET = 128,            /* from v3 */
  ABI_GROUP_API = 256,      /* from v5 */
  ABI_COLL_API = 512,       /* from v5 */
  ABI_P2P_API = 1024,       /* from v5 */
  ABI_KERNEL_LAUNCH = 2048, /* from v5 */
  ABI_CE_COLL = 4096,       /* copy engine, from v6 */
  ABI_CE_SYNC = 8192,
  ABI_CE_BATCH = 16384
};

enum {
  ABI_OP_FIRST = 0, /* of v1 to v3: posted, received, transmitted, done */
  ABI_OP_LAST = 7,
  ABI_SEND_GPU_WAIT = 8,
  ABI_SEND_WAIT = 9,
  ABI_RECV_WAIT = 10,
  ABI_RECV_FLUSH_WAIT = 11,
  ABI_RECV_GPU_WAIT = 12,
  ABI_CONTROL_IDLE = 13, /* active, sleep, wakeup, append, append end */
  ABI_CONTROL_APPEND_END = 18,
  ABI_OP_IN_PROGRESS = 19,
  ABI_SEND_PEER_WAIT = 20,
  ABI_NET_UPDATE = 21,
  ABI_CHANNEL_STOP = 22,
  ABI_GROUP_START_API_STOP = 23,
  ABI_GROUP_END_API_START = 24
};

struct abi_head_v1 { /* to v4 */
  uint8_t type;
  void *parent;
  int rank;
};

struct abi_head_v5 {
  uint64_t type;
  void *parent;
  int rank;
};

enum { ABI_UNION = 24 }; /* where it begins */

struct abi_coll_v1 {
  const char *name;
  uint64_t comm_hash, sequence;
  uint8_t func;
  const void *send;
  void *recv;
  size_t count;
  int root;
  uint8_t datatype;
  uint32_t op;
  size_t traffic_bytes;
  uint8_t channels, warps, algorithm, protocol;
  int is_collnet, is_nvls;
};

struct abi_coll_v2 {
  const char *name;
  uint64_t comm_hash, sequence;
  const char *func;
  const void *send;
  void *recv;
  size_t count;
  int root;
  const char *datatype;
  size_t traffic_bytes;
  uint8_t channels, warps;
  const char *algorithm, *protocol;
};

struct abi_coll_v3 {
  const char *name;
  uint64_t comm_hash, sequence;
  const char *func;
  const void *send;
  void *recv;
  size_t count;
  int root;
  const char *datatype;
  uint8_t channels, warps;
  const char *algorithm, *protocol;
};

struct abi_coll_v4 {
  uint64_t sequence;
  const char *func;
  const void *send;
  void *recv;
  size_t count;
  int root;
  const char *datatype;
  uint8_t channels, warps;
  const char *algorithm, *protocol;
  void *group; /* from v5 */
};

struct abi_p2p_v1 {
  const char *name;
  uint64_t comm_hash;
  uint8_t func;
  void *buffer;
  uint8_t datatype;
  size_t count;
  int peer;
};

struct abi_p2p_v2 { /* and v3 */
  const char *name;
  uint64_t comm_hash;
  const char *func;
  void *buffer;
  const char *datatype;
  size_t count;
  int peer;
};

struct abi_p2p_v4 {
  const char *func;
  void *buffer;
  const char *datatype;
  size_t count;
  int peer;
  uint8_t channels;
  void *group; /* from v5 */
};

struct abi_proxy_op {
  pid_t pid;
  uint8_t channel;
  int peer, steps, chunk_bytes, is_send;
};

struct abi_proxy_step {
  int step;
};

struct abi_kernel_channel {
  uint8_t channel;
  uint64_t timer; /* from v4: the GPU's clock in ns */
};

struct abi_net {
  int64_t id;
  void *data;
};

struct abi_group_api {
  bool graph_captured;
  int depth;
};

struct abi_coll_api {
  const char *func;
  size_t count;
  const char *datatype;
  int root;
  void *stream;
  bool graph_captured;
};

struct abi_p2p_api {
  const char *func;
  size_t count;
  const char *datatype;
  void *stream;
  bool graph_captured;
};

struct abi_kernel_launch {
  void *stream;
};

struct abi_ce_coll {
  uint64_t sequence;
  const char *func;
  const void *send;
  void *recv;
  size_t count;
  int root;
  const char *datatype, *strategy;
  bool intra_batch_sync;
  uint32_t batch_size, batches, ce_sequence;
  void *stream;
};

struct abi_ce_sync {
  bool is_complete;
  int ranks;
};

struct abi_ce_batch {
  int ops;
  size_t bytes;
  bool uses_intra_sync;
};

/* What a state may come with. */
union abi_state_v1 { /* to v3 */
  struct {
    size_t bytes;
    int steps;
  } op;
  int appended;
};

union abi_state_v4 {
  size_t step_bytes;
  int appended;
  void *net;
  uint64_t timer;
};

typedef void (*abi_logger)(int level, unsigned long subsystem, const char *file, int line,
                           const char *format, ...);

struct abi_v1 { /* to v3 */
  const char *name;
  int (*init)(void **context, int *mask);
  int (*start)(void *context, void **handle, void *descriptor);
  int (*stop)(void *handle);
  int (*record)(void *handle, int state, void *arguments);
  int (*finalize)(void *context);
};

struct abi_v4 {
  const char *name;
  int (*init)(void **context, int *mask, const char *comm_name, uint64_t comm_hash,
              int nodes, int ranks, int rank, abi_logger logger);
  int (*start)(void *context, void **handle, void *descriptor);
  int (*stop)(void *handle);
  int (*record)(void *handle, int state, void *arguments);
  int (*finalize)(void *context);
};

struct abi_v5 { /* and v6 */
  const char *name;
  int (*init)(void **context, uint64_t comm_id, int *mask, const char *comm_name, int nodes,
              int ranks, int rank, abi_logger logger);
  int (*start)(void *context, void **handle, void *descriptor);
  int (*stop)(void *handle);
  int (*record)(void *handle, int state, void *arguments);
  int (*finalize)(void *context);
};

#endif
