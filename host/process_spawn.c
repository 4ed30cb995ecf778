#include "host/process.h"

#include "host/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child needs: all made by the parent, for between vfork and exec nothing may be
   allocated or locked. Descriptors are above 2, so that dup2 cannot overwrite one. */
struct launch {
  const char *path;
  const struct process_spec *spec;
  int fd[3];  /* to become 0, 1, 2; -1: leave what is there */
  int report; /* write end: closed by a successful exec */
  pid_t parent;
};

enum step { STEP_CWD, STEP_CPUS, STEP_EXEC };

struct failure {
  enum step step;
  int number;
};

_Noreturn static void child_fail(const struct launch *l, enum step step) {
  const struct failure f = {step, errno};
  ssize_t ignored = write(l->report, &f, sizeof f);
  (void)ignored;
  _exit(127);
}

static void child_signals(void) {
  const struct sigaction dfl = {.sa_handler = SIG_DFL};
  for (int i = 1; i < NSIG; i++) sigaction(i, &dfl, NULL); /* KILL and STOP refuse */
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Lua's io.open and foreign libraries do not set close-on-exec. */
static void child_close_others(void) {
  enum { CLOEXEC_FLAG = 4, MOST = 4096 };
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 3u, ~0u, CLOEXEC_FLAG) == 0) return;
#endif
  for (int fd = 3; fd < MOST; fd++) fcntl(fd, F_SETFD, FD_CLOEXEC); /* before Linux 5.11 */
}

/* Only async-signal-safe calls; with vfork this runs in the parent's memory. */
_Noreturn static void child_run(const struct launch *l) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != l->parent) _exit(127); /* it died before the line above */
  for (int i = 0; i < 3; i++) {
    if (l->fd[i] >= 0) dup2(l->fd[i], i);
  }
  if (l->spec->sink[1] == PROCESS_MERGE) dup2(1, 2);
  child_close_others();
  if (l->spec->cwd && chdir(l->spec->cwd)) child_fail(l, STEP_CWD);
  if (l->spec->cpus && sched_setaffinity(0, sizeof *l->spec->cpus, l->spec->cpus)) {
    child_fail(l, STEP_CPUS);
  }
  child_signals();
  execve(l->path, l->spec->argv, l->spec->envp);
  child_fail(l, STEP_EXEC);
}

/* vfork: no page table is copied, however large this process is. Signals are held off, as
   a handler in the child would run in our memory. */
static pid_t start(const struct launch *l) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t pid = vfork();
  if (pid == 0) child_run(l);
  int number = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = number;
  return pid;
}

static bool is_program(const char *path) {
  struct stat s;
  return stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, X_OK) == 0;
}

/* execvp would hand a file without a magic number to a shell, so the search is our own.
   Relative entries of PATH are passed over: the child may have another directory. */
const char *process_find(char *out, const char *name) {
  if (strchr(name, '/')) return name;
  const char *path = getenv("PATH");
  if (!path) path = "/usr/local/bin:/usr/bin:/bin";
  while (*path) {
    const char *end = strchrnul(path, ':');
    int used = snprintf(out, PATH_MAX, "%.*s/%s", (int)(end - path), path, name);
    if (*path == '/' && used < PATH_MAX && is_program(out)) return out;
    path = *end ? end + 1 : end;
  }
  errno = ENOENT;
  return NULL;
}

/* Moves a descriptor above 2: this process may have started without a stdin. */
static int lift(int fd) {
  if (fd < 0 || fd > 2) return fd;
  int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  int number = errno;
  close(fd);
  errno = number;
  return high;
}

static void shut(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static int open_pipe(int *ours, int *theirs, bool is_read, struct err *e) {
  int fd[2];
  if (pipe2(fd, O_CLOEXEC)) return err_errno(e, "pipe");
  *ours = lift(fd[is_read ? 0 : 1]);
  *theirs = lift(fd[is_read ? 1 : 0]);
  if (*ours < 0 || *theirs < 0) return err_errno(e, "pipe");
  return 0;
}

static int open_file(int *theirs, const char *path, int flags, struct err *e) {
  *theirs = lift(open(path, flags | O_CLOEXEC, 0666));
  return *theirs < 0 ? err_errno(e, "cannot open '%s'", path) : 0;
}

static int open_input(struct process *p, struct launch *l, struct err *e) {
  if (!l->spec->input) return open_file(&l->fd[0], "/dev/null", O_RDONLY, e);
  if (open_pipe(&p->in, &l->fd[0], false, e)) return -1;
  fcntl(p->in, F_SETFL, O_NONBLOCK);
  return 0;
}

static int open_output(struct process *p, struct launch *l, int i, struct err *e) {
  int *theirs = &l->fd[i + 1];
  switch (l->spec->sink[i]) {
    case PROCESS_INHERIT:
    case PROCESS_MERGE: return 0;
    case PROCESS_NULL: return open_file(theirs, "/dev/null", O_WRONLY, e);
    case PROCESS_FILE:
      return open_file(theirs, l->spec->file[i], O_WRONLY | O_CREAT | O_TRUNC, e);
    case PROCESS_CAPTURE: break;
  }
  if (open_pipe(&p->out[i], theirs, true, e)) return -1;
  fcntl(p->out[i], F_SETFL, O_NONBLOCK);
  return 0;
}

/* 0 if exec closed the pipe; otherwise the child has said why and is gone. */
static int await_exec(const struct launch *l, int report, pid_t pid, struct err *e) {
  struct failure f;
  ssize_t got;
  do got = read(report, &f, sizeof f);
  while (got < 0 && errno == EINTR);
  if (got != (ssize_t)sizeof f) return 0;
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
  }
  errno = f.number;
  switch (f.step) {
    case STEP_CWD: return err_errno(e, "cannot enter '%s'", l->spec->cwd);
    case STEP_CPUS: return err_errno(e, "cannot pin '%s' to its CPUs", l->spec->argv[0]);
    default: return err_errno(e, "cannot run '%s'", l->spec->argv[0]);
  }
}

static uint64_t seconds_to_ns(double seconds) {
  return (uint64_t)(seconds * 1e9);
}

static void started(struct process *p, const struct process_spec *spec, pid_t pid) {
  p->pid = pid;
  p->owner = getpid();
  p->pidfd = -1;
#ifdef SYS_pidfd_open
  p->pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
#endif
  p->input = spec->input;
  p->input_left = spec->input_bytes;
  if (spec->timeout_s > 0) p->deadline_ns = p->start_ns + seconds_to_ns(spec->timeout_s);
  p->grace_ns = seconds_to_ns(spec->grace_s);
}

void process_keep_zombies(void) {
  struct sigaction was;
  const struct sigaction dfl = {.sa_handler = SIG_DFL};
  if (sigaction(SIGCHLD, NULL, &was) == 0 && was.sa_handler == SIG_IGN) {
    sigaction(SIGCHLD, &dfl, NULL);
  }
}

/* In a sandbox: the program, where its output goes, and what loads code into it. */
static int check_sandbox(const char *path, const struct process_spec *spec, struct err *e) {
  if (!sandbox_is_active()) return 0;
  if (sandbox_check_program(path, e)) return -1;
  for (int i = 0; i < 2; i++) {
    const bool is_file = spec->sink[i] == PROCESS_FILE;
    if (is_file && sandbox_check_path(spec->file[i], true, e)) return -1;
  }
  for (char *const *v = spec->envp; *v; v++) {
    char name[256];
    const size_t length = strcspn(*v, "=");
    if (!(*v)[length]) continue;
    snprintf(name, sizeof name, "%.*s", (int)length, *v);
    if (sandbox_check_variable(name, *v + length + 1, e)) return -1;
  }
  return 0;
}

int process_spawn(struct process *p, const struct process_spec *spec, struct err *e) {
  char path[PATH_MAX];
  struct launch l = {.spec = spec, .fd = {-1, -1, -1}, .report = -1, .parent = getpid()};
  int report = -1;
  *p = (struct process){.pidfd = -1, .in = -1, .out = {-1, -1}, .deadline_ns = UINT64_MAX};
  process_keep_zombies();
  l.path = process_find(path, spec->argv[0]);
  if (!l.path) return err_errno(e, "cannot run '%s'", spec->argv[0]);
  if (check_sandbox(l.path, spec, e)) return -1;
  if (open_input(p, &l, e) || open_output(p, &l, 0, e) || open_output(p, &l, 1, e)) {
    goto done;
  }
  if (open_pipe(&report, &l.report, true, e)) goto done;
  p->start_ns = process_now_ns();
  pid_t pid = start(&l);
  if (pid < 0) {
    err_errno(e, "cannot start '%s'", spec->argv[0]);
    goto done;
  }
  shut(&l.report); /* or the read below would wait for ourselves */
  if (await_exec(&l, report, pid, e)) goto done;
  started(p, spec, pid);
done:
  for (int i = 0; i < 3; i++) shut(&l.fd[i]);
  shut(&l.report);
  shut(&report);
  if (p->pid) return 0;
  process_close(p);
  return -1;
}

int process_cpus(cpu_set_t *set, const int *cpus, size_t count, struct err *e) {
  long present = sysconf(_SC_NPROCESSORS_CONF);
  CPU_ZERO(set);
  for (size_t i = 0; i < count; i++) {
    if (cpus[i] < 0 || cpus[i] >= present || cpus[i] >= CPU_SETSIZE) {
      return err_set(
        e, "EINVAL", "no CPU %d: this machine has %ld, from 0", cpus[i], present);
    }
    CPU_SET((size_t)cpus[i], set);
  }
  return 0;
}
