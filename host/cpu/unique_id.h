#ifndef HOST_CPU_UNIQUE_ID_H
#define HOST_CPU_UNIQUE_ID_H

/* The token under which the ranks of a communicator find each other: random, so that it
   cannot be guessed, with a magic, so that another library's is refused. */

#include "host/abi_nccl.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

ncclResult_t cpu_unique_id_create(ncclUniqueId *id);

bool cpu_unique_id_is_ours(const ncclUniqueId *id);

/* A child communicator's token: all who know the parent's and the same salt agree. */
ncclUniqueId cpu_unique_id_derive(const ncclUniqueId *parent, const char *how,
                                  uint64_t salt);

/* The token as a name in the abstract socket namespace: no file, gone with its owner. */
socklen_t cpu_unique_id_address(const ncclUniqueId *id, struct sockaddr_un *address);

/* A number for it, as NCCL's logs and plugins have it: commId. */
uint64_t cpu_unique_id_hash(const ncclUniqueId *id);

#endif
