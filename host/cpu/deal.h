#ifndef HOST_CPU_DEAL_H
#define HOST_CPU_DEAL_H

/* How an operation is dealt out to channels: NCCL 2.28's scheduleCollTasksToPlan, for an
   operation by itself. */

#include "host/cpu/choice.h"

/* Fills the shares of the choice, whose algorithm and protocol stand, on at most `most`
   channels of the communicator's `channels`. */
void cpu_deal(struct cpu_choice *choice, const struct cpu_op *op, int ranks, int most,
              int channels);

#endif
