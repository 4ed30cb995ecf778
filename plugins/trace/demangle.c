#include "plugins/trace/demangle.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef char *demangler(const char *name, char *buffer, size_t *size, int *status);

/* The process may have the C++ library; else it is opened, and stays. */
static demangler *find_demangler(void) {
  void *symbol = dlsym(RTLD_DEFAULT, "__cxa_demangle");
  if (!symbol) {
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
    if (library) symbol = dlsym(library, "__cxa_demangle");
  }
  demangler *function = NULL;
  memcpy(&function, &symbol, sizeof function);
  return function;
}

char *demangle(const char *mangled) {
  static demangler *function;
  static bool is_sought;
  if (strncmp(mangled, "_Z", 2) != 0) return strdup(mangled);
  if (!is_sought) function = find_demangler();
  is_sought = true;
  int status = -1;
  char *text = function ? function(mangled, NULL, NULL, &status) : NULL;
  if (text && status == 0) return text;
  free(text);
  return strdup(mangled);
}

/* _Z, then perhaps N and scopes: names after their lengths. The last one before anything
   else counts; arguments of templates and functions come after it. */
static void brief_of_mangled(const char *name, char *brief, size_t size) {
  const char *p = name + 2, *last = name;
  long length = (long)strlen(name);
  p += *p == 'N';
  while (isdigit((unsigned char)*p)) {
    char *end;
    const long n = strtol(p, &end, 10);
    if (n <= 0 || n > (long)strlen(end)) break;
    last = end;
    length = n;
    p = end + n;
  }
  snprintf(brief, size, "%.*s", (int)length, last);
}

static bool is_anonymous(const char *p) {
  return strncmp(p, "(anonymous namespace)", 21) == 0;
}

/* The end of the name within a declaration: where its arguments begin. */
static const char *end_of_name(const char *text) {
  int depth = 0;
  for (const char *p = text; *p; p++) {
    if (*p == '<') depth++;
    if (*p == '>' && depth) depth--;
    if (*p != '(' || depth) continue;
    if (!is_anonymous(p)) return p;
    p += strlen("(anonymous namespace)") - 1;
  }
  return text + strlen(text);
}

void demangle_brief(const char *name, char *brief, size_t size) {
  if (strncmp(name, "_Z", 2) == 0) {
    brief_of_mangled(name, brief, size);
    return;
  }
  const char *end = end_of_name(name), *begin = name;
  int depth = 0;
  const char *stop = end; /* before the name's own template arguments */
  for (const char *p = name; p < end; p++) {
    if (*p == '<' && depth++ == 0) stop = p;
    if (*p == '>' && depth) depth--;
    if (depth || (*p != ' ' && *p != ':')) continue;
    begin = p + 1;
    stop = end;
  }
  snprintf(brief, size, "%.*s", (int)(stop - begin), begin);
}
