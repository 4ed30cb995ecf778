/* The Landlock part of the sandbox. The declarations are our own: the header of an older
   kernel lacks the newer rights, and what runs here is not what this was built on. */

#include "host/sandbox.h"
#include "host/sandbox_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The same on every architecture. */
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 };

enum { ASK_VERSION = 1, RULE_PATH_BENEATH = 1 };

/* From linux/landlock.h of Linux 6.12, in the order of the bits. */
enum {
  EXECUTE = 1 << 0,
  WRITE_FILE = 1 << 1,
  READ_FILE = 1 << 2,
  READ_DIR = 1 << 3,
  REMOVE_DIR = 1 << 4,
  REMOVE_FILE = 1 << 5,
  MAKE_CHAR = 1 << 6,
  MAKE_DIR = 1 << 7,
  MAKE_REG = 1 << 8,
  REFER = 1 << 13,     /* since version 2: rename and link between folders */
  TRUNCATE = 1 << 14,  /* since version 3 */
  IOCTL_DEV = 1 << 15, /* since version 5 */
  NET_TCP = 3,         /* bind and connect, since version 4 */
  SCOPES = 3           /* abstract sockets and signals, since version 6 */
};

struct ruleset {
  uint64_t files, net, scopes;
};

struct beneath {
  uint64_t allowed;
  int32_t parent;
} __attribute__((packed));

static const uint64_t rights[] = {
  [SANDBOX_LIST] = READ_DIR,
  [SANDBOX_READ] = READ_FILE | READ_DIR,
  [SANDBOX_DEVICE] =
    READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | IOCTL_DEV | MAKE_REG | REMOVE_FILE,
  [SANDBOX_WRITE] = READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | REMOVE_DIR |
                    REMOVE_FILE | MAKE_DIR | MAKE_REG | REFER,
  [SANDBOX_RUN] = READ_FILE | EXECUTE,
  [SANDBOX_LOADER] = READ_FILE | EXECUTE,
};

static const uint64_t FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

static uint64_t known_rights(int abi) {
  uint64_t known = REFER - 1;
  if (abi >= 2) known |= REFER;
  if (abi >= 3) known |= TRUNCATE;
  if (abi >= 5) known |= IOCTL_DEV;
  return known;
}

static size_t ruleset_size(int abi) {
  if (abi < 4) return sizeof(uint64_t);
  return abi < 6 ? 2 * sizeof(uint64_t) : sizeof(struct ruleset);
}

int sandbox_landlock(void) {
  const long abi = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
  return abi > 0 ? (int)abi : 0;
}

static int add_path(int ruleset, const struct sandbox_path *p, uint64_t known,
                    struct err *e) {
  struct stat st;
  struct beneath b = {.allowed = rights[p->use] & known};
  b.parent = open(p->path, O_PATH | O_CLOEXEC);
  if (b.parent < 0) return 0; /* what is gone needs no right */
  if (fstat(b.parent, &st) == 0 && !S_ISDIR(st.st_mode)) b.allowed &= FILE_RIGHTS;
  const long rc = syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, &b, 0);
  if (rc) err_errno(e, "landlock: '%s'", p->path);
  close(b.parent);
  return rc ? -1 : 0;
}

int sandbox_restrict_files(const struct sandbox_policy *p, int abi, struct err *e) {
  const uint64_t known = known_rights(abi);
  const struct ruleset wanted = {known, p->has_gpus ? 0 : NET_TCP, SCOPES};
  const int ruleset = (int)syscall(CREATE_RULESET, &wanted, ruleset_size(abi), 0);
  if (ruleset < 0) return err_errno(e, "landlock");
  int rc = 0;
  for (size_t i = 0; i < p->count && rc == 0; i++) {
    rc = add_path(ruleset, &p->paths[i], known, e);
  }
  if (rc == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) rc = err_errno(e, "prctl");
  if (rc == 0 && syscall(RESTRICT_SELF, ruleset, 0)) rc = err_errno(e, "landlock");
  close(ruleset);
  return rc;
}
