#ifndef HOST_CPU_REPORT_H
#define HOST_CPU_REPORT_H

/* What a communicator says of itself in the log, in NCCL 2.28's words. */

#include "host/cpu/enqueue.h"
#include "host/cpu/job.h"

/* In this order. */
void cpu_report_start(ncclComm_t comm, const struct cpu_job *job);
void cpu_report_graphs(ncclComm_t comm);
void cpu_report_model(ncclComm_t comm);
void cpu_report_complete(ncclComm_t comm, const struct cpu_job *job);
void cpu_report_abort(ncclComm_t comm);
void cpu_report_end(ncclComm_t comm, bool is_aborted);

/* A call as the user made it; a collective as it was chosen. */
void cpu_report_call(const struct cpu_call *call, ncclRedOp_t op);
void cpu_report_choice(const struct cpu_call *call);

/* "ncclFloat32" */
const char *cpu_report_type(ncclDataType_t type);

#endif
