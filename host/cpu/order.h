#ifndef HOST_CPU_ORDER_H
#define HOST_CPU_ORDER_H

/* The order of a communicator's operations: each takes a ticket when it is enqueued, and
   runs when all earlier ones have, on whatever streams they are. */

#include "host/abi_nccl.h"

#include <stdbool.h>
#include <stdint.h>

uint64_t cpu_order_enter(ncclComm_t comm);

/* Waits for the ticket's turn. False: the communicator is aborted, touch nothing. Either
   way cpu_order_end must follow. */
bool cpu_order_begin(ncclComm_t comm, uint64_t ticket);
void cpu_order_end(ncclComm_t comm);

/* Waits until all that was enqueued has run. */
void cpu_order_drain(ncclComm_t comm);

/* After `aborted` is set: waits until no operation touches its buffers any more. */
void cpu_order_stop(ncclComm_t comm);

#endif
