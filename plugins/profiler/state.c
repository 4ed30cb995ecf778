/* How an event goes on, and how it ends. */
#include "plugins/profiler/abi.h"
#include "plugins/profiler/describe.h"

static void step_bytes(struct event *e, const void *arguments) {
  if (e->abi < 4 || !arguments) return;
  const size_t bytes = ((const union abi_state_v4 *)arguments)->step_bytes;
  if (bytes) PUT(&e->row, PROXY_STEP, bytes, bytes);
}

static void step_state(struct event *e, int state, const void *arguments, int64_t now) {
  switch (state) {
    case ABI_SEND_GPU_WAIT:
    case ABI_RECV_GPU_WAIT: PUT(&e->row, PROXY_STEP, gpuWait, now); break;
    case ABI_SEND_PEER_WAIT: PUT(&e->row, PROXY_STEP, peerWait, now); break;
    case ABI_SEND_WAIT: PUT(&e->row, PROXY_STEP, sendWait, now); break;
    case ABI_RECV_WAIT: PUT(&e->row, PROXY_STEP, recvWait, now); break;
    case ABI_RECV_FLUSH_WAIT: PUT(&e->row, PROXY_STEP, flushWait, now); break;
    default: return;
  }
  step_bytes(e, arguments);
}

/* Up to v3 a state of the operation counts bytes; later only its beginning is told. */
static void op_state(struct event *e, int state, const void *arguments, int64_t now) {
  if (state == ABI_OP_IN_PROGRESS) PUT(&e->row, PROXY_OP, inProgress, now);
  if (state > ABI_OP_LAST || e->abi >= 4 || !arguments) return;
  PUT(&e->row, PROXY_OP, transferred, ((const union abi_state_v1 *)arguments)->op.bytes);
}

static void control_state(struct event *e, int state, const void *arguments) {
  static const char *const names[] = {
    "idle", "active", "sleep", "wakeup", "append", "append end"};
  if (state < ABI_CONTROL_IDLE || state > ABI_CONTROL_APPEND_END) return;
  PUT_TEXT(&e->row, PROXY_CONTROL, state, names[state - ABI_CONTROL_IDLE]);
  if (state != ABI_CONTROL_APPEND_END || !arguments) return;
  PUT(&e->row, PROXY_CONTROL, appended, *(const int *)arguments);
}

static void channel_state(struct event *e, int state, const void *arguments) {
  if (state != ABI_CHANNEL_STOP || e->abi < 4 || !arguments) return;
  PUT(&e->row, CHANNEL, gpuEnd, ((const union abi_state_v4 *)arguments)->timer);
}

void describe_state(struct event *e, int state, const void *arguments, int64_t now) {
  switch (e->type) {
    case ABI_PROXY_OP: op_state(e, state, arguments, now); break;
    case ABI_PROXY_STEP: step_state(e, state, arguments, now); break;
    case ABI_PROXY_CONTROL: control_state(e, state, arguments); break;
    case ABI_KERNEL_CHANNEL: channel_state(e, state, arguments); break;
    case ABI_NET: e->row.cell[CELL_INDEX(NET, updates)].i++; break;
    case ABI_GROUP_API:
      if (state == ABI_GROUP_START_API_STOP) PUT(&e->row, GROUP, startApiEnd, now);
      if (state == ABI_GROUP_END_API_START) PUT(&e->row, GROUP, endApiStart, now);
      break;
    default: break;
  }
}

void describe_end(struct event *e, int64_t now) {
  switch (e->row.table) {
    case TRACE_GROUP: PUT(&e->row, GROUP, end, now); break;
    case TRACE_API: PUT(&e->row, API, end, now); break;
    case TRACE_COLL: PUT(&e->row, COLL, end, now); break;
    case TRACE_P2P: PUT(&e->row, P2P, end, now); break;
    case TRACE_CHANNEL: PUT(&e->row, CHANNEL, end, now); break;
    case TRACE_PROXY_OP: PUT(&e->row, PROXY_OP, end, now); break;
    case TRACE_PROXY_STEP: PUT(&e->row, PROXY_STEP, end, now); break;
    case TRACE_PROXY_CONTROL: PUT(&e->row, PROXY_CONTROL, end, now); break;
    case TRACE_NET: PUT(&e->row, NET, end, now); break;
    case TRACE_LAUNCH: PUT(&e->row, LAUNCH, end, now); break;
    case TRACE_COPY_ENGINE: PUT(&e->row, COPY_ENGINE, end, now); break;
    default: break;
  }
}
