/* The seccomp part of the sandbox. What Landlock does not know: times, owners and modes of
   files, other processes, new namespaces, kinds of sockets, code that a script brings. */

#include "host/sandbox.h"
#include "host/sandbox_parts.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

/* Names that this architecture or library does not know are passed over. */
static const char *const refused[] = {
  /* other processes */
  "ptrace",
  "process_vm_readv",
  "process_vm_writev",
  "process_madvise",
  "kcmp",
  "pidfd_getfd",
  /* the kernel and its parts */
  "acct",
  "add_key",
  "adjtimex",
  "bpf",
  "clock_adjtime",
  "clock_settime",
  "delete_module",
  "fanotify_init",
  "finit_module",
  "init_module",
  "io_uring_enter",
  "io_uring_register",
  "io_uring_setup",
  "ioperm",
  "iopl",
  "kexec_file_load",
  "kexec_load",
  "keyctl",
  "modify_ldt",
  "perf_event_open",
  "personality",
  "quotactl",
  "quotactl_fd",
  "reboot",
  "request_key",
  "setdomainname",
  "sethostname",
  "settimeofday",
  "swapoff",
  "swapon",
  "syslog",
  "userfaultfd",
  "vhangup",
  /* mounts and namespaces */
  "chroot",
  "fsconfig",
  "fsmount",
  "fsopen",
  "fspick",
  "mount",
  "mount_setattr",
  "move_mount",
  "name_to_handle_at",
  "open_by_handle_at",
  "open_tree",
  "pivot_root",
  "setns",
  "umount2",
  "unshare",
  /* of files, what Landlock leaves alone */
  "chmod",
  "chown",
  "fchmod",
  "fchmodat",
  "fchmodat2",
  "fchown",
  "fchownat",
  "fremovexattr",
  "fsetxattr",
  "futimesat",
  "lchown",
  "lremovexattr",
  "lsetxattr",
  "mknod",
  "mknodat",
  "removexattr",
  "setxattr",
  "symlink",
  "symlinkat",
  "utime",
  "utimensat",
  "utimes",
};

static const uint64_t namespaces[] = {CLONE_NEWNS,
                                      CLONE_NEWCGROUP,
                                      CLONE_NEWUTS,
                                      CLONE_NEWIPC,
                                      CLONE_NEWUSER,
                                      CLONE_NEWPID,
                                      CLONE_NEWNET};

/* NCCL asks netlink for interfaces and speaks TCP, to this host too. */
static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

static int refuse(scmp_filter_ctx c, const char *name) {
  const int call = seccomp_syscall_resolve_name(name);
  if (call == __NR_SCMP_ERROR) return 0;
  return seccomp_rule_add(c, SCMP_ACT_ERRNO(EPERM), call, 0);
}

/* Where argument `arg` has all these bits. */
static int refuse_bits(scmp_filter_ctx c, int call, unsigned arg, uint64_t bits) {
  const struct scmp_arg_cmp has = SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, bits, bits);
  return seccomp_rule_add_array(c, SCMP_ACT_ERRNO(EACCES), call, 1, &has);
}

static int refuse_value(scmp_filter_ctx c, int call, unsigned arg, uint64_t value) {
  const struct scmp_arg_cmp is =
    SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, UINT32_MAX, value); /* the kernel reads an int */
  return seccomp_rule_add_array(c, SCMP_ACT_ERRNO(EPERM), call, 1, &is);
}

static int refuse_namespaces(scmp_filter_ctx c) {
  int rc = 0;
  for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces && !rc; i++) {
    rc = refuse_bits(c, SCMP_SYS(clone), 0, namespaces[i]);
  }
  /* Its flags are in memory, where no filter looks: libc then uses clone. */
  return rc ? rc : seccomp_rule_add(c, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

static bool is_needed(int family, bool has_gpus) {
  for (size_t i = 0; has_gpus && i < sizeof families / sizeof *families; i++) {
    if (families[i] == family) return true;
  }
  return family == AF_UNIX;
}

static int refuse_sockets(scmp_filter_ctx c, bool has_gpus) {
  int rc = 0, last = AF_NETLINK;
  for (int family = 0; family <= last && !rc; family++) {
    if (!is_needed(family, has_gpus)) {
      rc = refuse_value(c, SCMP_SYS(socket), 0, (uint64_t)family);
    }
  }
  const struct scmp_arg_cmp higher = SCMP_CMP64(0, SCMP_CMP_GT, (uint64_t)last);
  if (rc) return rc;
  return seccomp_rule_add_array(c, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1, &higher);
}

/* Code from a file. Devices need it: their libraries are opened late. So do programs. */
static int refuse_code(scmp_filter_ctx c) {
  int rc = refuse_bits(c, SCMP_SYS(mmap), 2, PROT_EXEC);
  if (!rc) rc = refuse_bits(c, SCMP_SYS(mprotect), 2, PROT_EXEC);
  if (!rc) rc = refuse_bits(c, SCMP_SYS(pkey_mprotect), 2, PROT_EXEC);
  return rc;
}

static int fill(scmp_filter_ctx c, const struct sandbox_policy *p) {
  int rc = 0;
  for (size_t i = 0; i < sizeof refused / sizeof *refused && !rc; i++) {
    rc = refuse(c, refused[i]);
  }
  if (!rc) rc = refuse_namespaces(c);
  if (!rc) rc = refuse_sockets(c, p->has_gpus);
  if (!rc) rc = refuse_value(c, SCMP_SYS(ioctl), 1, TIOCSTI); /* types for the user */
  if (!rc) rc = refuse_value(c, SCMP_SYS(ioctl), 1, TIOCLINUX);
  if (!rc && !p->has_programs) rc = refuse(c, "execve");
  if (!rc && !p->has_programs) rc = refuse(c, "execveat");
  if (!rc && !p->has_programs && !p->has_gpus) rc = refuse_code(c);
  return rc;
}

/* For root: some capabilities lead around Landlock, CAP_PERFMON to any process's memory. */
int sandbox_drop_capabilities(struct err *e) {
  enum { WORDS = _LINUX_CAPABILITY_U32S_3 };
  const uint32_t kept = 1u << CAP_DAC_OVERRIDE | 1u << CAP_IPC_LOCK | 1u << CAP_SYS_NICE;
  struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct d[WORDS];
  if (syscall(SYS_capget, &h, d)) return err_errno(e, "capget");
  for (int i = 0; i < WORDS; i++) {
    const uint32_t mask = i == 0 ? kept : 0;
    d[i].effective &= mask;
    d[i].permitted &= mask;
    d[i].inheritable &= mask;
  }
  return syscall(SYS_capset, &h, d) ? err_errno(e, "capset") : 0;
}

bool sandbox_has_seccomp(void) {
  return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 && seccomp_api_get() >= 1;
}

int sandbox_restrict_calls(const struct sandbox_policy *p, struct err *e) {
  scmp_filter_ctx c = seccomp_init(SCMP_ACT_ALLOW);
  if (!c) return err_set(e, "ENOMEM", "seccomp: no filter");
  int rc = fill(c, p);
  if (!rc) rc = seccomp_load(c); /* sets no-new-privileges */
  seccomp_release(c);
  errno = -rc;
  return rc ? err_errno(e, "seccomp") : 0;
}
