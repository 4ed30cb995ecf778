#ifndef HOST_CLI_H
#define HOST_CLI_H

#include "host/err.h"

#include <stdbool.h>

enum { CLI_STEPS = 64, CLI_PROGRAMS = 16 };

/* What the command line asks for. Strings point into argv. */
struct cli {
  struct cli_step {
    char kind; /* 'e': text is a chunk; 'l': text is a module, or name=module */
    const char *text;
  } steps[CLI_STEPS];
  int step_count;
  int script;                         /* index into argv, argc if there is none */
  const char *programs[CLI_PROGRAMS]; /* --allow-program */
  int program_count;
  const char *backend, *nccl_library, *trace, *sandbox_folder, *program;
  bool interactive, version, help, ignore_environment, warnings, traceback, from_stdin,
    sandbox;
};

/* Parses the host's own options, which end at the script. -1: a usage error in *e. */
int cli_parse(int argc, char **argv, struct cli *c, struct err *e);

/* The text of --help. */
extern const char cli_help[];

#endif
