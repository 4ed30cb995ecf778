/* Somebody else's tuner plugin, by ABI 3: small AllReduces take the tree with LL on 4
   channels; Broadcasts of 1 MiB and more are refused; all else is NCCL's own. */
#include "plugins/tuner/abi.h"

enum { BROADCAST = 0, ALL_REDUCE = 4, TREE = 0, LL = 0 };

static int start(size_t ranks, size_t nodes, abi_logger logger, void **context) {
  (void)ranks;
  (void)nodes;
  (void)logger;
  *context = NULL;
  return ABI_SUCCESS;
}

static int advise(void *context, int func, size_t bytes, int ops, float **table,
                  int algorithms, int protocols, int *channels) {
  float *cells = (float *)table;
  (void)context;
  (void)ops;
  (void)algorithms;
  if (func == BROADCAST && bytes >= 1 << 20) return 3;
  if (func != ALL_REDUCE || bytes > 100000) return ABI_SUCCESS;
  cells[TREE * protocols + LL] = 0;
  *channels = 4;
  return ABI_SUCCESS;
}

static int stop(void *context) {
  (void)context;
  return ABI_SUCCESS;
}

__attribute__((visibility("default"))) extern const struct abi_v3 ncclTunerPlugin_v3;
const struct abi_v3 ncclTunerPlugin_v3 = {"other", start, advise, stop};
