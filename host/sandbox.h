#ifndef HOST_SANDBOX_H
#define HOST_SANDBOX_H

#include "host/err.h"

#include <stdbool.h>
#include <stddef.h>

/* What a script from somebody else may do: see docs/reference/sandbox.md. */
struct sandbox_options {
  const char *folder;          /* the only place to write; made if it is not there */
  const char *script;          /* its folder may be read; NULL: none */
  const char *library;         /* NCCL's, named by the user; NULL: none */
  const char *const *programs; /* that may be started: names or paths */
  size_t program_count;
  bool has_gpus; /* the devices' files, sockets and code made at run time are needed */
};

/* Where chapters that are started with these arguments put their results: ROOT/logs. */
int sandbox_default_folder(char **args, char *out, size_t room, struct err *e);

/* Confines this process and all that it will start, for good. Needs a single thread. */
int sandbox_enter(const struct sandbox_options *o, struct err *e);

/* Of this process. */
bool sandbox_is_active(void);

/* The real path of the only place to write; "" outside a sandbox. */
const char *sandbox_folder(void);

/* What the kernel offers: the version of Landlock's interface, 0 if there is none. */
int sandbox_landlock(void);

/* Does the kernel filter system calls? */
bool sandbox_has_seccomp(void);

/* Each is 0 outside a sandbox. The kernel is the guard where it can be; these give the
   reason, and are all there is where it cannot. */
int sandbox_check_path(const char *path, bool to_write, struct err *e);
int sandbox_check_program(const char *path, struct err *e);
int sandbox_check_library(const char *path, struct err *e);

/* May a script set this variable? Not those by which libraries load code or call out. */
int sandbox_check_variable(const char *name, const char *value, struct err *e);

#endif
