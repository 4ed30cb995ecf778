#ifndef HOST_LOGSCAN_H
#define HOST_LOGSCAN_H

/* NCCL debug logs as a stream of any size in bounded memory. Lines are split, log messages
   are found wherever they stand in a line, and the voluminous kinds are counted here as
   distinct records; what is rare is handed out as events, in order. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  LOGSCAN_LINE = 1 << 16,   /* bytes of a line that are looked at */
  LOGSCAN_THREADS = 1 << 16 /* distinct HOST:PID:TID [DEVICE] */
};

enum logscan_topic {
  LOGSCAN_NONE,  /* no event: more input is needed */
  LOGSCAN_TEXT,  /* what is no log message; messages that ran into it are cut out */
  LOGSCAN_ISSUE, /* a message that is cut or damaged: `why` says how */
  LOGSCAN_OPERATION,
  LOGSCAN_SELECTION,
  LOGSCAN_CONNECTION,
  LOGSCAN_LINK,  /* the neighbours in a ring or tree */
  LOGSCAN_OTHER, /* messages that nobody asked for, by their shape */
  LOGSCAN_RECORD_END,
  LOGSCAN_WARN =
    LOGSCAN_RECORD_END, /* level WARN; from here on the caller reads the text */
  LOGSCAN_CHANNELS,
  LOGSCAN_CONNECTED,
  LOGSCAN_DRIVER,
  LOGSCAN_ENV,
  LOGSCAN_GRAPH,
  LOGSCAN_HOPS, /* a channel of a graph */
  LOGSCAN_INIT,
  LOGSCAN_MATRIX,
  LOGSCAN_NETWORK,
  LOGSCAN_NODE, /* of the topology */
  LOGSCAN_ORDER,
  LOGSCAN_PATHS,
  LOGSCAN_PLUGIN,
  LOGSCAN_SYSTEM,
  LOGSCAN_TABLE,
  LOGSCAN_THRESHOLDS,
  LOGSCAN_TIMINGS,
  LOGSCAN_TREES,
  LOGSCAN_VERSION,
  LOGSCAN_TOPICS
};

/* Index by topic. */
extern const char *const logscan_topics[LOGSCAN_TOPICS];

struct logscan_event {
  enum logscan_topic topic;
  const char *text; /* valid until the next call */
  size_t length;
  const char *place; /* WARN: FILE:LINE in front of the message */
  size_t place_length;
  const char *why; /* static; LOGSCAN_ISSUE */
  uint64_t line;   /* from 1 */
  int thread;      /* index, or -1 */
  int record;      /* with `each`: index of the record that was counted */
  bool is_glued;   /* another message follows on the same line: the text may be cut */
};

struct logscan_thread {
  int64_t pid, tid;
  int device;  /* -1: not said */
  int process; /* string: "HOST:PID" */
  size_t host_length;
};

/* What makes a record distinct. Fields that a kind does not use are 0; no padding, for keys
   are compared as bytes. Strings are indices for logscan_string, -1 is none. */
struct logscan_key {
  int32_t topic, process, name, device;
  union {
    struct {
      uint64_t comm, count;
      int32_t datatype, op, root, ranks, in_place, unused;
    } operation;
    struct {
      uint64_t bytes;
      double time_us; /* -1: not printed */
      int32_t algorithm, protocol, low, high, threads, form;
    } selection;
    struct {
      int64_t from_id, to_id; /* in brackets: device or bus id; -1: not printed */
      int32_t from, to, direction, via, unused[2];
    } connection;
    struct {
      int32_t up, rank, down[3], is_tree, unused[4];
    } link;
    struct {
      uint64_t shape;
      int32_t level, unused[7];
    } other;
  } of;
};

enum { LOGSCAN_PLAIN, LOGSCAN_SYMMETRIC, LOGSCAN_COPY_ENGINE }; /* selection.form */

struct logscan_record {
  struct logscan_key key;
  uint64_t count, first_line, last_line;
  uint64_t low, high; /* opCount of the first and last, range of channels, or a sample */
};

struct logscan_totals {
  uint64_t bytes, lines, messages;
  uint64_t topics[LOGSCAN_TOPICS];   /* messages, by topic */
  uint64_t overflow[LOGSCAN_TOPICS]; /* of these, counted in no record: too many kinds */
  int records, threads;
};

struct logscan;

/* `each`: operations, selections and the like also come as events. NULL: no memory. */
struct logscan *logscan_new(bool each);
void logscan_free(struct logscan *s);

/* Gives input, which must stay where it is until logscan_next has returned LOGSCAN_NONE;
   what is left of earlier input is dropped. */
void logscan_give(struct logscan *s, const char *bytes, size_t length);

/* The input ends here: the last line may lack its newline. */
void logscan_end(struct logscan *s);

/* The next event; its topic is LOGSCAN_NONE when the input is used up. */
enum logscan_topic logscan_next(struct logscan *s, struct logscan_event *e);

const struct logscan_totals *logscan_totals(const struct logscan *s);
const struct logscan_record *logscan_record(const struct logscan *s, int index);
const struct logscan_thread *logscan_thread(const struct logscan *s, int index);
const char *logscan_string(const struct logscan *s, int id, size_t *length);

#endif
