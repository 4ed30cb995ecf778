#ifndef HOST_CPU_HANDLE_H
#define HOST_CPU_HANDLE_H

/* Handles that can be checked: numbers that look like pointers and are never reused, so
   that a closed, foreign or invented one is told from a live one. */

#include <stddef.h>

enum cpu_handle_kind {
  CPU_HANDLE_STREAM = 1,
  CPU_HANDLE_EVENT,
  CPU_HANDLE_GRAPH,
  CPU_HANDLE_EXEC
};

/* NULL if the table is full or memory is short. */
void *cpu_handle_new(enum cpu_handle_kind kind, void *object);

/* The object, or NULL if the handle is not a live one of this kind. */
void *cpu_handle_get(enum cpu_handle_kind kind, const void *handle);

/* The same, and the handle is dead from here on. */
void *cpu_handle_take(enum cpu_handle_kind kind, const void *handle);

#endif
