#ifndef HOST_RECORDER_H
#define HOST_RECORDER_H

/* The flight recorder: what this rank last enqueued, completed and waited for, in memory
   that the parent of a world can read after the rank is dead or stuck. Without a world
   the same calls write to private memory. Lock-free; about 50 ns a call. */

#include "host/backend.h"

struct recorder_op {
  const char *function; /* static string, "all_reduce"; kept as an index */
  ncclComm_t comm;
  CUstream stream;
  uint64_t op_count; /* from 0, per communicator */
  uint64_t count;    /* elements */
  ncclDataType_t type;
  int peer; /* root or peer, -1 if there is none */
};

/* The operation is about to be enqueued: told before the call, which may block. */
void recorder_enqueue(const struct recorder_op *op);

/* Completed: one operation; or all that was enqueued on a stream before now. */
void recorder_complete(ncclComm_t comm, uint64_t op_count);
void recorder_complete_stream(CUstream stream);

/* The host thread begins (a static string: "stream:sync") or ends (NULL) a blocking wait.
 */
void recorder_wait(const char *what);

#endif
