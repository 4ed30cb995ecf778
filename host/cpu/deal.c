#include "host/cpu/deal.h"
#include "host/dtype.h"

#define LEAST_TRAFFIC ((size_t)16 << 10) /* that a channel is worth */
#define GRAIN 16                         /* bytes; no share is cut finer */

/* Bytes that move for each byte of the operation; LL's are dearer. */
static size_t weigh(const struct cpu_choice *c, const struct cpu_op *op, int ranks) {
  size_t traffic = 1;
  if (op->function == CPU_ALL_REDUCE) traffic = 2;
  if (op->function == CPU_ALL_GATHER || op->function == CPU_REDUCE_SCATTER) {
    traffic = (size_t)ranks;
  }
  return c->protocol == CPU_LL ? 4 * traffic : traffic;
}

static size_t divide_up(size_t a, size_t b) {
  return a / b + (a % b != 0);
}

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* In cells: the first channel's, each middle one's and the last one's. */
struct shares {
  size_t low, middle, high, middles;
};

static struct shares split(size_t cells, size_t each, size_t channels) {
  struct shares s = {.low = channels == 1 ? cells : each, .middle = each};
  const size_t rest = cells - s.low;
  s.middles = rest / each;
  s.high = rest % each;
  if (1 + s.middles + (s.high != 0) > channels) {
    s.middles = channels - 2;
    s.middle = rest / (s.middles + 1);
    s.high = s.middle + rest % (s.middles + 1);
  }
  if (s.high == 0 && s.middles > 0) {
    s.high = s.middle;
    s.middles--;
  }
  return s;
}

void cpu_deal(struct cpu_choice *c, const struct cpu_op *op, int ranks, int most,
              int channels) {
  const size_t element = dtype_size(op->type), bytes = op->count * element;
  const size_t weight = weigh(c, op, ranks);
  const size_t cell = divide_up(divide_up(LEAST_TRAFFIC, weight), GRAIN) * GRAIN;
  const size_t cells = divide_up(bytes, cell),
               allowed = least((size_t)most, (size_t)channels);
  size_t traffic = bytes * weight / allowed;
  if (traffic < LEAST_TRAFFIC) traffic = LEAST_TRAFFIC;
  const size_t each = least(cells, divide_up(traffic, cell * weight));
  const struct shares s = split(cells, each, (size_t)channels);
  const size_t elements = cell / element, surplus = cells * elements - op->count;
  c->first_channel = 0;
  c->channels = (int)(1 + s.middles + (s.high != 0));
  c->low = s.low * elements - (s.high ? 0 : surplus);
  c->middle = s.middles ? s.middle * elements : 0;
  c->high = s.high ? s.high * elements - surplus : 0;
}
