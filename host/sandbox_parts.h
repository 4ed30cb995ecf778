#ifndef HOST_SANDBOX_PARTS_H
#define HOST_SANDBOX_PARTS_H

#include "host/err.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum sandbox_use {
  SANDBOX_LIST, /* the names in a folder */
  SANDBOX_READ,
  SANDBOX_DEVICE,
  SANDBOX_WRITE,
  SANDBOX_RUN,
  SANDBOX_LOADER
};

enum { SANDBOX_PATHS = 160 };

/* What may be used, and how. Paths are real: no symbolic link, no dot. */
struct sandbox_policy {
  struct sandbox_path {
    char *path;
    enum sandbox_use use;
  } paths[SANDBOX_PATHS];
  size_t count;
  bool has_gpus, has_programs;
};

/* Landlock: files by path, TCP, and sockets and signals to processes outside. */
int sandbox_restrict_files(const struct sandbox_policy *p, int abi, struct err *e);

/* Gives up capabilities but those for files, locked memory and priorities. */
int sandbox_drop_capabilities(struct err *e);

/* seccomp: which system calls there are. */
int sandbox_restrict_calls(const struct sandbox_policy *p, struct err *e);

#endif
