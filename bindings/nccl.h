#ifndef BINDINGS_NCCL_H
#define BINDINGS_NCCL_H

/* The handles of nclua.nccl and what its files share: the state's session, communicators,
   what dies with a communicator, and groups. */

#include "bindings/cuda.h"
#include "host/comms.h"

#include <lauxlib.h>
#include <lua.h>

/* What a Lua state knows of the collectives; one a state, alive until the last finalizer.
 */
struct nccl {
  const struct coll_api *api; /* NULL until something needed it */
  struct cuda *cuda;
  int version;         /* 22803 */
  int group_depth;     /* groups that run */
  int members;         /* communicators in the running group */
  uint64_t cliques;    /* made by init_all */
  bool holds_thread;   /* NCCL's bootstrap thread may run: no fork any more */
  struct burst *burst; /* that writes down what is called; NULL but inside comm:burst */
};

/* What dies with its communicator: an operator, a registration, a window. */
struct nccl_child {
  struct comm *comm; /* NULL: closed */
  struct nccl_child *next, **link;
  void (*release)(struct nccl_child *child); /* in the backend, from child->comm->slot */
};

enum nccl_state {
  NCCL_CLOSED,
  NCCL_UNBORN, /* its group has not ended */
  NCCL_OPEN,
  NCCL_FINALIZED, /* may only be closed */
  NCCL_LEFT       /* closed in mid-capture: to be aborted afterwards */
};

enum nccl_kind {
  NCCL_ALL_GATHER,
  NCCL_ALL_REDUCE,
  NCCL_ALL_TO_ALL,
  NCCL_BROADCAST,
  NCCL_GATHER,
  NCCL_RECV,
  NCCL_REDUCE,
  NCCL_REDUCE_SCATTER,
  NCCL_SCATTER,
  NCCL_SEND
};

/* A call as the library takes it; what its kind has no use for is ignored. */
struct nccl_call {
  enum nccl_kind kind;
  void *send, *recv;
  size_t count; /* as NCCL counts it for this kind */
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer; /* root or peer; -1: neither */
};

/* The last all_reduce of a communicator: repeated with the very same arguments, it needs no
   checking again. On a GPU machine the checks cost cold cache lines after NCCL's own work,
   not instructions. */
struct nccl_last {
  uint64_t epoch;                   /* of struct cuda */
  const void *send, *recv, *stream; /* the arguments; send NULL: none */
  CUstream handle;
  struct nccl_call call;
};

struct comm {
  const struct bind_tag *tag;
  struct nccl *nccl;
  const struct coll_api *api;
  struct cuda *cuda;
  enum nccl_state state;
  ncclComm_t handle; /* NULL unless open */
  ncclComm_t slot;   /* what must be ended; the backend writes it at birth */
  int rank, count, device;
  const char *name;       /* NULL, or the string of user value 1 */
  uint64_t op_count;      /* operations enqueued, as NCCL counts them */
  uint64_t clique;        /* equal for the communicators of one init */
  bool is_local;          /* other ranks of its clique live in this Lua state */
  bool is_member;         /* of the running group */
  bool is_doomed, drains; /* closed while a member: to be ended with the group */
  struct nccl_last last;
  struct comms_entry entry;
  struct nccl_child *children;
};

const char *nccl_call_name(const struct nccl_call *call);

/* Calls the library, with nothing checked any more. */
ncclResult_t nccl_call_issue(const struct nccl_call *call, const struct comm *c,
                             CUstream stream);

/* Inside comm:burst: writes the call down instead. The arguments of the Lua call are on the
   stack; they are kept with it. */
int nccl_burst_add(lua_State *L, struct comm *c, const struct nccl_call *call);

/* The state's struct with both backends loaded, or NULL with *e filled. */
struct nccl *nccl_open(lua_State *L, struct err *e);

/* Pushes the library's name of a result, "ncclInvalidUsage"; "ncclResult 42" for one that
   is unknown. Returns 1. */
int nccl_push_result(lua_State *L, ncclResult_t rc);

/* Failures of the world, in the library's own words: nil, "WHAT: RESULT: why", RESULT; or
   raises "WHAT: RESULT: why". */
int nccl_fail(lua_State *L, const struct nccl *n, const char *what, ncclResult_t rc);
int nccl_raise(lua_State *L, const struct nccl *n, const char *what, ncclResult_t rc);

/* The same for a communicator that is open: an error of its own is what is told. */
int nccl_raise_of(lua_State *L, const struct comm *c, const char *what, ncclResult_t rc);

/* nil, "WHAT: not supported by NCCL 2.12.0", "ENOTSUP". */
int nccl_unsupported(lua_State *L, const struct nccl *n, const char *what);

/* An open communicator; else raises. */
struct comm *nccl_checkcomm(lua_State *L, int arg);

/* Raises if `what` would wait for a rank that this thread has yet to call for. */
void nccl_check_local(lua_State *L, const struct comm *c, const char *what);

/* Ends what `c` owns; `arg` is its stack index. Draining waits for what is enqueued. While
   a group runs it only becomes closed. */
ncclResult_t nccl_comm_end(lua_State *L, int arg, struct comm *c, bool drains);

/* A new closed communicator, pushed; `name` may be NULL. */
struct comm *nccl_comm_push(lua_State *L, struct nccl *n, const char *name);

/* The birth's answer is `rc`: makes the communicator usable, and known to the watchdog; or
   ends what a failed birth left in its slot. */
ncclResult_t nccl_comm_adopt(struct comm *c, ncclResult_t rc);

/* A non-blocking communicator answers ncclInProgress: waits for the final answer. */
ncclResult_t nccl_settle(const struct comm *c, ncclResult_t rc);

/* The communicator at `arg` takes part in the running group: it stays alive, and what ends
   it waits, until the group has ended. */
void nccl_join_group(lua_State *L, int arg, struct comm *c);

void nccl_adopt_child(struct comm *c, struct nccl_child *child);

/* Marks the child closed and frees it in the backend. */
void nccl_close_child(struct nccl_child *child);

/* The name of a built-in operator, "sum". */
const char *nccl_op_name(ncclRedOp_t op);

/* The operator at `arg`, for `c` and `type`: a name or a handle of comm:pre_mul_sum. */
ncclRedOp_t nccl_checkop(lua_State *L, int arg, const struct comm *c, ncclDataType_t type);

void nccl_comm_type(lua_State *L, const luaL_Reg *methods);
void nccl_burst_type(lua_State *L);
void nccl_op_type(lua_State *L);
void nccl_register_types(lua_State *L);

/* The module's functions, by file. */
int nccl_all_gather(lua_State *L);
int nccl_all_reduce(lua_State *L);
int nccl_all_to_all(lua_State *L);
int nccl_broadcast(lua_State *L);
int nccl_burst(lua_State *L);
int nccl_gather(lua_State *L);
int nccl_recv(lua_State *L);
int nccl_reduce(lua_State *L);
int nccl_reduce_scatter(lua_State *L);
int nccl_scatter(lua_State *L);
int nccl_send(lua_State *L);

int nccl_comm_new(lua_State *L);
int nccl_comm_shrink(lua_State *L);
int nccl_comm_split(lua_State *L);
int nccl_init_all(lua_State *L);

int nccl_comm_abort(lua_State *L);
int nccl_comm_async_error(lua_State *L);
int nccl_comm_close(lua_State *L);
int nccl_comm_finalize(lua_State *L);
int nccl_comm_ready(lua_State *L);

int nccl_group(lua_State *L);
int nccl_last_choice(lua_State *L);
int nccl_pre_mul_sum(lua_State *L);
int nccl_register(lua_State *L);
int nccl_window(lua_State *L);

int luaopen_nclua_nccl(lua_State *L);

#endif
