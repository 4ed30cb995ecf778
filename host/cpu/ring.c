#include "host/cpu/algorithm.h"

/* Each rank receives from its left and sends to its right neighbour. The order of the
   chunks is NCCL's (all_reduce.h and friends): it decides the order of the sums. */

static bool is_coprime(int a, int b) {
  while (b) {
    int rest = a % b;
    a = b;
    b = rest;
  }
  return a == 1;
}

/* A ring goes round in steps of a stride that meets all ranks: 1, then the other way round,
   then those of other neighbours, where there are any. */
static int find_stride(int n, int channel) {
  for (int s = 1;; s = s < n / 2 ? s + 1 : 1) {
    if (!is_coprime(s, n)) continue;
    if (channel == 0) return s;
    if (channel == 1 && n > 2) return n - s;
    channel -= n > 2 ? 2 : 1;
  }
}

static int rank_of(int n, int stride, int index) {
  return (index % n + n) % n * stride % n;
}

int cpu_ring_rank(int nranks, int channel, int index) {
  return rank_of(nranks, find_stride(nranks, channel), index);
}

/* A rank's place in its channel's ring. */
struct ring {
  struct cpu_primitives *p;
  const struct cpu_op *op;
  int n, stride, index;
};

static int index_of(const struct ring *r, int rank) {
  int index = 0;
  while (rank_of(r->n, r->stride, index) != rank) index++;
  return index;
}

static struct cpu_connection *connection(const struct ring *r, enum cpu_direction direction,
                                         int index) {
  return cpu_connection_to(r->p->comm,
                           CPU_LINK_COLLECTIVE,
                           direction,
                           r->p->channel,
                           rank_of(r->n, r->stride, index));
}

static struct ring connect(struct cpu_primitives *p, const struct cpu_op *op) {
  int n = p->comm->nranks;
  struct ring r = {p, op, n, find_stride(n, p->channel), 0};
  r.index = index_of(&r, p->comm->rank);
  p->nrecv = p->nsend = 1;
  p->recv[0] = connection(&r, CPU_RECV, r.index - 1);
  p->send[0] = connection(&r, CPU_SEND, r.index + 1);
  return r;
}

/* One turn of the ring: n chunks of `size` elements, the last ones shorter or empty. */
struct turn {
  const struct ring *ring;
  size_t first, size, left;
};

/* Chunk i of the turn, with i counted from this rank's place on. */
static size_t chunk_of(const struct turn *t, int i, size_t *count) {
  size_t n = (size_t)t->ring->n;
  size_t begin = ((size_t)t->ring->index + (size_t)i) % n * t->size;
  size_t left = t->left > begin ? t->left - begin : 0;
  *count = left < t->size ? left : t->size;
  return (t->first + begin) * t->ring->p->element;
}

static void reduce_turn(const struct turn *t) {
  struct cpu_primitives *p = t->ring->p;
  const char *send = t->ring->op->send;
  char *recv = t->ring->op->recv;
  int n = t->ring->n;
  size_t count, at = chunk_of(t, n - 1, &count);
  cpu_send(p, send + at, count);
  for (int i = n - 2; i > 0; i--) {
    at = chunk_of(t, i, &count);
    cpu_recv_reduce_send(p, send + at, count);
  }
  at = chunk_of(t, 0, &count);
  cpu_recv_reduce_copy_send(p, send + at, recv + at, count);
  for (int i = n - 1; i > 1; i--) {
    at = chunk_of(t, i, &count);
    cpu_recv_copy_send(p, recv + at, count);
  }
  at = chunk_of(t, 1, &count);
  cpu_recv(p, recv + at, count);
}

/* Equal chunks for the last turn too, but whole cache lines. */
static size_t last_size(const struct ring *r, size_t left) {
  size_t n = (size_t)r->n, line = CPU_LINE / r->p->element, most = r->p->chunk_count;
  size_t size = ((left + n - 1) / n + line - 1) / line * line;
  return size < most ? size : most;
}

static void all_reduce(struct cpu_primitives *p, const struct cpu_op *op,
                       struct cpu_part part) {
  struct ring r = connect(p, op);
  for (size_t done = 0; done < part.count && !p->rc;) {
    size_t left = part.count - done, size = last_size(&r, left);
    reduce_turn(&(struct turn){&r, part.first + done, size, left});
    done += size * (size_t)r.n;
  }
}

/* A chunk's place in a buffer that holds one block a rank: in that of the rank `back`
   places before this one. */
static size_t in_block(const struct ring *r, int back, size_t at) {
  size_t block = (size_t)rank_of(r->n, r->stride, r->index - back);
  return (block * r->op->count + at) * r->p->element;
}

static size_t chunk_count(const struct cpu_primitives *p, size_t left) {
  return left < p->chunk_count ? left : p->chunk_count;
}

static void gather_chunk(const struct ring *r, size_t at, size_t count) {
  struct cpu_primitives *p = r->p;
  char *recv = r->op->recv;
  const char *own = (const char *)r->op->send + at * p->element;
  cpu_copy_send(p, own, recv + in_block(r, 0, at), count);
  for (int i = 1; i < r->n - 1; i++) {
    cpu_recv_copy_send(p, recv + in_block(r, i, at), count);
  }
  cpu_recv(p, recv + in_block(r, r->n - 1, at), count);
}

static void all_gather(struct cpu_primitives *p, const struct cpu_op *op,
                       struct cpu_part part) {
  struct ring r = connect(p, op);
  for (size_t done = 0, count; done < part.count && !p->rc; done += count) {
    count = chunk_count(p, part.count - done);
    gather_chunk(&r, part.first + done, count);
  }
}

static void scatter_chunk(const struct ring *r, size_t at, size_t count) {
  struct cpu_primitives *p = r->p;
  const char *send = r->op->send;
  cpu_send(p, send + in_block(r, 1, at), count);
  for (int i = 2; i < r->n; i++) {
    cpu_recv_reduce_send(p, send + in_block(r, i, at), count);
  }
  char *recv = (char *)r->op->recv + at * p->element;
  cpu_recv_reduce_copy(p, send + in_block(r, 0, at), recv, count);
}

static void reduce_scatter(struct cpu_primitives *p, const struct cpu_op *op,
                           struct cpu_part part) {
  struct ring r = connect(p, op);
  for (size_t done = 0, count; done < part.count && !p->rc; done += count) {
    count = chunk_count(p, part.count - done);
    scatter_chunk(&r, part.first + done, count);
  }
}

/* How far behind the root this rank is. */
static int place_after_root(const struct ring *r) {
  return (r->index - index_of(r, r->op->root) + r->n) % r->n;
}

static void broadcast(struct cpu_primitives *p, const struct cpu_op *op,
                      struct cpu_part part) {
  struct ring r = connect(p, op);
  int place = place_after_root(&r);
  for (size_t done = 0, count; done < part.count && !p->rc; done += count) {
    count = chunk_count(p, part.count - done);
    size_t at = (part.first + done) * p->element;
    char *recv = (char *)op->recv + at;
    if (place == 0)
      cpu_copy_send(p, (const char *)op->send + at, recv, count);
    else if (place == r.n - 1)
      cpu_recv(p, recv, count);
    else
      cpu_recv_copy_send(p, recv, count);
  }
}

/* The chain begins behind the root and ends in it. */
static void reduce(struct cpu_primitives *p, const struct cpu_op *op,
                   struct cpu_part part) {
  struct ring r = connect(p, op);
  int place = place_after_root(&r);
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
