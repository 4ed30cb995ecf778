#ifndef PLUGINS_TRACE_DEMANGLE_H
#define PLUGINS_TRACE_DEMANGLE_H

/* Names of C++ functions for people. */

#include <stddef.h>

/* The declaration of a mangled name, for the caller to free; a plain name as it is. Uses
   the C++ library's own demangler if the machine has one. NULL if memory is short. */
char *demangle(const char *mangled);

/* The bare name in a declaration or a mangled name: neither scope nor arguments. */
void demangle_brief(const char *name, char *brief, size_t size);

#endif
