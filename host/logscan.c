#include "host/logscan.h"

#include "host/logscan_parts.h"

#include <stdlib.h>
#include <string.h>

struct threads {
  struct logscan_thread *rows;
  int *texts;     /* string of "HOST:PID:TID [DEV]" of each row */
  int32_t *index; /* by string id: row + 1 */
  int count, room, index_room;
};

struct logscan {
  struct logscan_book book;
  struct logscan_hosts hosts;
  struct threads threads;
  struct logscan_totals totals;
  bool each, has_ended;
  const char *input; /* what was given and is not yet read */
  size_t input_length;
  char *carry; /* the begun line of earlier input */
  size_t carried;
  bool is_overlong; /* the rest of the carried line is dropped */
  const char *line;
  size_t length;
  bool has_prefix, has_text, has_told; /* of the current line: what is left to hand out */
  struct logscan_prefix prefix;
};

struct logscan *logscan_new(bool each) {
  struct logscan *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->each = each;
  s->carry = malloc(LOGSCAN_LINE);
  if (s->carry) return s;
  free(s);
  return NULL;
}

void logscan_free(struct logscan *s) {
  if (!s) return;
  free(s->book.strings.bytes);
  free(s->book.strings.offsets);
  free(s->book.strings.lengths);
  free(s->book.strings.index);
  free(s->book.records.rows);
  free(s->book.records.index);
  free(s->threads.rows);
  free(s->threads.texts);
  free(s->threads.index);
  free(s->carry);
  free(s);
}

void logscan_give(struct logscan *s, const char *bytes, size_t length) {
  s->input = bytes;
  s->input_length = length;
  s->has_prefix = s->has_text = false;
  s->totals.bytes += length;
}

void logscan_end(struct logscan *s) {
  logscan_give(s, NULL, 0);
  s->has_ended = true;
}

static int threads_grow(struct threads *t, int text) {
  if (t->count == t->room) {
    int room = t->room ? t->room * 2 : 64;
    void *rows = realloc(t->rows, (size_t)room * sizeof *t->rows);
    if (rows) t->rows = rows;
    if (!rows) return -1;
    t->room = room;
  }
  if (text < t->index_room) return 0;
  int room = t->index_room ? t->index_room : 64;
  while (room <= text) room *= 2;
  int32_t *index = realloc(t->index, (size_t)room * sizeof *index);
  if (!index) return -1;
  memset(index + t->index_room, 0, (size_t)(room - t->index_room) * sizeof *index);
  t->index = index;
  t->index_room = room;
  return 0;
}

/* The thread that a prefix names; -1 if there are too many to tell apart. Its whole text is
   the key: a thread that speaks of two devices counts as two. */
static int thread_of(struct logscan *s, const struct logscan_prefix *p) {
  struct logscan_strings *strings = &s->book.strings;
  const char *text = s->line + p->host;
  int id = logscan_strings_add(strings, text, p->end - p->host);
  if (id < 0) return -1;
  struct threads *t = &s->threads;
  if (id < t->index_room && t->index[id]) return t->index[id] - 1;
  if (t->count == LOGSCAN_THREADS || threads_grow(t, id)) return -1;
  size_t process = p->host_length + 1; /* and the process number */
  while (text[process] != ':') process++;
  t->rows[t->count] = (struct logscan_thread){
    .host_length = p->host_length,
    .pid = p->pid,
    .tid = p->tid,
    .device = p->device,
    .process = logscan_strings_add(strings, text, process),
  };
  t->index[id] = ++t->count;
  s->totals.threads = t->count;
  return t->count - 1;
}

/* Takes one line from the input; false if it does not hold a whole one. A line that lies
   within one piece of input is read where it is; only one that spans two is copied. */
static bool take_line(struct logscan *s) {
  const char *newline = s->input_length ? memchr(s->input, '\n', s->input_length) : NULL;
  size_t own = newline ? (size_t)(newline - s->input) : s->input_length;
  bool is_last = !newline && s->has_ended && s->carried + own > 0;
  s->line = s->input;
  s->length = own;
  if (s->carried || !newline) {
    size_t room = LOGSCAN_LINE - s->carried, part = own < room ? own : room;
    if (part) memcpy(s->carry + s->carried, s->input, part);
    s->carried += part;
    s->is_overlong |= own > room;
    s->line = s->carry;
    s->length = s->carried;
  }
  if (s->input_length) {
    s->input += own + (newline ? 1 : 0);
    s->input_length -= own + (newline ? 1 : 0);
  }
  if (!newline && !is_last) return false;
  s->carried = 0;
  if (s->length > LOGSCAN_LINE) {
    s->length = LOGSCAN_LINE;
    s->is_overlong = true;
  }
  if (s->length && s->line[s->length - 1] == '\r') s->length--;
  s->totals.lines++;
  return true;
}

static bool is_blank(const char *text, size_t length) {
  while (length && (text[length - 1] == ' ' || text[length - 1] == '\t')) length--;
  return length == 0;
}

/* What a line holds, handed out one event a call: the text before the first message, then
   message by message. A launcher's prefix alone is no text. */
static void start_line(struct logscan *s) {
  s->has_prefix = logscan_prefix_find(&s->hosts, s->line, s->length, 0, &s->prefix);
  size_t rest = s->has_prefix ? s->prefix.start : s->length;
  s->has_text = !is_blank(s->line, rest);
  if (s->has_prefix && s->has_text) s->has_text = !logscan_is_launcher(s->line, rest);
}

/* Counts a message of a voluminous kind. True if the caller shall hear of it. */
static bool count(struct logscan *s, struct logscan_key *key, uint64_t value,
                  struct logscan_event *e) {
  int topic = key->topic;
  s->totals.topics[topic]++;
  e->record = logscan_records_add(&s->book.records, key, e->line, value);
  s->totals.records = s->book.records.count;
  if (e->record < 0) s->totals.overflow[topic]++;
  e->topic = (enum logscan_topic)topic;
  return s->each;
}

/* Told to the caller: what was lost, as far as the text shows it. */
static bool tell_issue(struct logscan *s, struct logscan_event *e, const char *why) {
  s->totals.topics[LOGSCAN_ISSUE]++;
  e->topic = LOGSCAN_ISSUE;
  e->why = why;
  return true;
}

/* Hundreds of kinds of messages carry nothing for us: each shape once, with a sample. */
static bool count_other(struct logscan *s, struct logscan_event *e, int level) {
  struct logscan_key key = {
    .topic = LOGSCAN_OTHER, .process = -1, .name = -1, .device = -1};
  key.of.other.shape = logscan_shape(e->text, e->length);
  key.of.other.level = level;
  int before = s->book.records.count;
  count(s, &key, 0, e);
  if (s->book.records.count > before) {
    size_t length = e->length < 160 ? e->length : 160;
    int id = logscan_strings_add(&s->book.strings, e->text, length);
    struct logscan_record *row = &s->book.records.rows[e->record];
    row->low = row->high = (uint64_t)(id < 0 ? 0 : id + 1);
  }
  return false;
}

static int device_of(const struct logscan *s, int thread) {
  return thread < 0 ? -1 : s->threads.rows[thread].device;
}

/* Parses and counts one of the voluminous kinds. 1: the caller shall hear of it, 0: not;
   -1: it is none of them. */
static int count_message(struct logscan *s, struct logscan_event *e) {
  struct logscan_key key;
  uint64_t value;
  enum logscan_parsed is = logscan_parse(&s->book, e->text, e->length, &key, &value);
  if (is == PARSED_NO) return -1;
  if (is == PARSED_CUT) return tell_issue(s, e, "a message that was cut");
  key.process = e->thread < 0 ? -1 : s->threads.rows[e->thread].process;
  key.device = key.topic == LOGSCAN_SELECTION ? device_of(s, e->thread) : -1;
  bool is_told = count(s, &key, value, e);
  if (key.topic != LOGSCAN_CONNECTION || !e->is_glued) return is_told;
  /* its last word may be half a word */
  return tell_issue(s, e, "a connection that another message ran into");
}

/* The message of the current prefix; moves on to the next one of the line. */
static bool take_message(struct logscan *s, struct logscan_event *e) {
  const struct logscan_prefix p = s->prefix;
  e->thread = thread_of(s, &p);
  s->has_prefix = logscan_prefix_find(&s->hosts, s->line, s->length, p.message, &s->prefix);
  e->is_glued = s->has_prefix;
  e->text = s->line + p.message;
  e->length = (s->has_prefix ? s->prefix.start : s->length) - p.message;
  s->totals.messages++;
  if (e->is_glued && is_blank(e->text, e->length)) {
    return tell_issue(s, e, "a message that was cut before its first word");
  }
  if (p.level == LEVEL_WARN) {
    e->topic = LOGSCAN_WARN;
    e->place = s->line + p.place;
    e->place_length = p.place_length;
  } else {
    int told = count_message(s, e);
    if (told >= 0) return told == 1;
    e->topic = p.level == LEVEL_INFO ? logscan_classify(e->text, e->length) : LOGSCAN_OTHER;
  }
  if (e->topic == LOGSCAN_OTHER) return count_other(s, e, (int)p.level);
  s->totals.topics[e->topic]++;
  return true;
}

/* What is no message, unless it is a selection that someone copied without its prefix. */
static bool take_text(struct logscan *s, struct logscan_event *e) {
  s->has_text = false;
  e->text = s->line;
  e->length = s->has_prefix ? s->prefix.start : s->length;
  e->is_glued = s->has_prefix;
  size_t indent = 0;
  while (indent < e->length && e->text[indent] == ' ') indent++;
  struct logscan_key key;
  uint64_t value;
  enum logscan_parsed is =
    logscan_parse(&s->book, e->text + indent, e->length - indent, &key, &value);
  if (is == PARSED_YES && key.topic == LOGSCAN_SELECTION) {
    key.process = key.device = -1;
    return count(s, &key, value, e);
  }
  e->topic = LOGSCAN_TEXT;
  s->totals.topics[LOGSCAN_TEXT]++;
  return true;
}

static bool take_overlong(struct logscan *s, struct logscan_event *e) {
  s->is_overlong = false;
  e->text = s->line;
  e->length = s->length < 80 ? s->length : 80;
  return tell_issue(s, e, "a line of more than 64 KiB, cut there");
}

enum logscan_topic logscan_next(struct logscan *s, struct logscan_event *e) {
  for (;;) {
    *e = (struct logscan_event){.thread = -1, .record = -1, .line = s->totals.lines};
    if (s->has_text) {
      if (take_text(s, e)) return e->topic;
    } else if (s->has_prefix) {
      if (take_message(s, e)) return e->topic;
    } else {
      if (!take_line(s)) return LOGSCAN_NONE;
      e->line = s->totals.lines;
      start_line(s);
      if (s->is_overlong && take_overlong(s, e)) return e->topic;
    }
  }
}

const struct logscan_totals *logscan_totals(const struct logscan *s) {
  return &s->totals;
}

const struct logscan_record *logscan_record(const struct logscan *s, int index) {
  return &s->book.records.rows[index];
}

const struct logscan_thread *logscan_thread(const struct logscan *s, int index) {
  return &s->threads.rows[index];
}

const char *logscan_string(const struct logscan *s, int id, size_t *length) {
  *length = s->book.strings.lengths[id];
  return s->book.strings.bytes + s->book.strings.offsets[id];
}
