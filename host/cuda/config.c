#include "host/cuda/config.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_WITH_UNDEFINED = 21700, OUR_LAYOUT = 22800 };

/* The members by the version that brought them (nccl.h of 2.14 to 2.28), in order. A name
   is for logs only, so an older library may go without it. */
static const struct member {
  const char *name;
  size_t offset;
  int since;
} members[] = {
  {"blocking", offsetof(ncclConfig_t, blocking), 21400},
  {"cgaClusterSize", offsetof(ncclConfig_t, cgaClusterSize), 21700},
  {"minCTAs", offsetof(ncclConfig_t, minCTAs), 21700},
  {"maxCTAs", offsetof(ncclConfig_t, maxCTAs), 21700},
  {"netName", offsetof(ncclConfig_t, netName), 21700},
  {"splitShare", offsetof(ncclConfig_t, splitShare), 21800},
  {"trafficClass", offsetof(ncclConfig_t, trafficClass), 22600},
  {"commName", offsetof(ncclConfig_t, commName), 22700},
  {"collnetEnable", offsetof(ncclConfig_t, collnetEnable), 22700},
  {"CTAPolicy", offsetof(ncclConfig_t, CTAPolicy), 22700},
  {"shrinkShare", offsetof(ncclConfig_t, shrinkShare), 22700},
  {"nvlsCTAs", offsetof(ncclConfig_t, nvlsCTAs), 22700},
  {"nChannelsPerNetPeer", offsetof(ncclConfig_t, nChannelsPerNetPeer), 22800},
  {"nvlinkCentricSched", offsetof(ncclConfig_t, nvlinkCentricSched), 22800},
};

static int version = OUR_LAYOUT;

void config_set_version(int code) {
  version = code;
}

static int is_pointer(const struct member *m) {
  return m->offset == offsetof(ncclConfig_t, netName) ||
         m->offset == offsetof(ncclConfig_t, commName);
}

/* Does the member ask for something other than the library's own choice? */
static int is_set(const ncclConfig_t *config, const struct member *m) {
  const char *at = (const char *)config + m->offset;
  if (is_pointer(m)) {
    const char *text;
    memcpy(&text, at, sizeof text);
    return text != NULL && m->offset != offsetof(ncclConfig_t, commName);
  }
  int value;
  memcpy(&value, at, sizeof value);
  if (m->offset == offsetof(ncclConfig_t, blocking) && value == 1) return 0;
  return value != NCCL_CONFIG_UNDEF_INT;
}

int config_adapt(ncclConfig_t *config, char *why, size_t size) {
  size_t end = sizeof *config;
  for (size_t i = sizeof members / sizeof *members; i-- > 0;) {
    const struct member *m = &members[i];
    if (version >= m->since) break;
    end = m->offset;
    if (!is_set(config, m)) continue;
    snprintf(why,
             size,
             "'%s' needs NCCL 2.%d, this is version code %d",
             m->name,
             m->since / 100 % 100,
             version);
    return -1;
  }
  config->size = (end + sizeof(size_t) - 1) / sizeof(size_t) * sizeof(size_t);
  config->version = (unsigned)(version < OUR_LAYOUT ? version : OUR_LAYOUT);
  if (version < FIRST_WITH_UNDEFINED && config->blocking == NCCL_CONFIG_UNDEF_INT) {
    config->blocking = 1; /* 2.14 takes only 0 and 1 */
  }
  return 0;
}
