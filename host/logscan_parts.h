#ifndef HOST_LOGSCAN_PARTS_H
#define HOST_LOGSCAN_PARTS_H

/* What the files of the log scanner share: strings, records, message prefixes. */

#include "host/logscan.h"

/* Strings kept once each, up to a limit; ids count from 0. */
struct logscan_strings {
  char *bytes;
  size_t used, size;
  uint32_t *offsets, *lengths;
  uint64_t *index; /* open addressing: id + 1 below, half of the hash above */
  int count, room, slots;
};

/* The id of a string, -1 if there is no room for another one. */
int logscan_strings_add(struct logscan_strings *s, const char *text, size_t length);

struct logscan_records {
  struct logscan_record *rows;
  uint64_t *index;
  int count, room, slots;
  int counts[LOGSCAN_RECORD_END];
};

/* Counts one message: the index of its record, or -1 if there are too many of its kind. */
int logscan_records_add(struct logscan_records *r, const struct logscan_key *key,
                        uint64_t line, uint64_t value);

enum logscan_level { LEVEL_INFO = 1, LEVEL_WARN, LEVEL_TRACE, LEVEL_CALL };

/* Where a message stands in its line: [start, ...) HOST:PID:TID [DEV] PLACE NCCL LEVEL. */
struct logscan_prefix {
  size_t start; /* of the host, or of a time stamp before it */
  size_t host, host_length;
  size_t end;   /* after "[DEV]" */
  size_t place; /* FILE:LINE or FUNCTION, LINE, which may be empty */
  size_t place_length;
  size_t message;
  int64_t pid, tid;
  int device;
  enum logscan_level level;
};

enum { LOGSCAN_HOSTS = 1024, LOGSCAN_HOST = 64 };

/* Hosts that messages came from: a host may be glued to what stands before it. */
struct logscan_hosts {
  char names[LOGSCAN_HOSTS][LOGSCAN_HOST];
  uint8_t lengths[LOGSCAN_HOSTS];
  int count, last;
};

/* The first message prefix at or after `from`. */
bool logscan_prefix_find(struct logscan_hosts *hosts, const char *line, size_t length,
                         size_t from, struct logscan_prefix *p);

/* Is this all that a launcher put in front of a line, "[1,0]<stdout>:" and the like? */
bool logscan_is_launcher(const char *text, size_t length);

/* Where the messages of a scanner are counted. */
struct logscan_book {
  struct logscan_strings strings;
  struct logscan_records records;
};

enum logscan_parsed { PARSED_NO, PARSED_YES, PARSED_CUT };

/* Reads one of the voluminous kinds into a key (all but process and device) and the value
   that its record keeps the range of. */
enum logscan_parsed logscan_parse(struct logscan_book *b, const char *text, size_t length,
                                  struct logscan_key *key, uint64_t *value);

/* The shape of a message, its numbers left out. */
uint64_t logscan_shape(const char *text, size_t length);

/* Which topic a message belongs to by its first words; LOGSCAN_OTHER if to none. */
enum logscan_topic logscan_classify(const char *text, size_t length);

#endif
