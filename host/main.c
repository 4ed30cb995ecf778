#include "bindings/open.h"
#include "host/backend.h"
#include "host/cli.h"
#include "host/embed.h"
#include "host/repl.h"
#include "host/sandbox.h"
#include "host/script.h"
#include "host/state.h"
#include "host/trace.h"
#include "host/trace_plugin.h"
#include "host/version.h"

#include <lauxlib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

static int usage(const struct err *e) {
  fprintf(stderr, "nclua: %s\n", e->text);
  return EXIT_USAGE;
}

static void print_version(void) {
  printf("nclua %s  %s\n", NCLUA_VERSION, LUA_RELEASE);
}

/* Options win over the environment; -E forgets the environment. */
static int choose_backend(const struct cli *c, struct err *e) {
  const char *backend = c->backend, *library = c->nccl_library;
  if (!backend && !c->ignore_environment) backend = getenv("NCLUA_BACKEND");
  if (!library && !c->ignore_environment) library = getenv("NCLUA_NCCL_LIB");
  return backend_choose(backend && *backend ? backend : "auto", library, e);
}

/* A file of our own, or one among those of a whole tree of processes. */
static int start_trace(const struct cli *c, struct err *e) {
  const char *shared = c->ignore_environment ? NULL : getenv("NCLUA_TRACE_FILE");
  struct trace_options o = {.path = c->trace, .is_shared = !c->trace};
  if (!c->trace) o.path = shared && *shared ? shared : NULL;
  return o.path ? trace_start(&o, e) : 0;
}

/* Before the script is read, and before there are threads. */
static int enter_sandbox(const struct cli *c, int argc, char **argv, struct err *e) {
  char folder[PATH_MAX];
  if (!c->sandbox) return 0;
  if (sandbox_default_folder(argv + c->script, folder, sizeof folder, e)) return -1;
  const struct sandbox_options o = {
    .folder = c->sandbox_folder ? c->sandbox_folder : folder,
    .script = c->script < argc ? argv[c->script] : NULL,
    .library = c->nccl_library,
    .programs = c->programs,
    .program_count = (size_t)c->program_count,
    .has_gpus = strcmp(backend_name(), "cpu") != 0,
  };
  if (sandbox_enter(&o, e)) return -1;
  fprintf(stderr, "nclua: sandbox: writes only below %s\n", sandbox_folder());
  if (!sandbox_landlock() || !sandbox_has_seccomp()) {
    fputs("nclua: sandbox: this kernel is no full guard (nclua doctor)\n", stderr);
  }
  return 0;
}

static int run_init(lua_State *L) {
  const char *init = getenv("LUA_INIT_5_4");
  if (!init) init = getenv("LUA_INIT");
  if (!init) return LUA_OK;
  if (init[0] != '@') return script_string(L, init, "=LUA_INIT");
  char *argv[] = {(char *)init + 1, NULL}; /* script_run does not write to it */
  return script_run(L, argv, 0, false);
}

static int run_steps(lua_State *L, const struct cli *c) {
  int rc = LUA_OK;
  for (int i = 0; i < c->step_count && rc == LUA_OK; i++) {
    const struct cli_step *step = &c->steps[i];
    rc = step->kind == 'e' ? script_string(L, step->text, "=(command line)")
                           : script_library(L, step->text);
  }
  return rc;
}

/* With nothing else to do: a prompt on a terminal, else standard input as a script. */
static int run_input(lua_State *L, const struct cli *c, int argc) {
  bool is_idle = c->script == argc && c->step_count == 0 && !c->version;
  if (c->interactive || (is_idle && isatty(STDIN_FILENO))) {
    if (!c->version) print_version();
    repl_run(L);
    return LUA_OK;
  }
  char *argv[] = {(char *)"-", NULL};
  return is_idle ? script_run(L, argv, 0, true) : LUA_OK;
}

static int run_all(lua_State *L, const struct cli *c, int argc, char **argv) {
  int rc = c->ignore_environment ? LUA_OK : run_init(L);
  if (rc == LUA_OK) rc = run_steps(L, c);
  if (rc == LUA_OK) rc = script_run(L, argv, c->script, c->from_stdin);
  if (rc == LUA_OK) rc = run_input(L, c, argc);
  return rc;
}

/* What the Lua state offers: nclua.confine takes the rest away. */
static int confine(lua_State *L) {
  int rc = state_load_embedded(L, "nclua.confine");
  if (!rc) rc = lua_pcall(L, 0, 0, 0);
  if (rc) script_report(L);
  return rc;
}

static lua_State *new_state(const struct cli *c) {
  lua_State *L = luaL_newstate();
  if (!L) return NULL;
  if (c->ignore_environment) {
    lua_pushboolean(L, 1); /* package.path then ignores LUA_PATH */
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  }
  state_open(L);
  open_modules(L);
  if (c->sandbox && confine(L)) return NULL;
  script_traceback(L, c->traceback);
  if (c->warnings) lua_warning(L, "@on", 0);
  return L;
}

int main(int argc, char **argv) {
  struct cli c;
  struct err e;
  if (cli_parse(argc, argv, &c, &e) || choose_backend(&c, &e)) return usage(&e);
  if (c.help) return fputs(cli_help, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
  if (c.version) print_version();
  const struct embedded *plugin = embed_find("plugin:trace");
  if (plugin) trace_plugin_carried(plugin->begin, plugin->end);
  if (enter_sandbox(&c, argc, argv, &e)) return usage(&e);
  if (start_trace(&c, &e)) return usage(&e);
  lua_State *L = new_state(&c);
  if (!L) {
    fputs("nclua: no Lua state\n", stderr);
    return EXIT_FAILURE;
  }
  int rc = run_all(L, &c, argc, argv);
  lua_close(L); /* finalizers run on every path */
  return rc == LUA_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
