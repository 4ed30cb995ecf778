#ifndef HOST_CPU_NUMBERS_H
#define HOST_CPU_NUMBERS_H

/* NCCL's numbers, of its cost table, its plugins and its logs. */

enum cpu_function {
  CPU_BROADCAST = 0,
  CPU_REDUCE = 1,
  CPU_ALL_GATHER = 2,
  CPU_REDUCE_SCATTER = 3,
  CPU_ALL_REDUCE = 4,
  CPU_MODELLED = 5, /* those above have algorithms; the rest is sends and receives */
  CPU_SEND_TO = 6,
  CPU_RECV_FROM = 7,
  CPU_ALL_TO_ALL = 8,
  CPU_SCATTER = 9,
  CPU_GATHER = 10,
  CPU_FUNCTIONS = 11,
};

enum cpu_algorithm_number {
  CPU_TREE = 0,
  CPU_RING = 1,
  CPU_PAT = 6,
  CPU_ALGORITHMS = 7, /* 2 to 5 need a switch that reduces: CollNet and NVLS */
};

enum cpu_protocol_number { CPU_LL = 0, CPU_LL128 = 1, CPU_SIMPLE = 2, CPU_PROTOCOLS = 3 };

#endif
