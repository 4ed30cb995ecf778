#ifndef HOST_COMMS_H
#define HOST_COMMS_H

/* The live communicators of this process, reachable without Lua: a watchdog's thread ends
   them all while the thread that owns the Lua state is stuck inside one. */

#include "host/backend.h"

#include <stdbool.h>

/* Embedded in whatever owns the communicator, which must remove it before it dies. */
struct comms_entry {
  const struct coll_api *api;
  ncclComm_t comm;
  struct comms_entry *next, **link; /* link NULL: not in the list */
};

void comms_add(struct comms_entry *entry);

/* True if the communicator is the caller's again, to destroy or abort. False if it never
   was in the list, or comms_abort_all has ended it: its handle is gone. Waits for a
   running comms_abort_all. */
bool comms_remove(struct comms_entry *entry);

/* Aborts every live communicator; from any thread. None may be used afterwards. */
void comms_abort_all(void);

/* Has comms_abort_all begun? Cheap enough to ask before each use. */
bool comms_is_aborted(void);

/* "ncclRemoteError"; NULL for a result that is not known here. */
const char *comms_result_name(ncclResult_t rc);

/* The first live communicator with an asynchronous error, or NULL; a non-blocking call
   that is still in progress is none. `text` gets the library's words. */
ncclComm_t comms_failed(ncclResult_t *rc, char *text, size_t size);

#endif
