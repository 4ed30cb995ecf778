#include "plugins/expand.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int expand_pattern(const char *pattern, char *path, size_t size) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  host[strcspn(host, ".")] = '\0';
  size_t used = 0;
  for (const char *p = pattern; *p; p++) {
    int n;
    const int is_escape = *p == '%' && (p[1] == 'h' || p[1] == 'p');
    if (!is_escape)
      n = snprintf(path + used, size - used, "%c", *p);
    else if (*++p == 'h')
      n = snprintf(path + used, size - used, "%s", host);
    else
      n = snprintf(path + used, size - used, "%d", (int)getpid());
    if (n < 0 || (size_t)n >= size - used) return -1;
    used += (size_t)n;
  }
  path[used] = '\0';
  return 0;
}
