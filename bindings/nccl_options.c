/* The option table of a new communicator, and the library's configuration from it. */

#include "bindings/bind.h"
#include "bindings/nccl_init.h"

#include <limits.h>
#include <string.h>

enum { UNDEFINED = NCCL_CONFIG_UNDEF_INT, MOST_CTAS = 64 };

static const char *const cta_policies[] = {"default", "efficiency", "zero", NULL};

#define OPTION(field) offsetof(struct nccl_options, field)

/* The first rows are for nccl.comm alone, the rest for split and shrink too. */
enum { COMM_ROWS = 4 };
static const struct bind_field option_fields[] = {
  {"id", BIND_ANY, OPTION(id), .required = true},
  {"rank", BIND_INT, OPTION(rank), .required = true, .min = 0, .max = INT_MAX},
  {"count", BIND_INT, OPTION(count), .required = true, .min = 1, .max = INT_MAX},
  {"device", BIND_INT, OPTION(device), .min = 0, .max = INT_MAX},
  {"blocking", BIND_BOOL, OPTION(blocking)},
  {"cga_cluster_size", BIND_INT, OPTION(cga_cluster_size), .min = 0, .max = 8},
  {"channels_per_net_peer",
   BIND_INT,
   OPTION(channels_per_net_peer),
   .min = 1,
   .max = MOST_CTAS},
  {"collnet", BIND_BOOL, OPTION(collnet)},
  {"cta_policy", BIND_NAME, OPTION(cta_policy), .names = cta_policies},
  {"max_ctas", BIND_INT, OPTION(max_ctas), .min = 1, .max = MOST_CTAS},
  {"min_ctas", BIND_INT, OPTION(min_ctas), .min = 1, .max = MOST_CTAS},
  {"name", BIND_STRING, OPTION(name)},
  {"net_name", BIND_STRING, OPTION(net_name)},
  {"nvlink_centric_sched", BIND_BOOL, OPTION(nvlink_centric_sched)},
  {"nvls_ctas", BIND_INT, OPTION(nvls_ctas), .min = 1, .max = MOST_CTAS},
  {"shrink_share", BIND_BOOL, OPTION(shrink_share)},
  {"split_share", BIND_BOOL, OPTION(split_share)},
  {"traffic_class", BIND_INT, OPTION(traffic_class), .min = 0, .max = INT_MAX},
  {NULL},
};

static const struct nccl_options no_options = {
  .device = -1,
  .blocking = true,
  .cga_cluster_size = UNDEFINED,
  .channels_per_net_peer = UNDEFINED,
  .cta_policy = UNDEFINED,
  .max_ctas = UNDEFINED,
  .min_ctas = UNDEFINED,
  .nvls_ctas = UNDEFINED,
  .traffic_class = UNDEFINED,
};

static void check_options(lua_State *L, int arg, const struct nccl_options *o) {
  if (o->min_ctas == UNDEFINED || o->max_ctas == UNDEFINED) return;
  if (o->min_ctas <= o->max_ctas) return;
  luaL_argerror(
    L,
    arg,
    lua_pushfstring(L, "min_ctas %d exceeds max_ctas %d", o->min_ctas, o->max_ctas));
}

struct nccl_options nccl_comm_options(lua_State *L, int arg) {
  struct nccl_options o = no_options;
  bind_fields(L, arg, option_fields, &o);
  check_options(L, arg, &o);
  return o;
}

struct nccl_options nccl_split_options(lua_State *L, int arg) {
  struct nccl_options o = no_options;
  bind_fields(L, arg, option_fields + COMM_ROWS, &o);
  check_options(L, arg, &o);
  return o;
}

struct nccl_options nccl_shrink_options(lua_State *L, int arg) {
  struct bind_field rows[COUNT(option_fields) - COMM_ROWS + 1];
  rows[0] = (struct bind_field){"abort", BIND_BOOL, OPTION(abort)};
  memcpy(rows + 1, option_fields + COMM_ROWS, sizeof rows - sizeof *rows);
  struct nccl_options o = no_options;
  bind_fields(L, arg, rows, &o);
  check_options(L, arg, &o);
  return o;
}

/* false is what the library does by itself, and its environment may say otherwise. */
static int only_true(bool value) {
  return value ? 1 : UNDEFINED;
}

ncclConfig_t nccl_config(const struct nccl_options *o, const struct comm *c) {
  return (ncclConfig_t){
    .size = sizeof(ncclConfig_t),
    .magic = NCCL_CONFIG_MAGIC,
    .version = 22803, /* whose layout this is */
    .blocking = o->blocking,
    .cgaClusterSize = o->cga_cluster_size,
    .minCTAs = o->min_ctas,
    .maxCTAs = o->max_ctas,
    .netName = o->net_name,
    .splitShare = only_true(o->split_share),
    .trafficClass = o->traffic_class,
    .commName = c->name,
    .collnetEnable = only_true(o->collnet),
    .CTAPolicy = o->cta_policy,
    .shrinkShare = only_true(o->shrink_share),
    .nvlsCTAs = o->nvls_ctas,
    .nChannelsPerNetPeer = o->channels_per_net_peer,
    .nvlinkCentricSched = only_true(o->nvlink_centric_sched),
  };
}
