#ifndef PLUGINS_TRACE_WRITER_H
#define PLUGINS_TRACE_WRITER_H

/* The thread that puts a trace into its file, and the bounded memory in which rows wait for
   it. Producers only fill buffers; what finds no room is counted and said in the file. */

#include "plugins/trace/store.h"

struct writer;

struct writer_options {
  const char *path;
  struct session session;
  size_t memory_bytes; /* 0: 256 MiB */
  /* What a buffer of the caller's own holds becomes rows; on the writer's thread. */
  void (*decode)(void *context, struct store *store, const uint8_t *data, size_t bytes);
  /* Called about ten times a second on the writer's thread, and before the end; may be
     NULL. */
  void (*tick)(void *context, struct store *store);
  void *context;
};

enum { WRITER_BUFFER_BYTES = 1 << 20 };

/* NULL with the reason in `why`. */
struct writer *writer_start(const struct writer_options *options, char *why, size_t size);

/* Writes all that was given and ends the thread and the file. What producers still give is
   dropped: they may be on their way. The first failure to write, if there was one, is left
   in `why`, which is "" otherwise. */
void writer_stop(struct writer *writer, char *why, size_t size);

/* A stopped writer that a producer may still have is not freed but kept: in a list, each
   with the one before. */
void writer_keep(struct writer *writer, struct writer *older);

/* After writer_stop, and once no producer has it any more. */
void writer_free(struct writer *writer);

/* Returns once all that was given before is in the file. */
void writer_flush(struct writer *writer);

/* One row of a producer, copied; from any thread. */
void writer_put(struct writer *writer, const struct trace_row *row);

/* WRITER_BUFFER_BYTES for the caller to fill, aligned to 8; NULL: the bound is reached. */
uint8_t *writer_take(struct writer *writer);

/* The buffer goes to `decode`, or back if nothing is used. */
void writer_give(struct writer *writer, uint8_t *data, size_t used);

/* Records that were lost elsewhere. `source` is a static string. */
void writer_lost(struct writer *writer, const char *source, uint64_t count);

const struct session *writer_session(const struct writer *writer);

#endif
