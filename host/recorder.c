#include "host/recorder.h"

void recorder_enqueue(const struct recorder_op *op) {
  (void)op;
}
void recorder_complete(ncclComm_t comm, uint64_t op_count) {
  (void)comm;
  (void)op_count;
}
void recorder_complete_stream(CUstream stream) {
  (void)stream;
}
void recorder_wait(const char *what) {
  (void)what;
}
