/* Reduction operators: NCCL's five by name, and comm:pre_mul_sum(scalar, dtype). */

#include "bindings/bind.h"
#include "bindings/nccl.h"
#include "host/dtype.h"

#define OP "nccl.op"

struct op {
  struct nccl_child child; /* first: release() is handed this */
  ncclRedOp_t op;
  ncclDataType_t type;
};

/* In the order of NCCL's enum. */
static const char *const names[] = {"sum", "prod", "max", "min", "avg", NULL};

static ncclRedOp_t check_own(lua_State *L, int arg, const struct comm *c,
                             ncclDataType_t type) {
  const struct op *op = luaL_checkudata(L, arg, OP);
  luaL_argcheck(L, op->child.comm, arg, "op: the operator or its communicator is closed");
  luaL_argcheck(L, op->child.comm == c, arg, "op: made by another communicator");
  if (op->type != type) {
    luaL_argerror(L,
                  arg,
                  lua_pushfstring(L,
                                  "op: made for %s, the buffers hold %s",
                                  dtype_names[op->type],
                                  dtype_names[type]));
  }
  return op->op;
}

const char *nccl_op_name(ncclRedOp_t op) {
  return names[op];
}

ncclRedOp_t nccl_checkop(lua_State *L, int arg, const struct comm *c, ncclDataType_t type) {
  if (lua_type(L, arg) == LUA_TUSERDATA) return check_own(L, arg, c, type);
  return bind_checkname(L, arg, names);
}

static void op_release(struct nccl_child *child) {
  const struct op *op = (const struct op *)child;
  child->comm->api->red_op_destroy(op->op, child->comm->slot);
}

int nccl_pre_mul_sum(lua_State *L) {
  struct comm *c = nccl_checkcomm(L, 1);
  luaL_checknumber(L, 2);
  const ncclDataType_t type = bind_checkname(L, 3, dtype_names);
  uint64_t scalar = cuda_checkelement(L, 2, type);
  lua_settop(L, 1);
  struct op *op = lua_newuserdatauv(L, sizeof *op, 1);
  *op = (struct op){.child.release = op_release, .type = type}; /* closed */
  luaL_setmetatable(L, OP);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1); /* its memory has the list that the operator is in */
  nccl_checkcomm(L, 1);        /* the allocation may have run a finalizer */
  const ncclResult_t rc = c->api->red_op_create_pre_mul_sum(
    &op->op, &scalar, type, ncclScalarHostImmediate, c->handle);
  if (rc) return nccl_fail(L, c->nccl, "pre_mul_sum", rc);
  nccl_adopt_child(c, &op->child);
  return 1;
}

static int op_close(lua_State *L) {
  struct op *op = luaL_checkudata(L, 1, OP);
  nccl_close_child(&op->child);
  return 0;
}

static int op_tostring(lua_State *L) {
  const struct op *op = luaL_checkudata(L, 1, OP);
  const char *state = op->child.comm ? "" : ", closed";
  lua_pushfstring(L, "nccl.op: pre_mul_sum of %s%s", dtype_names[op->type], state);
  return 1;
}

static int op_dtype(lua_State *L) {
  const struct op *op = luaL_checkudata(L, 1, OP);
  lua_pushstring(L, dtype_names[op->type]);
  return 1;
}

static const luaL_Reg op_meta[] = {
  {"__gc", op_close},
  {"__close", op_close},
  {"__tostring", op_tostring},
  {NULL, NULL},
};

static const luaL_Reg op_methods[] = {{"close", op_close}, {NULL, NULL}};
static const luaL_Reg op_fields[] = {{"dtype", op_dtype}, {NULL, NULL}};

void nccl_op_type(lua_State *L) {
  bind_type_fields(L, OP, op_meta, op_methods, op_fields);
}
