#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* What libFuzzer calls with every input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
