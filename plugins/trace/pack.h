#ifndef PLUGINS_TRACE_PACK_H
#define PLUGINS_TRACE_PACK_H

/* Rows as bytes, only the cells that are set: how they wait for the writer. */

#include "plugins/trace/table.h"

#include <stddef.h>

enum { PACK_TEXT_MOST = 16384 }; /* a longer text is cut */

/* How many bytes pack_row needs; a multiple of 8. */
size_t pack_size(const struct trace_row *row);

/* Writes exactly pack_size bytes to `out`, which is aligned for a uint64_t. */
void pack_row(const struct trace_row *row, uint8_t *out);

/* The row at `data`, texts pointing into it; returns its size. */
size_t pack_read(const uint8_t *data, struct trace_row *row);

#endif
