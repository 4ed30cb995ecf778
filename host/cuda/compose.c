#include "host/cuda/compose.h"

#include "host/backend.h"
#include "host/dtype.h"

/* One composed collective on its way. */
struct composed {
  ncclComm_t comm;
  CUstream stream;
  ncclDataType_t type;
  size_t count; /* elements of one piece */
  int rank, ranks;
  ncclResult_t rc; /* the first failure; ncclInProgress is none */
};

static void keep(struct composed *c, ncclResult_t rc) {
  if (rc != ncclSuccess && rc != ncclInProgress && c->rc == ncclSuccess) c->rc = rc;
}

static size_t offset_of(const struct composed *c, int piece) {
  return (size_t)piece * c->count * dtype_size(c->type);
}

/* A dtype beyond our table has no size, so a piece of it has no place. */
static ncclResult_t begin(struct composed *c) {
  if ((unsigned)c->type >= ncclNumTypes) return ncclInvalidArgument;
  keep(c, cuda_coll.comm_count(c->comm, &c->ranks));
  keep(c, cuda_coll.comm_user_rank(c->comm, &c->rank));
  if (c->rc == ncclSuccess) keep(c, cuda_coll.group_start());
  return c->rc;
}

static void send_piece(struct composed *c, const void *from, int piece, int peer) {
  const char *at = (const char *)from + offset_of(c, piece);
  keep(c, cuda_coll.send(at, c->count, c->type, peer, c->comm, c->stream));
}

static void recv_piece(struct composed *c, void *to, int piece, int peer) {
  char *at = (char *)to + offset_of(c, piece);
  keep(c, cuda_coll.recv(at, c->count, c->type, peer, c->comm, c->stream));
}

/* The group is closed even after a failure: an open one would swallow every later call. */
static ncclResult_t finish(struct composed *c) {
  ncclResult_t rc = cuda_coll.group_end();
  return c->rc ? c->rc : rc;
}

ncclResult_t compose_all_to_all(const void *send, void *recv, size_t count,
                                ncclDataType_t type, ncclComm_t comm, CUstream stream) {
  struct composed c = {comm, stream, type, count};
  ncclResult_t rc = begin(&c);
  if (rc) return rc;
  for (int peer = 0; peer < c.ranks; peer++) {
    send_piece(&c, send, peer, peer);
    recv_piece(&c, recv, peer, peer);
  }
  return finish(&c);
}

ncclResult_t compose_gather(const void *send, void *recv, size_t count, ncclDataType_t type,
                            int root, ncclComm_t comm, CUstream stream) {
  struct composed c = {comm, stream, type, count};
  ncclResult_t rc = begin(&c);
  if (rc) return rc;
  send_piece(&c, send, 0, root);
  for (int peer = 0; c.rank == root && peer < c.ranks; peer++) {
    recv_piece(&c, recv, peer, peer);
  }
  return finish(&c);
}

ncclResult_t compose_scatter(const void *send, void *recv, size_t count,
                             ncclDataType_t type, int root, ncclComm_t comm,
                             CUstream stream) {
  struct composed c = {comm, stream, type, count};
  ncclResult_t rc = begin(&c);
  if (rc) return rc;
  for (int peer = 0; c.rank == root && peer < c.ranks; peer++) {
    send_piece(&c, send, peer, peer);
  }
  recv_piece(&c, recv, 0, root);
  return finish(&c);
}
