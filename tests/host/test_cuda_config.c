#include "host/cuda/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { UNDEFINED = NCCL_CONFIG_UNDEF_INT };

static ncclConfig_t config(void) {
  return (ncclConfig_t){
    .size = sizeof(ncclConfig_t),
    .magic = NCCL_CONFIG_MAGIC,
    .version = 22809,
    .blocking = UNDEFINED,
    .cgaClusterSize = UNDEFINED,
    .minCTAs = UNDEFINED,
    .maxCTAs = UNDEFINED,
    .splitShare = UNDEFINED,
    .trafficClass = UNDEFINED,
    .collnetEnable = UNDEFINED,
    .CTAPolicy = UNDEFINED,
    .shrinkShare = UNDEFINED,
    .nvlsCTAs = UNDEFINED,
    .nChannelsPerNetPeer = UNDEFINED,
    .nvlinkCentricSched = UNDEFINED,
  };
}

/* The sizes of ncclConfig_t in nccl.h of those releases. */
static void test_layouts(void **state) {
  static const struct {
    int library, blocking;
    size_t size;
    unsigned version;
  } cases[] = {
    {21403, 1, 24, 21403},
    {21602, 1, 24, 21602},
    {21701, UNDEFINED, 40, 21701},
    {21805, UNDEFINED, 48, 21805},
    {22602, UNDEFINED, 48, 22602},
    {22703, UNDEFINED, 72, 22703},
    {22803, UNDEFINED, 80, 22800},
    {23007, UNDEFINED, 80, 22800}, /* a newer one reads the prefix that it is given */
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ncclConfig_t c = config();
    char why[128] = "";
    config_set_version(cases[i].library);
    c.commName = "a name is never refused";
    assert_int_equal(config_adapt(&c, why, sizeof why), 0);
    assert_int_equal(c.size, cases[i].size);
    assert_int_equal(c.version, cases[i].version);
    assert_int_equal(c.blocking, cases[i].blocking);
  }
}

static void test_refusals(void **state) {
  char why[128];
  (void)state;
  ncclConfig_t c = config();
  c.blocking = 0;
  config_set_version(21212);
  assert_int_equal(config_adapt(&c, why, sizeof why), -1);
  assert_non_null(strstr(why, "'blocking' needs NCCL 2.14"));
  config_set_version(21403);
  assert_int_equal(config_adapt(&c, why, sizeof why), 0);

  c = config();
  c.nvlsCTAs = 4;
  config_set_version(22602);
  assert_int_equal(config_adapt(&c, why, sizeof why), -1);
  assert_non_null(strstr(why, "'nvlsCTAs' needs NCCL 2.27"));
  config_set_version(22703);
  assert_int_equal(config_adapt(&c, why, sizeof why), 0);

  c = config();
  c.netName = "Socket";
  config_set_version(21602);
  assert_int_equal(config_adapt(&c, why, sizeof why), -1);
  assert_non_null(strstr(why, "'netName'"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_layouts),
    cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
