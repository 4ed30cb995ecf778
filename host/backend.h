#ifndef HOST_BACKEND_H
#define HOST_BACKEND_H

/* The one wall that matters: what a backend gives, in the vendor's own types, signatures
   and result codes. A NULL member means "not supported here". */

#include "host/abi_cuda.h"
#include "host/abi_nccl.h"
#include "host/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Element i of a pattern is (start + step * i) mod modulus, as an integer in the dtype. */
struct pattern {
  uint64_t start, step, modulus;
};

/* Elements of `a` against those of `b`, or against `value` where b is 0. Two elements
   agree if they are equal, both NaN, or |x - y| <= tolerance * max(|x|, |y|). */
struct compare {
  CUdeviceptr a, b;
  size_t count;
  ncclDataType_t type;
  uint64_t value; /* the element's bits, in the low bytes */
  double tolerance;
};

struct mismatch {
  uint64_t count;
  uint64_t first; /* index of the first one; undefined if count is 0 */
};

enum traced_kind { TRACED_NOTHING, TRACED_CALL, TRACED_KERNEL, TRACED_COPY, TRACED_SET };

/* CUPTI's numbers. */
enum traced_copy { TRACED_HTOD = 1, TRACED_DTOH = 2, TRACED_DTOD = 8 };

/* An operation that a backend's own worker has done. Times are CLOCK_MONOTONIC. */
struct traced {
  enum traced_kind kind; /* TRACED_CALL: a call that stands for several operations */
  CUdevice device;
  uint32_t stream;      /* its number */
  uint32_t correlation; /* the same for a call and what it brought about */
  int64_t start_ns, end_ns;
  const char *name; /* a kernel's */
  unsigned grid_x, block_x;
  int copy_kind; /* enum traced_copy */
  uint64_t bytes, value;
  bool is_in_graph;
  const char *call; /* of the API; NULL: none of its own, it is part of a graph */
  int64_t call_start_ns, call_end_ns;
  uint32_t thread; /* the caller's */
};

/* What a compiler made; image, symbol and log are the caller's to free. */
struct compiled {
  void *image; /* for module_load_data */
  size_t bytes;
  char *symbol; /* for module_get_function */
  char *log;    /* what the compiler said, warnings too; NULL if nothing */
};

/* A device: the CUDA driver API, where a "device" may be a share of the CPU. */
struct device_api {
  const char *name; /* "cuda" or "cpu" */

  /* Not the vendor's. `load` makes every other member usable, once; `library` NULL means:
     search. `library_path` is the file that answers, for the record. */
  int (*load)(const char *library, struct err *e);
  const char *(*library_path)(void);
  /* Set by a reader, from any thread and at any time; NULL: nobody looks. Called on worker
     threads, must return soon. A backend that others can look into (CUPTI) ignores it. */
  void (*traced)(const struct traced *what);
  CUresult (*fill)(CUdeviceptr dst, size_t count, size_t element_bytes, uint64_t bits,
                   CUstream stream);
  CUresult (*fill_pattern)(CUdeviceptr dst, size_t count, ncclDataType_t type,
                           const struct pattern *p, CUstream stream);
  /* Waits for the stream; the answer is in host memory. */
  CUresult (*compare)(const struct compare *what, struct mismatch *out, CUstream stream);
  CUresult (*spin)(unsigned microseconds, CUstream stream);
  /* CUDA C++ to machine code for the current device. `kernel` is the kernel's name or an
     expression such as "axpy<float>". After a failure too, out->log may be filled. */
  int (*compile)(const char *source, const char *kernel, struct compiled *out,
                 struct err *e);

  CUresult (*init)(unsigned flags);
  CUresult (*driver_get_version)(int *version);
  CUresult (*get_error_name)(CUresult rc, const char **name);
  CUresult (*get_error_string)(CUresult rc, const char **text);
  CUresult (*device_get_count)(int *count);
  CUresult (*device_get)(CUdevice *device, int ordinal);
  CUresult (*device_get_name)(char *name, int bytes, CUdevice device);
  CUresult (*device_get_uuid)(CUuuid *uuid, CUdevice device);
  CUresult (*device_get_attribute)(int *value, int attribute, CUdevice device);
  CUresult (*device_get_pci_bus_id)(char *id, int bytes, CUdevice device);
  CUresult (*device_total_mem)(size_t *bytes, CUdevice device);
  CUresult (*primary_ctx_retain)(CUcontext *ctx, CUdevice device);
  CUresult (*primary_ctx_release)(CUdevice device);
  CUresult (*ctx_set_current)(CUcontext ctx);
  CUresult (*ctx_get_current)(CUcontext *ctx);
  CUresult (*ctx_synchronize)(void);

  CUresult (*mem_get_info)(size_t *free_bytes, size_t *total_bytes);
  CUresult (*mem_alloc)(CUdeviceptr *ptr, size_t bytes);
  CUresult (*mem_free)(CUdeviceptr ptr);
  CUresult (*mem_host_alloc)(void **ptr, size_t bytes, unsigned flags);
  CUresult (*mem_free_host)(void *ptr);
  CUresult (*memcpy_htod)(CUdeviceptr dst, const void *src, size_t bytes);
  CUresult (*memcpy_dtoh)(void *dst, CUdeviceptr src, size_t bytes);
  CUresult (*memcpy_htod_async)(CUdeviceptr dst, const void *src, size_t bytes,
                                CUstream stream);
  CUresult (*memcpy_dtoh_async)(void *dst, CUdeviceptr src, size_t bytes, CUstream stream);
  CUresult (*memcpy_dtod_async)(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                                CUstream stream);
  CUresult (*memset_d8_async)(CUdeviceptr dst, unsigned char value, size_t count,
                              CUstream stream);

  CUresult (*stream_create_with_priority)(CUstream *stream, unsigned flags, int priority);
  CUresult (*stream_destroy)(CUstream stream);
  CUresult (*stream_synchronize)(CUstream stream);
  CUresult (*stream_query)(CUstream stream);
  CUresult (*stream_wait_event)(CUstream stream, CUevent event, unsigned flags);
  CUresult (*stream_begin_capture)(CUstream stream, int mode);
  CUresult (*stream_end_capture)(CUstream stream, CUgraph *graph);
  CUresult (*ctx_get_stream_priority_range)(int *least, int *greatest);

  CUresult (*event_create)(CUevent *event, unsigned flags);
  CUresult (*event_destroy)(CUevent event);
  CUresult (*event_record)(CUevent event, CUstream stream);
  CUresult (*event_query)(CUevent event);
  CUresult (*event_synchronize)(CUevent event);
  CUresult (*event_elapsed_time)(float *milliseconds, CUevent start, CUevent end);

  CUresult (*graph_instantiate)(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
  CUresult (*graph_launch)(CUgraphExec exec, CUstream stream);
  CUresult (*graph_exec_destroy)(CUgraphExec exec);
  CUresult (*graph_destroy)(CUgraph graph);

  CUresult (*module_load_data)(CUmodule *module, const void *image);
  CUresult (*module_unload)(CUmodule module);
  CUresult (*module_get_function)(CUfunction *function, CUmodule module, const char *name);
  /* From driver 12.4. CUDA_ERROR_INVALID_VALUE: there is no such parameter. */
  CUresult (*func_get_param_info)(CUfunction f, size_t index, size_t *offset,
                                  size_t *bytes);
  CUresult (*launch_kernel)(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z,
                            unsigned shared_bytes, CUstream stream, void **arguments,
                            void **extra);
  CUresult (*range_push)(const char *text);
  CUresult (*range_pop)(void);
};

enum coll_verb { COLL_RECV = 1, COLL_REDUCE = 2, COLL_COPY = 4, COLL_SEND = 8 };
enum { COLL_PEERS = 3, COLL_NOWHERE = -1 };

/* What one rank did with one chunk on one channel. */
struct coll_step {
  int64_t begin_ns, end_ns;  /* CLOCK_MONOTONIC */
  int64_t delay_ns, wait_ns; /* of it: as told, and for peers */
  uint64_t call;             /* the operation's number in its communicator, from 0 */
  int64_t offset; /* bytes into the message; COLL_NOWHERE: in none of its buffers */
  /* Piece i of `pieces` equal ones is at (offset + i * stride) modulo wrap. */
  int64_t stride, wrap;
  int pieces;
  uint64_t bytes;
  int rank, channel, step;                          /* from 0 */
  int function, algorithm, protocol;                /* NCCL's numbers; -1: none */
  unsigned verbs;                                   /* enum coll_verb */
  int from[COLL_PEERS], to[COLL_PEERS], nfrom, nto; /* ranks */
};

/* A step that shall come late; -1 stands for any. */
struct coll_delay {
  int rank, step, us, channel, call;
};

/* What a rank has moved for a communicator's collectives. */
struct coll_counters {
  uint64_t bytes_sent, bytes_received; /* of the messages */
  uint64_t wire_sent;                  /* with the protocols' flags */
  uint64_t bytes_reduced;              /* results of additions and the like */
  uint64_t slots_sent, slots_received;
};

/* Looking into collectives while they run. */
struct coll_steps {
  /* From now on, the first `limit` steps of this process are recorded. */
  int (*start)(size_t limit, struct err *e);
  /* How many there were; *steps is valid until the next start. */
  size_t (*stop)(const struct coll_step **steps, size_t *lost);
  /* Instead of those set before. */
  int (*delay)(const struct coll_delay *list, size_t count, struct err *e);
  ncclResult_t (*count)(ncclComm_t comm, struct coll_counters *counters);
};

/* What carried a collective, in NCCL's numbers. */
struct coll_choice {
  int function, algorithm, protocol;
  int channels;   /* 0: nothing had to be chosen */
  uint64_t bytes; /* count times element size, as NCCL's log has it */
};

/* The figures that a backend chooses by, if they are of its own measuring. */
struct coll_calibration {
  char file[1024]; /* where this machine's are kept; "" if nowhere */
  char date[16];   /* "": they have not been measured */
};

/* The collectives: NCCL. Where a library is too old for a function, its member is NULL. */
struct coll_api {
  const char *name; /* "nccl" or "cpu" */

  int (*load)(const char *library, struct err *e);
  const char *(*library_path)(void);
  /* Set by the host before the first communicator: told from a worker thread that the
     op_count-th operation (from 0, in enqueue order) of `comm` is complete. Only the
     CPU backend calls it; a GPU's completions are known when a stream has been waited for.
   */
  void (*completed)(ncclComm_t comm, uint64_t op_count);
  const struct coll_steps *steps; /* NULL: nobody can look into a GPU's kernels */

  /* Not NCCL's, which tells these in its log alone: the last collective that was enqueued,
     and what the choice is made by. */
  ncclResult_t (*last_choice)(ncclComm_t comm, struct coll_choice *out);
  void (*calibration)(struct coll_calibration *out);

  ncclResult_t (*get_version)(int *version);
  ncclResult_t (*get_unique_id)(ncclUniqueId *id);
  const char *(*get_error_string)(ncclResult_t rc);
  const char *(*get_last_error)(ncclComm_t comm);

  ncclResult_t (*comm_init_rank)(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank);
  ncclResult_t (*comm_init_rank_config)(ncclComm_t *comm, int nranks, ncclUniqueId id,
                                        int rank, ncclConfig_t *config);
  ncclResult_t (*comm_init_all)(ncclComm_t *comms, int ndev, const int *devices);
  ncclResult_t (*comm_finalize)(ncclComm_t comm);
  ncclResult_t (*comm_destroy)(ncclComm_t comm);
  ncclResult_t (*comm_abort)(ncclComm_t comm);
  ncclResult_t (*comm_split)(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                             ncclConfig_t *config);
  ncclResult_t (*comm_shrink)(ncclComm_t comm, int *exclude, int exclude_count,
                              ncclComm_t *newcomm, ncclConfig_t *config, int flags);
  ncclResult_t (*comm_get_async_error)(ncclComm_t comm, ncclResult_t *async_error);
  ncclResult_t (*comm_count)(const ncclComm_t comm, int *count);
  ncclResult_t (*comm_cu_device)(const ncclComm_t comm, int *device);
  ncclResult_t (*comm_user_rank)(const ncclComm_t comm, int *rank);

  ncclResult_t (*mem_alloc)(void **ptr, size_t bytes);
  ncclResult_t (*mem_free)(void *ptr);
  ncclResult_t (*comm_register)(const ncclComm_t comm, void *buffer, size_t bytes,
                                void **handle);
  ncclResult_t (*comm_deregister)(const ncclComm_t comm, void *handle);
  ncclResult_t (*comm_window_register)(ncclComm_t comm, void *buffer, size_t bytes,
                                       ncclWindow_t *window, int flags);
  ncclResult_t (*comm_window_deregister)(ncclComm_t comm, ncclWindow_t window);
  ncclResult_t (*red_op_create_pre_mul_sum)(ncclRedOp_t *op, void *scalar,
                                            ncclDataType_t type,
                                            ncclScalarResidence_t residence,
                                            ncclComm_t comm);
  ncclResult_t (*red_op_destroy)(ncclRedOp_t op, ncclComm_t comm);

  ncclResult_t (*all_reduce)(const void *send, void *recv, size_t count,
                             ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                             CUstream stream);
  ncclResult_t (*reduce)(const void *send, void *recv, size_t count, ncclDataType_t type,
                         ncclRedOp_t op, int root, ncclComm_t comm, CUstream stream);
  ncclResult_t (*broadcast)(const void *send, void *recv, size_t count, ncclDataType_t type,
                            int root, ncclComm_t comm, CUstream stream);
  ncclResult_t (*reduce_scatter)(const void *send, void *recv, size_t recv_count,
                                 ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                 CUstream stream);
  ncclResult_t (*all_gather)(const void *send, void *recv, size_t send_count,
                             ncclDataType_t type, ncclComm_t comm, CUstream stream);
  /* From 2.28; a backend on an older library composes them from send and recv. */
  ncclResult_t (*all_to_all)(const void *send, void *recv, size_t count,
                             ncclDataType_t type, ncclComm_t comm, CUstream stream);
  ncclResult_t (*gather)(const void *send, void *recv, size_t count, ncclDataType_t type,
                         int root, ncclComm_t comm, CUstream stream);
  ncclResult_t (*scatter)(const void *send, void *recv, size_t count, ncclDataType_t type,
                          int root, ncclComm_t comm, CUstream stream);
  ncclResult_t (*send)(const void *buffer, size_t count, ncclDataType_t type, int peer,
                       ncclComm_t comm, CUstream stream);
  ncclResult_t (*recv)(void *buffer, size_t count, ncclDataType_t type, int peer,
                       ncclComm_t comm, CUstream stream);
  ncclResult_t (*group_start)(void);
  ncclResult_t (*group_end)(void);
};

extern struct device_api cuda_device, cpu_device;
extern struct coll_api cuda_coll, cpu_coll;

/* Which backend this process uses. "auto" is cuda where a driver and a GPU node are found,
   else cpu; a library of NULL is the one chosen before. Nothing is initialised, so forking
   stays possible. -1: not a backend's name. */
int backend_choose(const char *name, const char *nccl_library, struct err *e);

/* The chosen backend's name, "cuda" or "cpu", with "auto" resolved; nothing is loaded. */
const char *backend_name(void);

/* How many devices there seem to be, without initialising one: GPU nodes filtered by
   CUDA_VISIBLE_DEVICES, or the CPU backend's device count. */
int backend_device_guess(void);

/* The chosen backend's tables, loaded on the first call; NULL with *e filled if a library
   is missing. From then on this process may not fork (host/forkable.h). */
const struct device_api *backend_device(struct err *e);
const struct coll_api *backend_coll(struct err *e);

#endif
