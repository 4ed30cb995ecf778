#ifndef HOST_CPU_REPORT_MODEL_H
#define HOST_CPU_REPORT_MODEL_H

/* The tables of the log. */

#include "host/cpu/model.h"

/* What NCCL_ALGO and NCCL_PROTO leave. */
void cpu_report_matrix(const struct cpu_enabled *enabled);

/* Latencies and bandwidths, three algorithms side by side. */
void cpu_report_table(const struct cpu_model *model);

void cpu_report_thresholds(const struct cpu_model *model);

#endif
