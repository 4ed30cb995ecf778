#ifndef TESTS_PLUGINS_CUPTI_ABI_H
#define TESTS_PLUGINS_CUPTI_ABI_H

#include <stdint.h>

/* One fact of CUPTI's ABI, as one set of headers has it. */
struct cupti_abi_row {
  const char *what;
  long long value;
};

/* From the vendor's headers, ended by a NULL; and which version they are. */
extern const struct cupti_abi_row cupti_abi_vendors[];
extern const uint32_t cupti_abi_version;

#endif
