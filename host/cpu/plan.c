#include "host/cpu/plan.h"
#include "host/dtype.h"

#define SLICE_MIN ((size_t)4 << 10)
#define SLICES_A_CHUNK                                                                     \
  4                   /* at most: half of CPU_STEPS, so that two chunks are on the way     \
                       */
#define TREE_CHUNKS 4 /* so that sums go up while results come down */

static size_t clamp(size_t value, size_t least, size_t most) {
  if (value < least) value = least;
  return value < most ? value : most;
}

/* Bytes of a message that one slot holds. */
static size_t slot_room(const struct ncclComm *comm, int number) {
  const struct cpu_protocol *protocol = cpu_protocols[number];
  size_t wire = comm->segment->buffers[CPU_LINK_COLLECTIVE].slot_bytes[number];
  return wire / protocol->line_wire * protocol->line_data;
}

/* A slice is what the next rank can start on: two to a rank's share let ranks work at the
   same time, as NCCL's two to a chunk do. Where ranks share cores they cannot, and every
   slice less is a change of ranks less. */
static size_t simple_ring_slice(const struct ncclComm *comm, const struct cpu_op *op,
                                size_t bytes) {
  bool by_block = op->function == CPU_ALL_GATHER || op->function == CPU_REDUCE_SCATTER;
  bool crowded = comm->model.ranks > comm->model.cores;
  size_t share = by_block ? bytes : bytes / (size_t)comm->nranks;
  return share / (crowded ? 1 : 2) / SLICE_MIN * SLICE_MIN;
}

struct cpu_plan cpu_plan_make(const struct ncclComm *comm, const struct cpu_op *op,
                              const struct cpu_choice *choice, struct cpu_part part) {
  size_t element = dtype_size(op->type), bytes = part.count * element;
  size_t room = slot_room(comm, choice->protocol), slices = 1, slice = room;
  if (choice->algorithm == CPU_RING && choice->protocol == CPU_SIMPLE) {
    slice = simple_ring_slice(comm, op, bytes);
    slices = SLICES_A_CHUNK;
  } else if (choice->algorithm == CPU_TREE) {
    slice = bytes / TREE_CHUNKS / SLICE_MIN * SLICE_MIN;
  } else if (choice->algorithm == CPU_PAT) {
    room = clamp(room, 0, CPU_SCRATCH / 8);
    slice = bytes * ((size_t)comm->nranks / 2); /* all blocks that travel together */
  }
  size_t count = clamp(slice, SLICE_MIN, room) / element;
  return (struct cpu_plan){.slice_count = count, .chunk_count = count * slices};
}
