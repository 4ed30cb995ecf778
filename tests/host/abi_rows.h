#ifndef TESTS_HOST_ABI_ROWS_H
#define TESTS_HOST_ABI_ROWS_H

/* One fact of an ABI, as one set of headers has it. */
struct abi_row {
  const char *what;
  long long value;
};

/* Rows of abi.def, ended by a NULL, as our headers and as the vendors' have them. */
extern const struct abi_row abi_ours[], abi_vendors[];

#endif
