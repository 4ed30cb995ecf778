#ifndef HOST_CLI_H
#define HOST_CLI_H

#include "host/err.h"

#include <stdbool.h>

enum { CLI_STEPS = 64 };

/* What the command line asks for. Strings point into argv. */
struct cli {
  struct cli_step {
    char kind; /* 'e': text is a chunk; 'l': text is a module, or name=module */
    const char *text;
  } steps[CLI_STEPS];
  int step_count;
  int script; /* index into argv, argc if there is none */
  const char *backend, *nccl_library, *trace;
  bool interactive, version, help, ignore_environment, warnings, traceback, from_stdin;
};

/* Parses the host's own options, which end at the script. -1: a usage error in *e. */
int cli_parse(int argc, char **argv, struct cli *c, struct err *e);

/* The text of --help. */
extern const char cli_help[];

#endif
