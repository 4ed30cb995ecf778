#ifndef HOST_CPU_COMM_H
#define HOST_CPU_COMM_H

/* A communicator: one rank's view of the segment that the ranks share. */

#include "host/backend.h"
#include "host/cpu/connection.h"
#include "host/cpu/model.h"
#include "host/cpu/redop.h"
#include "host/cpu/registered.h"
#include "host/cpu/segment.h"
#include "host/cpu/stats.h"
#include "host/cpu/team.h"
#include "host/cpu/tuner.h"

#include <pthread.h>

#define CPU_COMM_MAGIC 0x6d6d6f63u

struct ncclComm {
  uint64_t magic;
  _Atomic int references; /* the user's, and one for each task that holds it */
  int rank, nranks;
  CUdevice device;
  ncclUniqueId id;
  struct cpu_segment *segment;
  struct cpu_connection *connections;
  struct cpu_team *team; /* runs channels side by side */
  struct cpu_stats stats;
  char *scratch[CPU_CHANNELS]; /* CPU_SCRATCH bytes each, made when first needed */
  struct cpu_redops redops;
  struct cpu_model model;
  struct cpu_tuner tuner;
  struct cpu_registered registered;
  unsigned splits;           /* how often split was called: the same on all ranks */
  struct coll_choice last;   /* of a collective */
  struct cpu_recent *recent; /* choices that were made (select.c) */
  bool finalized;
  _Atomic uint64_t op_count; /* calls so far */

  /* Operations run in the order of their tickets, whatever streams they are on (order.c).
   */
  _Atomic uint64_t issued, done;
  _Atomic int running, waiters;
  pthread_mutex_t lock;
  pthread_cond_t moved;

  _Atomic int aborted;
  _Atomic int broken;      /* a channel of the operation under way has failed */
  _Atomic int async_error; /* an ncclResult_t: the first failure of an operation */
  char async_text[512];    /* written before async_error */
};

struct cpu_job;

/* Joins the communicator that the job describes; blocks until all ranks have. */
ncclResult_t cpu_comm_create(ncclComm_t *comm, const struct cpu_job *job);

void cpu_comm_retain(ncclComm_t comm);
void cpu_comm_release(ncclComm_t comm);

/* ncclSuccess if the communicator can take operations; else why not. */
ncclResult_t cpu_comm_check(ncclComm_t comm);

/* Is it a communicator at all? */
ncclResult_t cpu_comm_check_handle(const struct ncclComm *comm);

/* Ends what runs, and lets what is queued do nothing; the others are told why. */
void cpu_comm_stop(ncclComm_t comm, enum cpu_rank_state state);

bool cpu_comm_is_aborted(ncclComm_t comm);

/* A channel's memory for what is on its way, NULL if memory is short. Only the channel's
   operation uses it. */
enum { CPU_SCRATCH = 512 << 10 };
char *cpu_comm_scratch(ncclComm_t comm, int channel);

/* Wakes this rank's own threads that wait for others, to look around. */
void cpu_comm_disturb(ncclComm_t comm);

/* An operation has failed: with the sentence of this thread's last cpu_fail. Peers that
   wait for this rank are woken. */
void cpu_comm_set_error(ncclComm_t comm, ncclResult_t rc);

/* The members of coll_api. */
ncclResult_t cpu_comm_finalize(ncclComm_t comm);
ncclResult_t cpu_comm_destroy(ncclComm_t comm);
ncclResult_t cpu_comm_abort(ncclComm_t comm);
ncclResult_t cpu_comm_get_async_error(ncclComm_t comm, ncclResult_t *async_error);
const char *cpu_comm_get_last_error(ncclComm_t comm);
ncclResult_t cpu_comm_last_choice(ncclComm_t comm, struct coll_choice *out);

#endif
