#ifndef PLUGINS_EXPAND_H
#define PLUGINS_EXPAND_H

/* File names that each process makes its own. */

#include <stddef.h>

/* A path's %h becomes the host up to its first dot, %p the process: as NCCL_DEBUG_FILE. -1
   if it is too long. */
int expand_pattern(const char *pattern, char *path, size_t size);

#endif
