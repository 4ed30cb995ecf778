#ifndef BINDINGS_NCCL_INIT_H
#define BINDINGS_NCCL_INIT_H

/* What the births of communicators share: nccl_init.c (comm, init_all), nccl_split.c. */

#include "bindings/nccl.h"

/* The options of a new communicator, at their defaults after nccl_options(). */
struct nccl_options {
  int id; /* stack index */
  int rank, count, device;
  bool abort, /* of a shrink */
    blocking, collnet, nvlink_centric_sched, shrink_share, split_share;
  int cga_cluster_size, channels_per_net_peer, cta_policy, max_ctas, min_ctas, nvls_ctas,
    traffic_class;
  const char *name, *net_name;
};

/* Reads nccl.comm's option table, or that of a split or shrink. */
struct nccl_options nccl_comm_options(lua_State *L, int arg);
struct nccl_options nccl_split_options(lua_State *L, int arg);
struct nccl_options nccl_shrink_options(lua_State *L, int arg);

/* `c` is the communicator it is for: the library may keep the pointer of its name. */
ncclConfig_t nccl_config(const struct nccl_options *o, const struct comm *c);

/* A number that says to which clique a communicator belongs. */
uint64_t nccl_clique(uint64_t seed, const void *data, size_t bytes);

/* The answer of a birth whose communicator is on top of the stack: that, or nil, message,
   code. In a group the answer is not final, and the group's end gives it. */
int nccl_born(lua_State *L, struct comm *c, const char *what, ncclResult_t rc);

#endif
