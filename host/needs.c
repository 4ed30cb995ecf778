#include "host/needs.h"

#include "host/version.h"

#include <stdio.h>
#include <string.h>

static int parse(const char *text, int version[3]) {
  char rest;
  version[0] = version[1] = version[2] = 0;
  const int n = sscanf(text, "%d.%d.%d%c", &version[0], &version[1], &version[2], &rest);
  return n >= 1 && n <= 3 ? 0 : -1;
}

int needs_version(const char *version, struct err *e) {
  int wanted[3], ours[3];
  if (parse(version, wanted)) {
    return err_set(e, "EINVAL", "needs nclua '%s', which is no version", version);
  }
  parse(NCLUA_VERSION, ours);
  for (int i = 0; i < 3; i++) {
    if (wanted[i] < ours[i]) return 0;
    if (wanted[i] > ours[i]) {
      return err_set(
        e, "EVERSION", "needs nclua %s or newer; this is %s", version, NCLUA_VERSION);
    }
  }
  return 0;
}

int needs_check(const char *path, struct err *e) {
  char line[256], version[32];
  int rc = 0;
  FILE *file = fopen(path, "re");
  while (file && rc == 0 && fgets(line, sizeof line, file)) {
    if (strncmp(line, "--", 2) != 0 && strncmp(line, "#!", 2) != 0) break;
    const char *text = line + strspn(line, "- ");
    if (sscanf(text, "needs: nclua >= %31s", version) == 1) rc = needs_version(version, e);
  }
  if (file) fclose(file);
  return rc;
}
