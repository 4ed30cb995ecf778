#ifndef HOST_RENDEZVOUS_H
#define HOST_RENDEZVOUS_H

/* A world whose ranks are forked by several processes of one host, those that a launcher
   started. Process 0 makes the shared memory and watches all ranks; the others bring
   theirs: they send the descriptors that its rows and output come from, and how it ended.
   They find each other by a socket's name that is in no file system. */

#include "host/launch.h"
#include "host/launcher.h"

/* How long the processes wait for each other. */
enum { RENDEZVOUS_S = 60 };

/* As process 0: like launch_fork. `turn` counts the worlds of this launch, from 0. */
int rendezvous_lead(struct launch *l, const struct launch_spec *spec,
                    const struct launcher *where, int turn, struct launch_seat *seat,
                    struct err *e);

/* As another process, with its one rank. */
struct rendezvous {
  struct launch l; /* of which only its own rank is there */
  int index, link; /* link: to process 0, -1 if there is none */
  bool is_over;    /* process 0 has said how the world ended, or is gone: */
  bool is_good;
};

int rendezvous_follow(struct rendezvous *r, const struct launch_spec *spec,
                      const struct launcher *where, int turn, struct launch_seat *seat,
                      struct err *e);

/* Waits for news, at most `timeout_ms`. */
int rendezvous_attend(struct rendezvous *r, int timeout_ms, struct err *e);

/* Kills and reaps the rank if it is left. Twice is once. */
void rendezvous_close(struct rendezvous *r);

#endif
