#include "host/cpu/algorithm.h"
#include "host/cpu/fail.h"

#include <string.h>

/* PAT, parallel aggregated trees (S. Jeaugey, "PAT: a new algorithm for all-gather and
   reduce-scatter operations at scale", 2025): each block goes through a binomial tree of
   its own, all trees at once, so that about log2(n) steps do what takes a ring n - 1.
   Blocks that take the same way travel together while they fit into one slot.

   A rank is `offset` places behind the one whose block it is, and the lowest bit of the
   offset is the distance from its parent in the block's tree. A gather goes down the trees,
   the far ranks first, a scatter of sums comes up, the near ones first. */

struct pat {
  struct cpu_primitives *p;
  const struct cpu_op *op;
  int n, rank;
  size_t at, count;                 /* the chunk of each block that is on its way */
  size_t bytes;                     /* of the chunk */
  int group;                        /* blocks that travel together */
  char *outgoing, *incoming, *sums; /* room for a group, a group, and sums by half offset */
};

static char *block_in(const struct pat *t, const void *buffer, int offset) {
  size_t block = (size_t)((t->rank - offset + t->n) % t->n);
  return (char *)buffer + (block * t->op->count + t->at) * t->p->element;
}

static int power_below(int n) {
  int distance = 1;
  while (2 * distance < n) distance *= 2;
  return distance;
}

static void connect(const struct pat *t, int to, int from) {
  struct cpu_primitives *p = t->p;
  int sink = (t->rank + to + t->n) % t->n, source = (t->rank + from + t->n) % t->n;
  p->nsend = p->nrecv = 1;
  p->send[0] = cpu_connection_to(p->comm, CPU_LINK_COLLECTIVE, CPU_SEND, p->channel, sink);
  p->recv[0] =
    cpu_connection_to(p->comm, CPU_LINK_COLLECTIVE, CPU_RECV, p->channel, source);
}

/* The number of a group's blocks, whose offsets begin at `offset` and lie 2 * distance
   apart; those from n on do not exist. */
static int group_size(const struct pat *t, int offset, int distance) {
  int left = (t->n - offset + 2 * distance - 1) / (2 * distance);
  return left < t->group ? left : t->group;
}

/* What travels next: for those who watch. */
static void declare(const struct pat *t, int offset, int stride, int blocks, bool reduces) {
  int64_t block = (int64_t)(t->op->count * t->p->element);
  t->p->course->cargo = (struct cpu_cargo){
    (t->rank - offset + t->n) % t->n * block + (int64_t)(t->at * t->p->element),
    -stride * block,
    blocks,
    reduces,
  };
}

/* Gather: what this rank has of the trees goes `distance` further, and the same comes. */
static void gather_group(const struct pat *t, int offset, int distance) {
  int blocks = group_size(t, offset + distance, distance), stride = 2 * distance;
  size_t total = (size_t)blocks * t->count;
  if (blocks == 1) {
    declare(t, offset, stride, 1, false);
    cpu_send(t->p, block_in(t, t->op->recv, offset), t->count);
    cpu_recv(t->p, block_in(t, t->op->recv, offset + distance), t->count);
    return;
  }
  for (int i = 0; i < blocks; i++) {
    const char *from = block_in(t, t->op->recv, offset + i * stride);
    memcpy(t->outgoing + (size_t)i * t->bytes, from, t->bytes);
  }
  declare(t, offset, stride, blocks, false);
  cpu_send(t->p, t->outgoing, total);
  declare(t, offset + distance, stride, blocks, false);
  cpu_recv(t->p, t->incoming, total);
  for (int i = 0; i < blocks && !t->p->rc; i++) {
    char *to = block_in(t, t->op->recv, offset + distance + i * stride);
    memcpy(to, t->incoming + (size_t)i * t->bytes, t->bytes);
  }
}

static void gather_chunk(const struct pat *t) {
  const char *own = (const char *)t->op->send + t->at * t->p->element;
  char *kept = block_in(t, t->op->recv, 0);
  if (kept != own) memcpy(kept, own, t->bytes);
  for (int distance = power_below(t->n); distance && !t->p->rc; distance /= 2) {
    connect(t, distance, -distance);
    int offset = 0;
    while (offset + distance < t->n && !t->p->rc) {
      int blocks = group_size(t, offset + distance, distance);
      gather_group(t, offset, distance);
      offset += 2 * distance * blocks;
    }
  }
}

static char *sum_in(const struct pat *t, int offset) {
  return t->sums + (size_t)(offset / 2) * t->bytes;
}

/* What goes up the tree at `offset`: a leaf's input, or the sum so far. */
static const char *addend(const struct pat *t, int offset) {
  bool is_leaf = offset % 2 == 1 || offset + 1 == t->n;
  return is_leaf ? block_in(t, t->op->send, offset) : sum_in(t, offset);
}

static void send_sums(const struct pat *t, int offset, int stride, int blocks) {
  declare(t, offset, stride, blocks, false);
  if (blocks == 1) {
    cpu_send(t->p, addend(t, offset), t->count);
    return;
  }
  for (int i = 0; i < blocks; i++) {
    const char *from = addend(t, offset + i * stride);
    memcpy(t->outgoing + (size_t)i * t->bytes, from, t->bytes);
  }
  cpu_send(t->p, t->outgoing, (size_t)blocks * t->count);
}

/* The near ranks come first: to the input, then to the sum so far. The last sum of this
   rank's own block is the result. */
static void receive_sum(const struct pat *t, int offset, int distance, const char *came) {
  bool is_final = offset == 0 && 2 * distance >= t->n;
  const char *own = distance == 1 ? block_in(t, t->op->send, offset) : sum_in(t, offset);
  char *result = (char *)t->op->recv + t->at * t->p->element;
  char *sum = is_final ? result : sum_in(t, offset);
  if (!came) {
    cpu_recv_reduce_copy(t->p, own, sum, t->count);
    return;
  }
  struct cpu_operands what = {{own, came}, {sum}, 2, 1};
  cpu_redop_apply(t->p->redop, &what, t->count, t->p->element);
  t->p->stats.bytes_reduced += t->bytes;
}

static void receive_sums(const struct pat *t, int offset, int distance, int blocks) {
  declare(t, offset, 2 * distance, blocks, true);
  if (blocks == 1) {
    receive_sum(t, offset, distance, NULL);
    return;
  }
  cpu_recv(t->p, t->incoming, (size_t)blocks * t->count);
  for (int i = 0; i < blocks && !t->p->rc; i++) {
    const char *came = t->incoming + (size_t)i * t->bytes;
    receive_sum(t, offset + 2 * distance * i, distance, came);
  }
}

static void scatter_chunk(const struct pat *t) {
  for (int distance = 1; distance < t->n && !t->p->rc; distance *= 2) {
    connect(t, -distance, distance);
    int offset = distance;
    while (offset < t->n && !t->p->rc) {
      int blocks = group_size(t, offset, distance);
      send_sums(t, offset, 2 * distance, blocks);
      receive_sums(t, offset - distance, distance, blocks);
      offset += 2 * distance * blocks;
    }
  }
}

/* So many elements of each block that all sums fit into the scratch memory. */
static size_t find_chunk(const struct cpu_primitives *p, size_t groups_bytes) {
  size_t sums = (size_t)(p->comm->nranks + 1) / 2, line = CPU_LINE / p->element;
  size_t most = (CPU_SCRATCH - groups_bytes) / sums / CPU_LINE * line;
  return p->slice_count < most ? p->slice_count : most;
}

static void run(struct cpu_primitives *p, const struct cpu_op *op, struct cpu_part part,
                void (*run_chunk)(const struct pat *t)) {
  char *scratch = cpu_comm_scratch(p->comm, p->channel);
  size_t group = p->slice_count * p->element, chunk = find_chunk(p, 2 * group);
  struct pat t = {p, op, p->comm->nranks, p->comm->rank};
  t.outgoing = scratch;
  t.incoming = scratch + group;
  t.sums = scratch + 2 * group;
  if (!scratch) p->rc = cpu_fail(ncclSystemError, "out of memory");
  for (size_t done = 0; done < part.count && !p->rc; done += t.count) {
    size_t left = part.count - done;
    t.count = left < chunk ? left : chunk;
    t.at = part.first + done;
    t.bytes = t.count * p->element;
    t.group = (int)(p->slice_count / t.count);
    run_chunk(&t);
  }
}

static void all_gather(struct cpu_primitives *p, const struct cpu_op *op,
                       struct cpu_part part) {
  run(p, op, part, gather_chunk);
}

/* Operators that scale an input or a sum do not come here, as in NCCL (select.c). */
static void reduce_scatter(struct cpu_primitives *p, const struct cpu_op *op,
                           struct cpu_part part) {
  if (op->redop.pre_multiply || op->redop.post_divide) {
    p->rc = cpu_fail(ncclInternalError, "PAT cannot scale");
    return;
  }
  run(p, op, part, scatter_chunk);
}

const struct cpu_algorithm cpu_pat = {
  "PAT", {[CPU_ALL_GATHER] = all_gather, [CPU_REDUCE_SCATTER] = reduce_scatter}};
