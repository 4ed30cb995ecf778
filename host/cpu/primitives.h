#ifndef HOST_CPU_PRIMITIVES_H
#define HOST_CPU_PRIMITIVES_H

/* The verbs that algorithms are written in, as NCCL's primitives.h has them: each moves one
   chunk of a rank's part. How a chunk travels is the protocol's affair. */

#include "host/cpu/comm.h"
#include "host/cpu/op.h"

enum { CPU_FAN = 3 }; /* most connections that one verb serves each way: a tree's */

struct cpu_primitives;

/* One verb's work on one chunk. */
struct cpu_chunk {
  const void *src; /* this rank's input, NULL if it adds nothing */
  void *dst;       /* this rank's output, NULL if it keeps nothing */
  size_t count;    /* elements; nothing happens if it is 0 */
  bool recv, send; /* which connections take part */
  bool post;       /* the result is final */
};

struct cpu_protocol {
  const char *name;
  void (*move)(struct cpu_primitives *p, const struct cpu_chunk *chunk);
};
extern const struct cpu_protocol cpu_simple;

/* How far an operation has come on one channel, whatever copies of its primitives do. */
struct cpu_course {
  int algorithm, protocol; /* NCCL's numbers */
  int next;                /* step */
};

/* One operation of a rank on one channel. Failure is sticky: after it the verbs do
   nothing, and the algorithm ends by itself. */
struct cpu_primitives {
  ncclComm_t comm;
  int channel;
  const struct cpu_op *op;
  struct cpu_course *course;
  const struct cpu_protocol *protocol;
  const struct cpu_redop *redop;
  size_t element;     /* bytes */
  size_t slice_count; /* elements that travel in one slot */
  size_t chunk_count; /* elements that a ring moves at a time, in slices */
  struct cpu_connection *recv[CPU_FAN], *send[CPU_FAN];
  int nrecv, nsend;
  ncclResult_t rc;
};

void cpu_send(struct cpu_primitives *p, const void *src, size_t count);
void cpu_copy_send(struct cpu_primitives *p, const void *src, void *dst, size_t count);
void cpu_recv(struct cpu_primitives *p, void *dst, size_t count);
void cpu_recv_copy_send(struct cpu_primitives *p, void *dst, size_t count);
void cpu_recv_reduce_send(struct cpu_primitives *p, const void *src, size_t count);
void cpu_recv_reduce_copy(struct cpu_primitives *p, const void *src, void *dst,
                          size_t count);
void cpu_recv_reduce_copy_send(struct cpu_primitives *p, const void *src, void *dst,
                               size_t count);

#endif
