#ifndef HOST_CPU_PRIMITIVES_H
#define HOST_CPU_PRIMITIVES_H

/* The verbs that algorithms are written in, as NCCL's primitives.h has them: each moves one
   chunk of a rank's part, slice by slice. How a slice travels is the protocol's affair. */

#include "host/cpu/comm.h"
#include "host/cpu/op.h"

enum { CPU_FAN = 3 }; /* most connections that one verb serves each way: a tree's */

struct cpu_primitives;

/* One verb's work on one chunk, or on one slice of it. */
struct cpu_chunk {
  const void *src; /* this rank's input, NULL if it adds nothing */
  void *dst;       /* this rank's output, NULL if it keeps nothing */
  size_t count;    /* elements; nothing happens if it is 0 */
  bool recv, send; /* which connections take part */
  bool post;       /* the result is final */
};

struct cpu_protocol {
  const char *name;
  int number; /* CPU_LL and so on */
  /* Bytes of its lines: of the message, and in the slot. */
  size_t line_data, line_wire;
  /* Awaits the slice in the receiving connections' slots, and leaves the result in dst and
     in the sending ones', which are free. */
  void (*transfer)(struct cpu_primitives *p, const struct cpu_chunk *slice);
};
extern const struct cpu_protocol cpu_ll, cpu_ll128, cpu_simple;

/* What a chunk is that lies in scratch memory: pieces of the message, as in coll_step. */
struct cpu_cargo {
  int64_t offset, stride;
  int pieces;   /* 0: the chunk's own pointers say it */
  bool reduces; /* what is received will be added to something */
};

/* How far an operation has come on one channel, whatever copies of its primitives do. */
struct cpu_course {
  int algorithm, protocol; /* NCCL's numbers */
  int next;                /* step */
  struct cpu_cargo cargo;  /* of the next chunk */
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
  uint32_t signature; /* of the operation: the same on all ranks */
  size_t element;     /* bytes */
  size_t slice_count; /* elements that travel in one slot */
  size_t chunk_count; /* elements that a ring moves at a time, in slices */
  struct cpu_connection *recv[CPU_FAN], *send[CPU_FAN];
  int nrecv, nsend;
  struct cpu_stats stats; /* so far */
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

/* For protocols: awaits the slice that `c` receives, or false with p->rc set. */
bool cpu_await(struct cpu_primitives *p, struct cpu_connection *c,
               bool (*is_ready)(struct cpu_connection *));

/* Does what came in the filled slot fit what is expected? If not, sets p->rc: ranks that
   disagree about an operation would read each other's data wrongly. */
bool cpu_expect_bytes(struct cpu_primitives *p, const struct cpu_connection *c,
                      size_t expected);

#endif
