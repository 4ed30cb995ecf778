#include "host/cli.h"

#include <stddef.h>
#include <string.h>

const char cli_help[] =
  "usage: nclua [options] [script [args]]\n"
  "\n"
  "A script is a file, the name of a bundled chapter (nclua interview) or a command\n"
  "(nclua doctor). With no script and a terminal, a prompt.\n"
  "\n"
  "  -e CODE            run CODE\n"
  "  -i                 a prompt after the script\n"
  "  -l MODULE          require MODULE into a global; -l g=MODULE names the global\n"
  "  -v, --version      print the version\n"
  "  -E                 ignore environment variables (LUA_INIT, LUA_PATH, NCLUA_BACKEND, "
  "...)\n"
  "  -W                 turn Lua's warnings on\n"
  "  -                  read the script from standard input\n"
  "  --                 end of options\n"
  "  --backend NAME     auto, cpu or cuda (default: $NCLUA_BACKEND, else auto)\n"
  "  --nccl-lib PATH    the NCCL library to load (default: $NCLUA_NCCL_LIB, else a "
  "search)\n"
  "  --trace FILE       record kernels, copies, calls and ranges into an SQLite file\n"
  "  --sandbox          for a script from somebody else: no programs, no network, no "
  "files\n"
  "                     written but in its results' folder\n"
  "  --sandbox-dir DIR  that folder (default: ROOT/logs, ROOT as in the script's --root)\n"
  "  --allow-program P  a program that it may start; may be repeated\n"
  "  --traceback        show the stack with an error\n"
  "  -h, --help         this text\n"
  "\n"
  "exit status: 0 success, 1 the script or a check failed, 2 wrong usage\n";

struct flag {
  const char *name;
  size_t offset; /* of a bool in struct cli */
};

static const struct flag flags[] = {
  {"-i", offsetof(struct cli, interactive)},
  {"-v", offsetof(struct cli, version)},
  {"--version", offsetof(struct cli, version)},
  {"-E", offsetof(struct cli, ignore_environment)},
  {"-W", offsetof(struct cli, warnings)},
  {"-h", offsetof(struct cli, help)},
  {"--help", offsetof(struct cli, help)},
  {"--traceback", offsetof(struct cli, traceback)},
  {"--sandbox", offsetof(struct cli, sandbox)},
  {NULL, 0},
};

static const struct flag values[] = {
  {"--backend", offsetof(struct cli, backend)},
  {"--nccl-lib", offsetof(struct cli, nccl_library)},
  {"--trace", offsetof(struct cli, trace)},
  {"--sandbox-dir", offsetof(struct cli, sandbox_folder)},
  {"--allow-program", offsetof(struct cli, program)},
  {NULL, 0},
};

static bool take_flag(struct cli *c, const char *word) {
  for (const struct flag *f = flags; f->name; f++) {
    if (strcmp(f->name, word) != 0) continue;
    *(bool *)((char *)c + f->offset) = true;
    return true;
  }
  return false;
}

/* --allow-program is a value that may come again. */
static int keep_program(struct cli *c, struct err *e) {
  if (!c->program) return 0;
  if (c->program_count == CLI_PROGRAMS) {
    return err_set(e, "usage", "too many --allow-program options");
  }
  c->programs[c->program_count++] = c->program;
  c->program = NULL;
  return 0;
}

/* A sandbox is for a script: a prompt has its user's trust. */
static int check_sandbox(const struct cli *c, int argc, struct err *e) {
  if (!c->sandbox && (c->sandbox_folder || c->program_count)) {
    return err_set(e, "usage", "--sandbox-dir and --allow-program need --sandbox");
  }
  const bool is_idle = c->script == argc && c->step_count == 0 && !c->from_stdin;
  if (c->sandbox && (c->interactive || (is_idle && !c->help && !c->version))) {
    return err_set(e, "usage", "--sandbox needs a script, and has no prompt");
  }
  return 0;
}

/* "--backend cpu" or "--backend=cpu": 1 if it was one (and *i moved), 0 if not. */
static int take_value(struct cli *c, int argc, char **argv, int *i, struct err *e) {
  const char *word = argv[*i];
  for (const struct flag *f = values; f->name; f++) {
    size_t length = strlen(f->name);
    if (strncmp(word, f->name, length) != 0) continue;
    const char **slot = (const char **)((char *)c + f->offset);
    if (word[length] == '=')
      *slot = word + length + 1;
    else if (word[length])
      continue;
    else if (*i + 1 < argc)
      *slot = argv[++*i];
    else
      return err_set(e, "usage", "'%s' needs a value", word);
    return keep_program(c, e) ? -1 : 1;
  }
  return 0;
}

/* "-e CODE" or "-eCODE", and -l likewise. */
static int take_step(struct cli *c, int argc, char **argv, int *i, struct err *e) {
  const char *word = argv[*i];
  if (word[1] != 'e' && word[1] != 'l') return 0;
  const char *text = word + 2;
  if (!*text) {
    if (*i + 1 >= argc) return err_set(e, "usage", "'%s' needs an argument", word);
    text = argv[++*i];
  }
  if (c->step_count == CLI_STEPS) return err_set(e, "usage", "too many -e and -l options");
  c->steps[c->step_count++] = (struct cli_step){.kind = word[1], .text = text};
  return 1;
}

static int take_option(struct cli *c, int argc, char **argv, int *i, struct err *e) {
  if (take_flag(c, argv[*i])) return 0;
  int taken = take_value(c, argc, argv, i, e);
  if (!taken && argv[*i][1] != '-') taken = take_step(c, argc, argv, i, e);
  if (taken) return taken < 0 ? -1 : 0;
  return err_set(e, "usage", "unrecognized option '%s' (try --help)", argv[*i]);
}

int cli_parse(int argc, char **argv, struct cli *c, struct err *e) {
  *c = (struct cli){.script = argc};
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; i++) {
    if (strcmp(argv[i], "--") == 0) {
      i++;
      break;
    }
    if (strcmp(argv[i], "-") == 0) {
      c->from_stdin = true;
      break;
    }
    if (take_option(c, argc, argv, &i, e)) return -1;
  }
  c->script = i;
  return check_sandbox(c, argc, e);
}
