#include "host/launcher.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What each launcher sets. `job` tells worlds apart; where none is set, the parent's
   process id does: the launcher's agent on this host. */
static const struct {
  const char *name, *index, *count, *here;
  const char *job[3];
} launchers[] = {
  {"torchrun",
   "RANK",
   "WORLD_SIZE",
   "LOCAL_WORLD_SIZE",
   {"TORCHELASTIC_RUN_ID", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"}},
  {"Open MPI",
   "OMPI_COMM_WORLD_RANK",
   "OMPI_COMM_WORLD_SIZE",
   "OMPI_COMM_WORLD_LOCAL_SIZE",
   {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
  /* Not SLURM_NTASKS, which the batch script itself sees as well. */
  {"Slurm",
   "SLURM_PROCID",
   "SLURM_STEP_NUM_TASKS",
   NULL,
   {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
  {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", {NULL}},
};

static int read_int(const char *variable) {
  const char *text = variable ? getenv(variable) : NULL;
  char *end;
  if (!text || !*text) return -1;
  long value = strtol(text, &end, 10);
  return *end || value < 0 || value > INT_MAX ? -1 : (int)value;
}

/* FNV-1a: the values may be longer than a socket's name. */
static uint64_t add_text(uint64_t hash, const char *text) {
  for (; *text; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

static void make_key(struct launcher *l, const char *const job[3]) {
  uint64_t hash = add_text(UINT64_C(0xcbf29ce484222325), l->name);
  bool is_told = false;
  for (int i = 0; i < 3 && job[i]; i++) {
    const char *value = getenv(job[i]);
    if (!value) continue;
    hash = add_text(hash, value);
    is_told = true;
  }
  int parent = is_told ? 0 : (int)getppid();
  snprintf(l->key,
           sizeof l->key,
           "nclua-%u-%d-%d-%016llx",
           (unsigned)getuid(),
           l->count,
           parent,
           (unsigned long long)hash);
}

int launcher_find(struct launcher *l, struct err *e) {
  const char *choice = getenv("NCLUA_LAUNCHER");
  *l = (struct launcher){.index = -1};
  if (choice && strcmp(choice, "none") == 0) return 0;
  for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
    int index = read_int(launchers[i].index), count = read_int(launchers[i].count);
    if (index < 0 || count < 2) continue; /* a world of one forks its ranks itself */
    if (index >= count) {
      return err_set(e,
                     "EINVAL",
                     "%s: %s is %d, but %s is %d",
                     launchers[i].name,
                     launchers[i].index,
                     index,
                     launchers[i].count,
                     count);
    }
    int here = read_int(launchers[i].here);
    *l = (struct launcher){launchers[i].name, index, count, here < 0 ? 0 : here, ""};
    make_key(l, launchers[i].job);
    return 0;
  }
  return 0;
}
