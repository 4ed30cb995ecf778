#include "tests/host/abi_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* That this program compiled has already held every function's type against the headers. */
static void test_values(void **state) {
  (void)state;
  size_t rows = 0;
  for (; abi_ours[rows].what; rows++) {
    if (abi_ours[rows].value == abi_vendors[rows].value) continue;
    fail_msg("%s is %lld here, %lld in the vendor's headers",
             abi_ours[rows].what,
             abi_ours[rows].value,
             abi_vendors[rows].value);
  }
  assert_null(abi_vendors[rows].what);
  assert_in_range(rows, 90, 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
