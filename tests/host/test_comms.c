#include "host/comms.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MOST = 8 };

struct ncclComm {
  int aborted;
};

static ncclResult_t count_abort(ncclComm_t comm) {
  comm->aborted++;
  return ncclSuccess;
}

static const struct coll_api api = {.comm_abort = count_abort};

static struct ncclComm comms[MOST];
static struct comms_entry entries[MOST];

static void add_all(void) {
  for (int i = 0; i < MOST; i++) {
    comms[i] = (struct ncclComm){0};
    entries[i] = (struct comms_entry){.api = &api, .comm = &comms[i]};
    comms_add(&entries[i]);
  }
}

static void remove_in_any_order(void **state) {
  static const int order[MOST] = {3, 0, 7, 1, 2, 6, 4, 5};
  (void)state;
  add_all();
  for (int i = 0; i < MOST; i++) {
    assert_true(comms_remove(&entries[order[i]]));
    assert_false(comms_remove(&entries[order[i]]));
  }
  assert_false(comms_is_aborted());
}

static void *watchdog(void *unused) {
  comms_abort_all();
  return unused;
}

/* The last test, for nothing is usable after it. */
static void abort_what_is_live(void **state) {
  pthread_t thread;
  (void)state;
  add_all();
  assert_true(comms_remove(&entries[2]));
  assert_int_equal(pthread_create(&thread, NULL, watchdog, NULL), 0);
  pthread_join(thread, NULL);
  assert_true(comms_is_aborted());
  for (int i = 0; i < MOST; i++) {
    assert_int_equal(comms[i].aborted, i != 2);
    assert_false(comms_remove(&entries[i])); /* the owner must not abort it again */
  }
  comms_abort_all();
  assert_int_equal(comms[0].aborted, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(remove_in_any_order),
    cmocka_unit_test(abort_what_is_live),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
