#include "host/cpu/call.h"
#include "host/cpu/comm.h"
#include "host/cpu/fail.h"
#include "host/cpu/group.h"
#include "host/cpu/log.h"
#include "host/cpu/split.h"
#include "host/cpu/steps.h"
#include "host/cpu/unique_id.h"

#include <string.h>

/* The collectives of the CPU backend: NCCL's entry points and its argument checks. */

#define VERSION 22803 /* the NCCL whose behaviour is followed */

static int load(const char *library, struct err *e) {
  (void)library; /* built in */
  (void)e;
  return 0;
}

static const char *library_path(void) {
  return "built in";
}

static void calibration(struct coll_calibration *out) {
  struct cpu_constants constants;
  cpu_constants_path(out->file, sizeof out->file);
  cpu_constants_load(&constants);
  memcpy(out->date, constants.date, sizeof out->date);
}

static ncclResult_t get_version(int *version) {
  if (!version) return cpu_fail(ncclInvalidArgument, "version is NULL");
  *version = VERSION;
  return ncclSuccess;
}

static const char *get_error_string(ncclResult_t rc) {
  static const char *const texts[] = {
    [ncclSuccess] = "no error",
    [ncclUnhandledCudaError] = "unhandled cuda error",
    [ncclSystemError] = "unhandled system error",
    [ncclInternalError] = "internal error",
    [ncclInvalidArgument] = "invalid argument",
    [ncclInvalidUsage] = "invalid usage",
    [ncclRemoteError] = "remote process exited or there was a network error",
    [ncclInProgress] = "NCCL operation in progress",
  };
  bool known = (int)rc >= 0 && (size_t)rc < sizeof texts / sizeof texts[0];
  return known ? texts[rc] : "unknown result code";
}

static ncclResult_t init_as(const char *api, ncclComm_t *comm, int nranks, ncclUniqueId id,
                            int rank, ncclConfig_t *config) {
  cpu_log_version(rank);
  if (!comm) return cpu_group_note(cpu_fail(ncclInvalidArgument, "comm is NULL"));
  *comm = NULL;
  if (config && config->magic != NCCL_CONFIG_MAGIC) {
    return cpu_group_note(cpu_fail(ncclInvalidArgument, "the config is not initialised"));
  }
  CUdevice device = cpu_device_current();
  if (device < 0) {
    return cpu_group_note(cpu_fail(ncclUnhandledCudaError, "no device is current"));
  }
  return cpu_group_job(&(struct cpu_job){.api = api,
                                         .run = cpu_job_init,
                                         .out = comm,
                                         .id = id,
                                         .rank = rank,
                                         .nranks = nranks,
                                         .device = device,
                                         .bounds = cpu_job_bounds(config)});
}

static ncclResult_t init_rank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank) {
  return init_as("ncclCommInitRank", comm, nranks, id, rank, NULL);
}

static ncclResult_t init_rank_config(ncclComm_t *comm, int nranks, ncclUniqueId id,
                                     int rank, ncclConfig_t *config) {
  return init_as("ncclCommInitRankConfig", comm, nranks, id, rank, config);
}

static ncclResult_t check_devices(int ndev, const int *devices) {
  int count = 0;
  if (cpu_device.device_get_count(&count)) {
    return cpu_fail(ncclUnhandledCudaError, "the device is not initialised");
  }
  for (int i = 0; i < ndev; i++) {
    int device = devices ? devices[i] : i;
    if (device < 0 || device >= count) {
      return cpu_fail(ncclInvalidArgument, "device %d of %d does not exist", device, count);
    }
  }
  return ncclSuccess;
}

static ncclResult_t init_all(ncclComm_t *comms, int ndev, const int *devices) {
  cpu_log_version(0);
  if (!comms || ndev < 1) {
    return cpu_group_note(cpu_fail(ncclInvalidArgument, "%d devices", ndev));
  }
  ncclUniqueId id;
  ncclResult_t rc = check_devices(ndev, devices);
  if (!rc) rc = cpu_unique_id_create(&id);
  if (rc) return cpu_group_note(rc);
  cpu_group_start();
  for (int i = 0; i < ndev; i++) {
    cpu_group_job(&(struct cpu_job){.api = "ncclCommInitAll",
                                    .run = cpu_job_init,
                                    .out = &comms[i],
                                    .id = id,
                                    .rank = i,
                                    .nranks = ndev,
                                    .device = devices ? devices[i] : i});
  }
  return cpu_group_end();
}

static ncclResult_t count(const ncclComm_t comm, int *value) {
  ncclResult_t rc = cpu_comm_check_handle(comm);
  if (rc) return rc;
  *value = comm->nranks;
  return ncclSuccess;
}

static ncclResult_t cu_device(const ncclComm_t comm, int *value) {
  ncclResult_t rc = cpu_comm_check_handle(comm);
  if (rc) return rc;
  *value = comm->device;
  return ncclSuccess;
}

static ncclResult_t user_rank(const ncclComm_t comm, int *value) {
  ncclResult_t rc = cpu_comm_check_handle(comm);
  if (rc) return rc;
  *value = comm->rank;
  return ncclSuccess;
}

static ncclResult_t mem_alloc(void **ptr, size_t bytes) {
  CUdeviceptr device_ptr = 0;
  if (!ptr) return cpu_fail(ncclInvalidArgument, "ptr is NULL");
  if (cpu_device.mem_alloc(&device_ptr, bytes)) {
    return cpu_fail(ncclUnhandledCudaError, "cannot allocate %zu bytes", bytes);
  }
  *ptr = (void *)(uintptr_t)device_ptr;
  return ncclSuccess;
}

static ncclResult_t mem_free(void *ptr) {
  if (!ptr || !cpu_device.mem_free((CUdeviceptr)(uintptr_t)ptr)) return ncclSuccess;
  return cpu_fail(ncclInvalidArgument, "not memory of this backend");
}

static ncclResult_t register_buffer(const ncclComm_t comm, void *buffer, size_t bytes,
                                    void **handle) {
  ncclResult_t rc = cpu_comm_check(comm);
  if (rc) return rc;
  if (!buffer || !bytes || !handle) {
    return cpu_fail(ncclInvalidArgument, "buffer, bytes or handle is NULL or 0");
  }
  return cpu_registered_add(&comm->registered, buffer, bytes, handle);
}

static ncclResult_t deregister_buffer(const ncclComm_t comm, void *handle) {
  ncclResult_t rc = cpu_comm_check_handle(comm);
  return rc ? rc : cpu_registered_remove(&comm->registered, handle);
}

static ncclResult_t register_window(ncclComm_t comm, void *buffer, size_t bytes,
                                    ncclWindow_t *window, int flags) {
  (void)flags;
  return register_buffer(comm, buffer, bytes, (void **)window);
}

static ncclResult_t deregister_window(ncclComm_t comm, ncclWindow_t window) {
  return deregister_buffer(comm, window);
}

struct coll_api cpu_coll = {
  .name = "cpu",
  .load = load,
  .library_path = library_path,
  .steps = &cpu_steps,
  .last_choice = cpu_comm_last_choice,
  .calibration = calibration,
  .get_version = get_version,
  .get_unique_id = cpu_unique_id_create,
  .get_error_string = get_error_string,
  .get_last_error = cpu_comm_get_last_error,
  .comm_init_rank = init_rank,
  .comm_init_rank_config = init_rank_config,
  .comm_init_all = init_all,
  .comm_finalize = cpu_comm_finalize,
  .comm_destroy = cpu_comm_destroy,
  .comm_abort = cpu_comm_abort,
  .comm_split = cpu_split,
  .comm_shrink = cpu_split_shrink,
  .comm_get_async_error = cpu_comm_get_async_error,
  .comm_count = count,
  .comm_cu_device = cu_device,
  .comm_user_rank = user_rank,
  .mem_alloc = mem_alloc,
  .mem_free = mem_free,
  .comm_register = register_buffer,
  .comm_deregister = deregister_buffer,
  .comm_window_register = register_window,
  .comm_window_deregister = deregister_window,
  .red_op_create_pre_mul_sum = cpu_redop_create_pre_mul_sum,
  .red_op_destroy = cpu_redop_destroy,
  .all_reduce = cpu_call_all_reduce,
  .reduce = cpu_call_reduce,
  .broadcast = cpu_call_broadcast,
  .reduce_scatter = cpu_call_reduce_scatter,
  .all_gather = cpu_call_all_gather,
  .all_to_all = cpu_call_all_to_all,
  .gather = cpu_call_gather,
  .scatter = cpu_call_scatter,
  .send = cpu_call_send,
  .recv = cpu_call_recv,
  .group_start = cpu_group_start,
  .group_end = cpu_group_end,
};
