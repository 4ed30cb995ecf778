#include "bindings/world.h"

#include "bindings/bind.h"

#include "host/forkable.h"

struct options {
  int count, output, affinity;
  bool launcher;
  const char *log_dir;
};

static const char *const outputs[] = {"inherit", "capture", "null", "files", NULL};

static const struct bind_field fields[] = {
  {"count",
   BIND_INT,
   offsetof(struct options, count),
   .required = true,
   .min = 1,
   .max = WORLD_MOST_RANKS},
  {"output", BIND_NAME, offsetof(struct options, output), .names = outputs},
  {"log_dir", BIND_STRING, offsetof(struct options, log_dir)},
  {"affinity", BIND_TABLE, offsetof(struct options, affinity)},
  {"launcher", BIND_BOOL, offsetof(struct options, launcher)},
  {NULL},
};

static int check_cpu(lua_State *L, int index) {
  int is_integer = 0;
  lua_Integer cpu = lua_tointegerx(L, index, &is_integer);
  luaL_argcheck(L,
                is_integer && cpu >= 0 && cpu < CPU_SETSIZE,
                1,
                "option 'affinity': expected, for each rank, a CPU or a list of CPUs");
  return (int)cpu;
}

/* One rank's CPUs: a number or a list of numbers, on top of the stack. */
static int read_cpus(lua_State *L, cpu_set_t *set, struct err *e) {
  int cpus[CPU_SETSIZE];
  size_t count = 0;
  if (!lua_istable(L, -1)) {
    cpus[count++] = check_cpu(L, -1);
    return process_cpus(set, cpus, count, e);
  }
  size_t given = lua_rawlen(L, -1);
  luaL_argcheck(L, given > 0 && given <= CPU_SETSIZE, 1, "option 'affinity': a bad list");
  for (; count < given; count++) {
    lua_rawgeti(L, -1, (lua_Integer)count + 1);
    cpus[count] = check_cpu(L, -1);
    lua_pop(L, 1);
  }
  return process_cpus(set, cpus, count, e);
}

static int read_affinity(lua_State *L, struct launch_spec *spec, int at, struct err *e) {
  luaL_argcheck(L,
                lua_rawlen(L, at) == (size_t)spec->count,
                1,
                "option 'affinity': expected one entry for each rank");
  cpu_set_t *sets = lua_newuserdatauv(L, (size_t)spec->count * sizeof *sets, 0);
  for (int i = 0; i < spec->count; i++) {
    lua_rawgeti(L, at, i + 1);
    if (read_cpus(L, &sets[i], e)) return -1;
    lua_pop(L, 1);
  }
  spec->cpus = sets;
  return 0;
}

static int check_unnested(struct err *e) {
  int count, index = world_rank_index(&count);
  if (index < 0) return forkable_check(e);
  return err_set(
    e, "busy", "worlds do not nest: this is rank %d of %d already", index, count);
}

/* Worlds of this launch so far; all its processes make the same ones, in the same order. */
static int next_turn(void) {
  static int turns;
  return turns++;
}

static int read_launcher(struct world_request *r, struct err *e) {
  if (launcher_find(&r->launcher, e)) return -1;
  if (!r->launcher.name) return err_set(e, "ENOENT", "no launcher has made a world");
  if (r->launcher.count != r->spec.count) {
    return err_set(e,
                   "EINVAL",
                   "%d ranks were asked for, %s made a world of %d",
                   r->spec.count,
                   r->launcher.name,
                   r->launcher.count);
  }
  r->turn = next_turn();
  return 0;
}

int world_read_request(lua_State *L, struct world_request *r, struct err *e) {
  struct options o = {0};
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  bind_fields(L, 1, fields, &o);
  luaL_checkstack(L, 8, NULL);
  *r = (struct world_request){
    .spec = {o.count, (enum launch_output)o.output, o.log_dir, NULL}};
  luaL_argcheck(L, o.output != LAUNCH_FILES || o.log_dir, 1, "option 'log_dir' is missing");
  if (check_unnested(e)) return -1;
  if (o.affinity && read_affinity(L, &r->spec, o.affinity, e)) return -1;
  return o.launcher ? read_launcher(r, e) : 0;
}
