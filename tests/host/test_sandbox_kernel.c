/* What the kernel refuses in a sandbox, whatever the Lua state would let through: each
   attempt is a raw call in a child of its own. Where this kernel has no Landlock or no
   seccomp, what depends on it is skipped and named. */

#include "host/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { LANDLOCK = 1, SECCOMP = 2 };

/* A folder to write in, and beside it a file and a socket that are none of the script's. */
static char top[] = "/tmp/nclua-sandbox-XXXXXX";
static char inside[64], outside[64], fresh[64], link_out[64], plain[64];
static int door = -1;

static int try_open(const char *path, int flags) {
  return open(path, flags | O_CLOEXEC, 0600);
}

static int write_outside(void) {
  return try_open(outside, O_WRONLY);
}
static int create_outside(void) {
  return try_open(fresh, O_WRONLY | O_CREAT);
}
static int truncate_outside(void) {
  return truncate(outside, 0);
}
static int write_by_link(void) {
  return try_open(link_out, O_WRONLY);
}
static int write_by_cwd(void) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "/proc/self/cwd/%s", fresh + 1);
  return chdir("/") ? 0 : try_open(path, O_WRONLY | O_CREAT);
}
static int write_own_memory(void) {
  return try_open("/proc/self/mem", O_RDWR);
}
static int write_a_setting(void) {
  return try_open("/proc/self/oom_score_adj", O_WRONLY);
}
static int read_secret(void) {
  return try_open(outside, O_RDONLY);
}
static int read_parents_environment(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/environ", (int)getppid());
  return try_open(path, O_RDONLY);
}
/* What holds all files, if the machine has one; a terminal's master is like it. */
static int read_device(void) {
  return try_open("/dev/ptmx", O_RDONLY);
}
static int remove_outside(void) {
  return unlink(outside);
}
static int rename_out(void) {
  return rename(plain, fresh);
}
static int rename_in(void) {
  char to[80];
  snprintf(to, sizeof to, "%s/stolen", inside);
  return rename(outside, to);
}
static int hard_link_in(void) {
  char to[80];
  snprintf(to, sizeof to, "%s/hard", inside);
  return link(outside, to);
}
static int symbolic_link(void) {
  char at[80];
  snprintf(at, sizeof at, "%s/soft", inside);
  return symlink(outside, at);
}
static int make_folder_outside(void) {
  return mkdir(fresh, 0700);
}
static int touch_outside(void) {
  return utimensat(AT_FDCWD, outside, NULL, 0);
}
static int change_mode(void) {
  return chmod(outside, 0777);
}
static int execute(void) {
  char *argv[] = {"/bin/true", NULL};
  return execv(argv[0], argv);
}
static int execute_descriptor(void) {
  char *none[] = {NULL};
  int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);
  return (int)syscall(SYS_execveat, fd, "", none, none, AT_EMPTY_PATH);
}
static int internet_socket(void) {
  return socket(AF_INET, SOCK_STREAM, 0);
}
static int packet_socket(void) {
  return socket(AF_PACKET, SOCK_RAW, 0);
}
static int foreign_socket(void) {
  struct sockaddr_un a;
  socklen_t size = sizeof a;
  if (getsockname(door, (struct sockaddr *)&a, &size)) return 0;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return fd < 0 ? 0 : connect(fd, (struct sockaddr *)&a, size);
}
static int foreign_signal(void) {
  return kill(getppid(), 0);
}
static int trace_parent(void) {
  return (int)ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}
static int new_user(void) {
  return unshare(CLONE_NEWUSER);
}
static int set_up_ring(void) {
  return (int)syscall(SYS_io_uring_setup, 1, NULL);
}
static int load_program_into_kernel(void) {
  return (int)syscall(SYS_bpf, 0, NULL, 0);
}
static int map_code(void) {
  int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);
  return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0;
}

static const struct attempt {
  const char *name;
  int (*run)(void); /* -1 with errno set: refused */
  int needs;
} attempts[] = {
  {"write outside", write_outside, LANDLOCK},
  {"create outside", create_outside, LANDLOCK},
  {"truncate outside", truncate_outside, LANDLOCK},
  {"write by a symbolic link in the folder", write_by_link, LANDLOCK},
  {"write by /proc/self/cwd", write_by_cwd, LANDLOCK},
  {"write /proc/self/mem", write_own_memory, LANDLOCK},
  {"write a setting in /proc", write_a_setting, LANDLOCK},
  {"read outside", read_secret, LANDLOCK},
  {"read the parent's environment", read_parents_environment, LANDLOCK},
  {"read a device that is not named", read_device, LANDLOCK},
  {"remove outside", remove_outside, LANDLOCK},
  {"rename out", rename_out, LANDLOCK},
  {"rename in", rename_in, LANDLOCK},
  {"hard link in", hard_link_in, LANDLOCK},
  {"mkdir outside", make_folder_outside, LANDLOCK},
  {"connect to a foreign abstract socket", foreign_socket, LANDLOCK},
  {"signal a foreign process", foreign_signal, LANDLOCK},
  {"symbolic link", symbolic_link, SECCOMP},
  {"touch outside", touch_outside, SECCOMP},
  {"chmod outside", change_mode, SECCOMP},
  {"execve", execute, SECCOMP},
  {"execveat", execute_descriptor, SECCOMP},
  {"internet socket", internet_socket, SECCOMP},
  {"packet socket", packet_socket, SECCOMP},
  {"ptrace", trace_parent, SECCOMP},
  {"user namespace", new_user, SECCOMP},
  {"io_uring", set_up_ring, SECCOMP},
  {"bpf", load_program_into_kernel, SECCOMP},
  {"map code from a file", map_code, SECCOMP},
};

enum { REFUSED = 0, DONE = 10, NO_SANDBOX = 11, ODD_REASON = 12 };

static bool is_refusal(int number) {
  return number == EPERM || number == EACCES || number == EXDEV;
}

static int in_child(int (*run)(void), const char *program) {
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    struct err e;
    const struct sandbox_options o = {
      .folder = inside, .programs = &program, .program_count = program != NULL};
    if (chdir("/usr")) _exit(NO_SANDBOX);
    if (sandbox_enter(&o, &e)) {
      fprintf(stderr, "%s\n", e.text);
      _exit(NO_SANDBOX);
    }
    if (run() >= 0) _exit(DONE);
    if (!is_refusal(errno)) perror("refused with");
    _exit(is_refusal(errno) ? REFUSED : ODD_REASON);
  }
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/* From outside: nothing is changed, nothing is there that was not. */
static void check_untouched(const char *name) {
  struct stat st;
  if (stat(outside, &st) || st.st_size != 6 || (st.st_mode & 0777) != 0600 ||
      st.st_mtime != 1000000) {
    fail_msg("%s: the file outside was changed", name);
  }
  if (lstat(fresh, &st) == 0) fail_msg("%s: made '%s'", name, fresh);
}

static void test_refused(void **state) {
  (void)state;
  const int has =
    (sandbox_landlock() >= 6 ? LANDLOCK : 0) | (sandbox_has_seccomp() ? SECCOMP : 0);
  printf("Landlock %d (6 is needed for all), seccomp %s\n",
         sandbox_landlock(),
         has & SECCOMP ? "yes" : "no");
  for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
    const struct attempt *a = &attempts[i];
    if (!(has & a->needs)) {
      printf("skipped, this kernel cannot refuse it: %s\n", a->name);
      continue;
    }
    const int got = in_child(a->run, NULL);
    if (got != REFUSED) fail_msg("%s: not refused (%d)", a->name, got);
    check_untouched(a->name);
  }
}

static int write_inside(void) {
  char path[80];
  snprintf(path, sizeof path, "%s/new", inside);
  int fd = try_open(path, O_WRONLY | O_CREAT);
  return fd < 0 || write(fd, "x", 1) != 1 || unlink(path) ? -1 : 0;
}
static int read_system(void) {
  return try_open("/proc/cpuinfo", O_RDONLY);
}
static int write_null(void) {
  return try_open("/dev/null", O_WRONLY);
}
static int local_socket(void) {
  return socket(AF_UNIX, SOCK_SEQPACKET, 0);
}

static void test_allowed(void **state) {
  (void)state;
  int (*const runs[])(void) = {write_inside, read_system, write_null, local_socket};
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    assert_int_equal(in_child(runs[i], NULL), DONE);
  }
}

static int execute_other(void) {
  char *argv[] = {"/bin/cat", "/dev/null", NULL};
  return execv(argv[0], argv);
}

/* A named program runs (and ends with its own status, 0), and no other. */
static void test_named_program(void **state) {
  (void)state;
  if (sandbox_landlock() == 0) {
    puts("skipped: without Landlock the kernel does not know programs by name");
    return;
  }
  assert_int_equal(in_child(execute, "true"), 0);
  assert_int_equal(in_child(execute_other, "true"), REFUSED);
}

static int set_up(void **state) {
  (void)state;
  if (!mkdtemp(top)) return -1;
  snprintf(inside, sizeof inside, "%s/run", top);
  snprintf(outside, sizeof outside, "%s/secret", top);
  snprintf(fresh, sizeof fresh, "%s/fresh", top);
  snprintf(link_out, sizeof link_out, "%s/run/link", top);
  snprintf(plain, sizeof plain, "%s/run/plain", top);
  if (mkdir(inside, 0700) || symlink(outside, link_out)) return -1;
  const char *const both[] = {outside, plain};
  for (int i = 0; i < 2; i++) {
    int fd = open(both[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "secret", 6) != 6 || close(fd)) return -1;
  }
  const struct timespec old[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
  if (utimensat(AT_FDCWD, outside, old, 0)) return -1;
  const struct sockaddr_un any = {.sun_family = AF_UNIX}; /* the kernel finds a name */
  door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return bind(door, (const struct sockaddr *)&any, sizeof any.sun_family) ||
         listen(door, 4);
}

static int tear_down(void **state) {
  (void)state;
  close(door);
  return unlink(outside) || unlink(link_out) || unlink(plain) || rmdir(inside) ||
         rmdir(top);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_refused),
    cmocka_unit_test(test_allowed),
    cmocka_unit_test(test_named_program),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
