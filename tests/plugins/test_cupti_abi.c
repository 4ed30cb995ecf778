/* The tracer's declarations of CUPTI against the vendor's headers. */
#include "plugins/trace/abi.h"
#include "tests/plugins/cupti_abi.h"

#include <stdio.h>
#include <stdlib.h>

int main(void) {
  const struct cupti_layout layout = abi_layout(cupti_abi_version);
  const struct cupti_abi_row ours[] = {
#define VALUE(name) {#name, (long long)(name)},
#define MEMBER(ours, theirs, member)                                                       \
  {#ours "." #member, (long long)offsetof(struct ours, member)},
#define LATER(place, theirs, member) {#place, (long long)layout.place},
#include "tests/plugins/cupti_abi.def"
#define DRIVER(name, number) {#name, number},
#define RUNTIME(name, number) {#name, number},
#include "plugins/trace/launches.def"
    {NULL, 0},
  };
  int differ = 0, count = 0;
  for (; ours[count].what; count++) {
    const struct cupti_abi_row *theirs = &cupti_abi_vendors[count];
    if (ours[count].value == theirs->value) continue;
    printf("%s is %lld, %s is %lld\n",
           ours[count].what,
           ours[count].value,
           theirs->what,
           theirs->value);
    differ++;
  }
  printf("CUPTI %u: %d facts, %d differ\n", cupti_abi_version, count, differ);
  return differ || count < 50 ? EXIT_FAILURE : EXIT_SUCCESS;
}
