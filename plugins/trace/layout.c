#include "plugins/trace/abi.h"

const uint32_t abi_driver_launches[] = {
#define DRIVER(name, number) number,
#define RUNTIME(name, number)
#include "plugins/trace/launches.def"
  0};

const uint32_t abi_runtime_launches[] = {
#define DRIVER(name, number)
#define RUNTIME(name, number) number,
#include "plugins/trace/launches.def"
  0};

/* cupti_version.h numbers the versions: 13 is CUDA 11.0, 14 is 11.1, 17 is 11.6, 18 is
   11.8, 26 is 12.8, and from CUDA 13 on it is xxyyzz. cupti_activity_deprecated.h keeps
   every older struct and says which version replaced it; members only ever moved to new
   places at the end. */
struct cupti_layout abi_layout(uint32_t version) {
  struct cupti_layout l = {0};
  if (version >= 13) l.kernel_graph_node = 144;                      /* ...Kernel5 */
  if (version >= 14) l.memcpy_graph_node = l.memset_graph_node = 64; /* ...3, ...2 */
  if (version >= 14) l.peer_graph_node = 72;                         /* ...PtoP2 */
  if (version >= 17) l.kernel_graph = 156;                           /* ...Kernel7 */
  if (version >= 17) l.memcpy_graph = l.memset_graph = 72;           /* ...4, ...3 */
  if (version >= 17) l.peer_graph = 80;                              /* ...PtoP3 */
  if (version >= 18) l.kernel_local_memory = 192;                    /* ...Kernel8 */
  if (version >= 26) l.memcpy_count = 88;                            /* ...Memcpy6 */
  return l;
}
