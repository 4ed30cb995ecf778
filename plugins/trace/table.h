#ifndef PLUGINS_TRACE_TABLE_H
#define PLUGINS_TRACE_TABLE_H

/* One row of a trace's tables (tables.def), on its way into the file. */

#include <stdint.h>

enum trace_table {
#define TABLE(table, name) TRACE_##table,
#define COLUMN(table, column, kind)
#include "plugins/trace/tables.def"
  TRACE_TABLES
};

/* Numbers all tables and columns; CELL_INDEX makes a place within the table of it. */
enum {
#define TABLE(table, name) table##_,
#define COLUMN(table, column, kind) table##_##column,
#include "plugins/trace/tables.def"
  TRACE_ENTRIES
};

enum { TRACE_COLUMNS = 32 }; /* the most a table has */

union trace_cell {
  int64_t i;
  double d;
  const char *s; /* TEXT, or a NAME that is not an id of StringIds yet */
};

struct trace_row {
  enum trace_table table;
  uint32_t set;   /* a bit a cell that has a value */
  uint32_t texts; /* a bit a cell that holds text */
  union trace_cell cell[TRACE_COLUMNS];
};

#define CELL_INDEX(table, column) (table##_##column - table##_ - 1)

#define PUT_CELL(row, index, member, value)                                                \
  ((row)->set |= 1u << (index), (row)->cell[index].member = (value))
#define PUT(row, table, column, value)                                                     \
  PUT_CELL(row, CELL_INDEX(table, column), i, (int64_t)(value))
#define PUT_REAL(row, table, column, value)                                                \
  PUT_CELL(row, CELL_INDEX(table, column), d, value)
#define PUT_TEXT(row, table, column, value)                                                \
  ((row)->texts |= 1u << CELL_INDEX(table, column),                                        \
   PUT_CELL(row, CELL_INDEX(table, column), s, value))

#endif
