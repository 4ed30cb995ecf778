#include "host/cpu/algorithm.h"

/* Each rank receives from its left and sends to its right neighbour. The order of the
   chunks is NCCL's (all_reduce.h and friends): it decides the order of the sums. */

static void connect(struct cpu_primitives *p) {
  int n = p->comm->nranks, rank = p->comm->rank;
  p->nrecv = p->nsend = 1;
  p->recv[0] = cpu_connection_to(
    p->comm, CPU_LINK_COLLECTIVE, CPU_RECV, p->channel, (rank + n - 1) % n);
  p->send[0] =
    cpu_connection_to(p->comm, CPU_LINK_COLLECTIVE, CPU_SEND, p->channel, (rank + 1) % n);
}

/* One turn of the ring: n chunks of `size` elements, the last ones shorter or empty. */
struct turn {
  struct cpu_primitives *p;
  const struct cpu_op *op;
  size_t first, size, left;
};

/* Chunk i of the turn, with i counted from this rank on. */
static size_t chunk_of(const struct turn *t, int i, size_t *count) {
  size_t n = (size_t)t->p->comm->nranks;
  size_t begin = ((size_t)t->p->comm->rank + (size_t)i) % n * t->size;
  size_t left = t->left > begin ? t->left - begin : 0;
  *count = left < t->size ? left : t->size;
  return (t->first + begin) * t->p->element;
}

static void reduce_turn(const struct turn *t) {
  const char *send = t->op->send;
  char *recv = t->op->recv;
  int n = t->p->comm->nranks;
  size_t count, at = chunk_of(t, n - 1, &count);
  cpu_send(t->p, send + at, count);
  for (int i = n - 2; i > 0; i--) {
    at = chunk_of(t, i, &count);
    cpu_recv_reduce_send(t->p, send + at, count);
  }
  at = chunk_of(t, 0, &count);
  cpu_recv_reduce_copy_send(t->p, send + at, recv + at, count);
  for (int i = n - 1; i > 1; i--) {
    at = chunk_of(t, i, &count);
    cpu_recv_copy_send(t->p, recv + at, count);
  }
  at = chunk_of(t, 1, &count);
  cpu_recv(t->p, recv + at, count);
}

/* Equal chunks for the last turn too, but whole cache lines. */
static size_t last_size(const struct cpu_primitives *p, size_t left) {
  size_t n = (size_t)p->comm->nranks, line = CPU_LINE / p->element;
  size_t size = ((left + n - 1) / n + line - 1) / line * line;
  return size < p->chunk_count ? size : p->chunk_count;
}

static void all_reduce(struct cpu_primitives *p, const struct cpu_op *op,
                       struct cpu_part part) {
  connect(p);
  for (size_t done = 0; done < part.count && !p->rc;) {
    size_t left = part.count - done, size = last_size(p, left);
    reduce_turn(&(struct turn){p, op, part.first + done, size, left});
    done += size * (size_t)p->comm->nranks;
  }
}

/* A chunk's place in block `block` of a buffer that holds one block a rank. */
static size_t in_block(const struct cpu_primitives *p, const struct cpu_op *op, int block,
                       size_t at) {
  int n = p->comm->nranks;
  return ((size_t)((block + n) % n) * op->count + at) * p->element;
}

static size_t chunk_count(const struct cpu_primitives *p, size_t left) {
  return left < p->chunk_count ? left : p->chunk_count;
}

static void gather_chunk(struct cpu_primitives *p, const struct cpu_op *op, size_t at,
                         size_t count) {
  const char *own = (const char *)op->send + at * p->element;
  char *recv = op->recv;
  int rank = p->comm->rank, n = p->comm->nranks;
  cpu_copy_send(p, own, recv + in_block(p, op, rank, at), count);
  for (int i = 1; i < n - 1; i++) {
    cpu_recv_copy_send(p, recv + in_block(p, op, rank - i, at), count);
  }
  cpu_recv(p, recv + in_block(p, op, rank + 1, at), count);
}

static void all_gather(struct cpu_primitives *p, const struct cpu_op *op,
                       struct cpu_part part) {
  connect(p);
  for (size_t done = 0, count; done < part.count && !p->rc; done += count) {
    count = chunk_count(p, part.count - done);
    gather_chunk(p, op, part.first + done, count);
  }
}

static void scatter_chunk(struct cpu_primitives *p, const struct cpu_op *op, size_t at,
                          size_t count) {
  const char *send = op->send;
  int rank = p->comm->rank, n = p->comm->nranks;
  cpu_send(p, send + in_block(p, op, rank - 1, at), count);
  for (int i = 2; i < n; i++) {
    cpu_recv_reduce_send(p, send + in_block(p, op, rank - i, at), count);
  }
  const char *own = send + in_block(p, op, rank, at);
  cpu_recv_reduce_copy(p, own, (char *)op->recv + at * p->element, count);
}

static void reduce_scatter(struct cpu_primitives *p, const struct cpu_op *op,
                           struct cpu_part part) {
  connect(p);
  for (size_t done = 0, count; done < part.count && !p->rc; done += count) {
    count = chunk_count(p, part.count - done);
    scatter_chunk(p, op, part.first + done, count);
  }
}

static void broadcast(struct cpu_primitives *p, const struct cpu_op *op,
                      struct cpu_part part) {
  int n = p->comm->nranks, place = (p->comm->rank + n - op->root) % n;
  connect(p);
  for (size_t done = 0, count; done < part.count && !p->rc; done += count) {
    count = chunk_count(p, part.count - done);
    size_t at = (part.first + done) * p->element;
    char *recv = (char *)op->recv + at;
    if (place == 0)
      cpu_copy_send(p, (const char *)op->send + at, recv, count);
    else if (place == n - 1)
      cpu_recv(p, recv, count);
    else
      cpu_recv_copy_send(p, recv, count);
  }
}

/* The chain begins behind the root and ends in it. */
static void reduce(struct cpu_primitives *p, const struct cpu_op *op,
                   struct cpu_part part) {
  int n = p->comm->nranks, place = (p->comm->rank + n - op->root) % n;
  connect(p);
  for (size_t done = 0, count; done < part.count && !p->rc; done += count) {
    count = chunk_count(p, part.count - done);
    size_t at = (part.first + done) * p->element;
    const char *send = (const char *)op->send + at;
    if (place == 1)
      cpu_send(p, send, count);
    else if (place > 1)
      cpu_recv_reduce_send(p, send, count);
    else
      cpu_recv_reduce_copy(p, send, (char *)op->recv + at, count);
  }
}

const struct cpu_algorithm cpu_ring = {
  "Ring",
  {
    [CPU_BROADCAST] = broadcast,
    [CPU_REDUCE] = reduce,
    [CPU_ALL_GATHER] = all_gather,
    [CPU_REDUCE_SCATTER] = reduce_scatter,
    [CPU_ALL_REDUCE] = all_reduce,
  },
};
