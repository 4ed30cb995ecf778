/* without_landlock PROGRAM [ARGUMENT ...]: runs it as on a kernel that has no Landlock. */

#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CREATE_RULESET = 444 }; /* landlock_create_ruleset, on every architecture */

int main(int argc, char **argv) {
  scmp_filter_ctx c = seccomp_init(SCMP_ACT_ALLOW);
  if (argc < 2 || !c) return 2;
  int rc = seccomp_rule_add(c, SCMP_ACT_ERRNO(ENOSYS), CREATE_RULESET, 0);
  if (!rc) rc = seccomp_load(c);
  seccomp_release(c);
  if (rc) {
    fprintf(stderr, "without_landlock: %s\n", strerror(-rc));
    return 2;
  }
  execv(argv[1], argv + 1);
  perror(argv[1]);
  return 2;
}
