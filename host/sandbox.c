#include "host/sandbox.h"

#include "host/process.h"
#include "host/sandbox_parts.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One a process, for good: forked ranks have it too. */
static struct {
  bool is_active;
  char folder[PATH_MAX];
  struct sandbox_policy policy;
} box;

/* The home of users and their keys is not among them, nor /etc as a whole. */
static const char *const readable[] = {
  "/usr",
  "/lib",
  "/lib64",
  "/bin",
  "/sbin",
  "/opt",
  "/proc",
  "/sys",
  "/etc/alternatives",
  "/etc/hosts",
  "/etc/ld.so.cache",
  "/etc/libibverbs.d",
  "/etc/localtime",
  "/etc/nccl.conf",
  "/etc/nsswitch.conf",
  NULL,
};

static const char *const plain_devices[] = {
  "/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero", NULL};

static const char *const gpu_devices[] = {
  "/dev/nvidia*", "/dev/infiniband", "/dev/gdrdrv", "/dev/shm", NULL};

/* Variables by which libraries load code or speak to other hosts. */
static const char *const refused_variables[] = {
  "LD_*",
  "GCONV_PATH",
  "NCCL_*PLUGIN*",
  "NCCL_COMM_ID",
  "NCCL_CONF_FILE",
  "NCLUA_*_LIB",
  "NCLUA_PLUGIN_DIR",
  "*INJECTION*",
  NULL,
};

bool sandbox_is_active(void) {
  return box.is_active;
}

const char *sandbox_folder(void) {
  return box.folder;
}

/* What is not there needs no right. */
static int allow(const char *path, enum sandbox_use use, struct err *e) {
  struct sandbox_policy *p = &box.policy;
  char *real = realpath(path, NULL);
  if (!real) return 0;
  if (p->count == SANDBOX_PATHS) {
    free(real);
    return err_set(e, "E2BIG", "sandbox: too many paths");
  }
  p->paths[p->count++] = (struct sandbox_path){real, use};
  return 0;
}

static int allow_all(const char *const *patterns, enum sandbox_use use, struct err *e) {
  int rc = 0;
  for (; *patterns && rc == 0; patterns++) {
    glob_t found;
    if (glob(*patterns, 0, NULL, &found)) continue;
    for (size_t i = 0; i < found.gl_pathc && rc == 0; i++) {
      rc = allow(found.gl_pathv[i], use, e);
    }
    globfree(&found);
  }
  return rc;
}

static int allow_folder_of(const char *file, struct err *e) {
  char folder[PATH_MAX];
  const char *slash = strrchr(file, '/');
  if (!slash) return 0; /* in the working directory, or a name and no file */
  snprintf(folder, sizeof folder, "%.*s/", (int)(slash - file), file);
  return allow(folder, SANDBOX_READ, e);
}

/* The loader of a program is itself executed: its path is in the program. */
static int allow_loader(const char *program, struct err *e) {
  Elf64_Ehdr h;
  Elf64_Phdr ph;
  char loader[PATH_MAX] = "";
  const int fd = open(program, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return err_errno(e, "sandbox: cannot read '%s'", program);
  const bool is_elf = pread(fd, &h, sizeof h, 0) == (ssize_t)sizeof h &&
                      memcmp(h.e_ident, ELFMAG, SELFMAG) == 0 &&
                      h.e_ident[EI_CLASS] == ELFCLASS64 && h.e_phentsize == sizeof ph;
  for (int i = 0; is_elf && i < h.e_phnum; i++) {
    const off_t at = (off_t)(h.e_phoff + (uint64_t)i * sizeof ph);
    if (pread(fd, &ph, sizeof ph, at) != (ssize_t)sizeof ph) break;
    if (ph.p_type != PT_INTERP || ph.p_filesz >= sizeof loader) continue;
    const ssize_t got = pread(fd, loader, ph.p_filesz, (off_t)ph.p_offset);
    loader[got > 0 ? got : 0] = '\0';
  }
  close(fd);
  return *loader ? allow(loader, SANDBOX_LOADER, e) : 0;
}

static int allow_program(const char *name, struct err *e) {
  char room[PATH_MAX];
  const char *path = process_find(room, name);
  if (!path || access(path, X_OK)) {
    return err_errno(e, "--allow-program: no program '%s'", name);
  }
  return allow(path, SANDBOX_RUN, e) || allow_loader(path, e) ? -1 : 0;
}

static int make_folder(const char *path, struct err *e) {
  char part[PATH_MAX];
  const int used = snprintf(part, sizeof part, "%s/", path);
  if (used >= (int)sizeof part) return err_set(e, "ENAMETOOLONG", "'%s' is too long", path);
  for (char *p = part + 1; *p; p++) {
    if (*p != '/') continue;
    *p = '\0';
    if (mkdir(part, 0777) && errno != EEXIST) {
      return err_errno(e, "sandbox: cannot make '%s'", part);
    }
    *p = '/';
  }
  if (realpath(path, box.folder)) return 0;
  return err_errno(e, "sandbox: '%s'", path);
}

int sandbox_default_folder(char **args, char *out, size_t room, struct err *e) {
  static const char option[] = "--root";
  const size_t length = strlen(option);
  const char *root = ".";
  for (; *args; args++) {
    if (strncmp(*args, option, length) != 0) continue;
    if ((*args)[length] == '=') root = *args + length + 1;
    if (!(*args)[length] && args[1]) root = args[1];
  }
  const int used = snprintf(out, room, "%s/logs", root);
  if (used < (int)room) return 0;
  return err_set(e, "ENAMETOOLONG", "'%s' is too long", root);
}

static int make_policy(const struct sandbox_options *o, struct err *e) {
  box.policy.has_gpus = o->has_gpus;
  box.policy.has_programs = o->program_count > 0;
  for (size_t i = 0; i < o->program_count; i++) {
    if (allow_program(o->programs[i], e)) return -1;
  }
  if (make_folder(o->folder, e) || allow(box.folder, SANDBOX_WRITE, e) ||
      allow(".", SANDBOX_READ, e) || (o->script && allow_folder_of(o->script, e)) ||
      (o->library && allow_folder_of(o->library, e))) {
    return -1;
  }
  if (allow_all(readable, SANDBOX_READ, e)) return -1;
  if (allow("/dev", SANDBOX_LIST, e)) return -1; /* its disks hold all files */
  if (allow_all(plain_devices, SANDBOX_DEVICE, e)) return -1;
  return o->has_gpus ? allow_all(gpu_devices, SANDBOX_DEVICE, e) : 0;
}

/* Landlock confines the calling thread and what it makes, not threads there are. */
static int check_alone(struct err *e) {
  DIR *tasks = opendir("/proc/self/task");
  int count = 0;
  for (const struct dirent *d; tasks && (d = readdir(tasks));) count += *d->d_name != '.';
  if (tasks) closedir(tasks);
  return count < 2 ? 0 : err_set(e, "EBUSY", "sandbox: %d threads run already", count);
}

int sandbox_enter(const struct sandbox_options *o, struct err *e) {
  if (check_alone(e) || make_policy(o, e)) return -1;
  /* What needs a temporary file, SQLite for one, makes it where that is allowed. */
  if (setenv("TMPDIR", box.folder, 1)) return err_errno(e, "setenv");
  if (sandbox_drop_capabilities(e)) return -1;
  const int abi = sandbox_landlock();
  if (abi && sandbox_restrict_files(&box.policy, abi, e)) return -1;
  if (sandbox_has_seccomp() && sandbox_restrict_calls(&box.policy, e)) return -1;
  box.is_active = true;
  return 0;
}

static bool is_below(const char *path, const char *top) {
  const size_t length = strlen(top);
  if (strncmp(path, top, length) != 0) return false;
  return !path[length] || path[length] == '/' || top[length - 1] == '/';
}

static bool allows(const char *real, bool to_write) {
  for (size_t i = 0; i < box.policy.count; i++) {
    const struct sandbox_path *p = &box.policy.paths[i];
    const bool is_whole = p->use == SANDBOX_WRITE || (!to_write && p->use == SANDBOX_READ);
    const bool is_one = p->use == SANDBOX_DEVICE || !to_write;
    if (is_whole && is_below(real, p->path)) return true;
    if (is_one && strcmp(real, p->path) == 0) return true;
  }
  return false;
}

/* Of a file that is not there yet: that of its folder, and the name. A symbolic link to
   nothing counts as its target, which is nowhere. */
static bool resolve(const char *path, char out[PATH_MAX]) {
  char folder[PATH_MAX], real[PATH_MAX];
  struct stat st;
  if (realpath(path, out)) return true;
  if (errno != ENOENT || lstat(path, &st) == 0) return false;
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  if (snprintf(folder, sizeof folder, "%.*s/.", (int)(name - path), path) >= PATH_MAX) {
    return false;
  }
  if (!realpath(slash ? folder : ".", real)) return false;
  if (strcmp(name, "..") == 0) return false;
  return snprintf(out, PATH_MAX, "%s/%s", real, name) < PATH_MAX;
}

int sandbox_check_path(const char *path, bool to_write, struct err *e) {
  char real[PATH_MAX];
  if (!box.is_active) return 0;
  const bool is_known = resolve(path, real);
  if (is_known && allows(real, to_write)) return 0;
  if (!is_known && !to_write) return 0; /* opening it says better what is wrong */
  if (to_write) {
    return err_set(e,
                   "EACCES",
                   "sandbox: '%.200s' may not be written, only what is below '%.200s'",
                   path,
                   box.folder);
  }
  return err_set(e, "EACCES", "sandbox: '%.200s' may not be read", path);
}

int sandbox_check_program(const char *path, struct err *e) {
  char real[PATH_MAX];
  if (!box.is_active) return 0;
  for (size_t i = 0; i < box.policy.count && realpath(path, real); i++) {
    const struct sandbox_path *p = &box.policy.paths[i];
    if (p->use == SANDBOX_RUN && strcmp(real, p->path) == 0) return 0;
  }
  return err_set(e,
                 "EACCES",
                 "sandbox: '%.200s' may not be started, only what --allow-program names",
                 path);
}

int sandbox_check_library(const char *path, struct err *e) {
  if (!box.is_active) return 0;
  return err_set(e, "EACCES", "sandbox: no code may be loaded: '%.200s'", path);
}

/* One "*" or two. */
static bool matches(const char *name, const char *pattern) {
  for (; *pattern != '*'; pattern++, name++) {
    if (*pattern != *name) return false;
    if (!*name) return true;
  }
  for (;; name++) {
    if (!pattern[1] || matches(name, pattern + 1)) return true;
    if (!*name) return false;
  }
}

int sandbox_check_variable(const char *name, const char *value, struct err *e) {
  if (!box.is_active || !value || strcmp(value, "none") == 0) return 0;
  const char *users = getenv(name);
  if (users && strcmp(users, value) == 0) return 0; /* the user's own */
  for (const char *const *p = refused_variables; *p; p++) {
    if (matches(name, *p)) {
      return err_set(e, "EACCES", "sandbox: '%.100s' may not be set", name);
    }
  }
  return 0;
}
