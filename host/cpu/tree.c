#include "host/cpu/algorithm.h"

/* A binary tree: sums go up, results come down. While a chunk is on its way down, the
   next ones go up. */

/* Chunks that go up before the first comes down: as many as the slots allow, or a deep tree
   waits for its round trip. 8 ranks on 2 cores, 1 MiB: 480 to 570 us with 7, 780 to 980
   with 4. */
#define LAG (CPU_STEPS - 1)

/* Every second rank a leaf, as in NCCL's trees.cc (ncclGetBtree): the parent differs in
   the lowest set bit and the one above it. */
static struct cpu_tree_place find_first(int nranks, int rank) {
  int bit = 1, children = 0;
  while (bit < nranks && !(rank & bit)) bit <<= 1;
  struct cpu_tree_place t = {-1, {-1, -1}};
  if (rank) {
    t.up = (rank ^ bit) | (bit << 1);
    if (t.up >= nranks) t.up = rank ^ bit;
    if (bit > 1) t.down[children++] = rank - bit / 2;
  }
  int low = bit / 2;
  while (low && rank + low >= nranks) low /= 2;
  if (low) t.down[children++] = rank + low;
  return t;
}

/* The first tree's rank for a rank of the second, and the other way round. */
static int exchange(int nranks, int rank, int shift) {
  if (rank < 0) return rank;
  return nranks % 2 ? (rank + nranks + shift) % nranks : nranks - 1 - rank;
}

/* Odd channels have the second tree of a pair (ncclGetDtree): the first one mirrored or
   shifted, so that who is a leaf in one works in the other. */
struct cpu_tree_place cpu_tree_find(int nranks, int rank, int channel) {
  if (channel % 2 == 0) return find_first(nranks, rank);
  struct cpu_tree_place t = find_first(nranks, exchange(nranks, rank, -1));
  t.up = exchange(nranks, t.up, 1);
  for (int i = 0; i < 2; i++) t.down[i] = exchange(nranks, t.down[i], 1);
  return t;
}

static struct cpu_connection *connection(const struct cpu_primitives *p,
                                         enum cpu_direction direction, int peer) {
  return cpu_connection_to(p->comm, CPU_LINK_COLLECTIVE, direction, p->channel, peer);
}

static void receive_from(struct cpu_primitives *p, const int *peers, int count) {
  for (p->nrecv = 0; p->nrecv < count; p->nrecv++) {
    p->recv[p->nrecv] = connection(p, CPU_RECV, peers[p->nrecv]);
  }
}

static void send_to(struct cpu_primitives *p, const int *peers, int count) {
  for (p->nsend = 0; p->nsend < count; p->nsend++) {
    p->send[p->nsend] = connection(p, CPU_SEND, peers[p->nsend]);
  }
}

struct walk {
  struct cpu_primitives up, down;
  const struct cpu_op *op;
  struct cpu_part part;
};

static size_t find_chunk(const struct walk *w, size_t i, size_t *count) {
  size_t size = w->up.slice_count, at = i * size, left = w->part.count - at;
  *count = left < size ? left : size;
  return (w->part.first + at) * w->up.element;
}

static void go_up(struct walk *w, size_t i) {
  size_t count, at = find_chunk(w, i, &count);
  const char *send = (const char *)w->op->send + at;
  if (w->up.nrecv)
    cpu_recv_reduce_send(&w->up, send, count);
  else
    cpu_send(&w->up, send, count);
}

static void turn_round(struct walk *w, size_t i) {
  size_t count, at = find_chunk(w, i, &count);
  cpu_recv_reduce_copy_send(
    &w->up, (const char *)w->op->send + at, (char *)w->op->recv + at, count);
}

static void come_down(struct walk *w, size_t i) {
  size_t count, at = find_chunk(w, i, &count);
  char *recv = (char *)w->op->recv + at;
  if (w->down.nsend)
    cpu_recv_copy_send(&w->down, recv, count);
  else
    cpu_recv(&w->down, recv, count);
}

static void all_reduce(struct cpu_primitives *p, const struct cpu_op *op,
                       struct cpu_part part) {
  const struct cpu_tree_place t = cpu_tree_find(p->comm->nranks, p->comm->rank, p->channel);
  const int ndown = (t.down[0] >= 0) + (t.down[1] >= 0);
  struct walk w = {*p, *p, op, part};
  size_t chunks = (part.count + p->slice_count - 1) / p->slice_count;
  receive_from(&w.up, t.down, ndown);
  send_to(&w.down, t.down, ndown);
  if (t.up < 0) {
    send_to(&w.up, t.down, ndown);
    for (size_t i = 0; i < chunks && !w.up.rc; i++) turn_round(&w, i);
  } else {
    send_to(&w.up, &t.up, 1);
    receive_from(&w.down, &t.up, 1);
    for (size_t i = 0; i < chunks + LAG && !w.up.rc && !w.down.rc; i++) {
      if (i < chunks) go_up(&w, i);
      if (i >= LAG && !w.up.rc) come_down(&w, i - LAG);
    }
  }
  cpu_stats_add(&p->stats, &w.up.stats);
  cpu_stats_add(&p->stats, &w.down.stats);
  p->rc = w.up.rc ? w.up.rc : w.down.rc;
}

const struct cpu_algorithm cpu_tree = {"Tree", {[CPU_ALL_REDUCE] = all_reduce}};
