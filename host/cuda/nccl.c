#include "host/cuda/nccl.h"

#include "host/backend.h"
#include "host/cuda/compose.h"
#include "host/cuda/config.h"
#include "host/cuda/search.h"
#include "host/cuda/symbol.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { OLDEST_NCCL = 21200 };

static char nccl_path[PATH_MAX];

struct nccl nccl;

static const struct symbol symbols[] = {
#define ROW(name, slot) {#name, &slot},
#define SINCE(minor, name, slot) {#name, &slot, .is_optional = true},
#include "host/cuda/nccl.def"
};

/* What a library's own text cannot say: why we did not call it. Read once. */
static _Thread_local char refusal[256];

static const char *get_last_error(ncclComm_t comm) {
  static _Thread_local char told[sizeof refusal];
  if (refusal[0]) {
    memcpy(told, refusal, sizeof told);
    refusal[0] = '\0';
    return told;
  }
  return nccl.get_last_error ? nccl.get_last_error(comm) : "";
}

/* A configuration as this library wants it; NULL stays NULL. */
static ncclResult_t adapt(ncclConfig_t **config, ncclConfig_t *room) {
  if (!*config) return ncclSuccess;
  *room = **config;
  *config = room;
  return config_adapt(room, refusal, sizeof refusal) ? ncclInvalidUsage : ncclSuccess;
}

static ncclResult_t comm_init_rank_config(ncclComm_t *comm, int nranks, ncclUniqueId id,
                                          int rank, ncclConfig_t *config) {
  ncclConfig_t room;
  ncclResult_t rc = adapt(&config, &room);
  if (rc) return rc;
  if (nccl.comm_init_rank_config) {
    return nccl.comm_init_rank_config(comm, nranks, id, rank, config);
  }
  return cuda_coll.comm_init_rank(comm, nranks, id, rank);
}

static ncclResult_t comm_split(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                               ncclConfig_t *config) {
  ncclConfig_t room;
  ncclResult_t rc = adapt(&config, &room);
  return rc ? rc : nccl.comm_split(comm, color, key, newcomm, config);
}

static ncclResult_t comm_shrink(ncclComm_t comm, int *exclude, int exclude_count,
                                ncclComm_t *newcomm, ncclConfig_t *config, int flags) {
  ncclConfig_t room;
  ncclResult_t rc = adapt(&config, &room);
  if (rc) return rc;
  return nccl.comm_shrink(comm, exclude, exclude_count, newcomm, config, flags);
}

static const char *library_path(void) {
  return nccl_path;
}

static int check_version(struct err *e) {
  int version = 0;
  ncclResult_t rc = cuda_coll.get_version(&version);
  if (rc) return err_set(e, "ncclSystemError", "ncclGetVersion of '%s' fails", nccl_path);
  if (version < OLDEST_NCCL) {
    return err_set(e,
                   "nccl_too_old",
                   "'%s' is NCCL version code %d: nclua needs 2.12 (21200) or newer",
                   nccl_path,
                   version);
  }
  config_set_version(version);
  return 0;
}

static void add_our_own(void) {
  cuda_coll.get_last_error = get_last_error;
  cuda_coll.comm_init_rank_config = comm_init_rank_config;
  if (nccl.comm_split) cuda_coll.comm_split = comm_split;
  if (nccl.comm_shrink) cuda_coll.comm_shrink = comm_shrink;
  if (!cuda_coll.all_to_all) cuda_coll.all_to_all = compose_all_to_all;
  if (!cuda_coll.gather) cuda_coll.gather = compose_gather;
  if (!cuda_coll.scatter) cuda_coll.scatter = compose_scatter;
}

static int load(const char *library, struct err *e) {
  static bool is_loaded;
  if (is_loaded) return 0;
  void *handle = search_open(SEARCH_NCCL, library, e);
  if (!handle) return -1;
  search_path_of(dlsym(handle, "ncclGetVersion"), nccl_path, sizeof nccl_path);
  const char *lacks = symbol_fill(handle, symbols, COUNT(symbols));
  if (lacks) {
    return err_set(e, "no_symbol", "'%s' lacks '%s': is it NCCL?", nccl_path, lacks);
  }
  if (check_version(e)) return -1;
  add_our_own();
  is_loaded = true;
  return 0;
}

struct coll_api cuda_coll = {
  .name = "nccl",
  .load = load,
  .library_path = library_path,
};
