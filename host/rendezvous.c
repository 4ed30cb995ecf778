#include "host/rendezvous.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { RETRY_MS = 10, MAGIC = 0x6e636c75 };

/* What a process says first, and again with its rank's descriptors. The shared memory's
   layout is that of one program. */
struct hello {
  uint32_t magic, rank_bytes;
  int32_t index, count, pid;
  int32_t has[LAUNCH_STREAMS]; /* which streams come with it, in this order */
};

static void shut(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

/* The abstract namespace: it begins with a NUL, and no file can remain. */
static socklen_t name_of(struct sockaddr_un *name, const struct launcher *where, int turn) {
  *name = (struct sockaddr_un){.sun_family = AF_UNIX};
  int used =
    snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "%s-%d", where->key, turn);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)used);
}

static int check_host(const struct launcher *where, struct err *e) {
  if (where->here == 0 || where->here == where->count) return 0;
  return err_set(e,
                 "ENOTSUP",
                 "%s has %d of %d processes on this host: ranks of several hosts are not "
                 "supported",
                 where->name,
                 where->here,
                 where->count);
}

static bool is_ours(int fd) {
  struct ucred peer;
  socklen_t bytes = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         peer.uid == getuid();
}

enum { MOST_FDS = LAUNCH_STREAMS };

union control {
  struct cmsghdr align;
  char room[CMSG_SPACE(MOST_FDS * sizeof(int))];
};

static int send_with(int link, const void *data, size_t bytes, const int *fds,
                     size_t count) {
  union control control = {0};
  struct iovec part = {(void *)data, bytes};
  struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
  if (count) {
    m.msg_control = control.room;
    m.msg_controllen = CMSG_SPACE(count * sizeof *fds);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof *fds);
    memcpy(CMSG_DATA(c), fds, count * sizeof *fds);
  }
  return sendmsg(link, &m, MSG_NOSIGNAL) == (ssize_t)bytes ? 0 : -1;
}

/* -1 unless just `bytes` came; fds that did not come are -1. */
static int receive_with(int link, void *data, size_t bytes, int fds[MOST_FDS]) {
  union control control = {0};
  struct iovec part = {data, bytes};
  struct msghdr m = {.msg_iov = &part,
                     .msg_iovlen = 1,
                     .msg_control = control.room,
                     .msg_controllen = sizeof control.room};
  for (int i = 0; i < MOST_FDS; i++) fds[i] = -1;
  struct pollfd ready = {.fd = link, .events = POLLIN};
  if (poll(&ready, 1, RENDEZVOUS_S * 1000) <= 0) return -1;
  ssize_t got = recvmsg(link, &m, MSG_CMSG_CLOEXEC);
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  if (c && c->cmsg_type == SCM_RIGHTS) {
    memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
  }
  return got == (ssize_t)bytes ? 0 : -1;
}

static struct hello hello_of(int index, int count) {
  return (struct hello){.magic = MAGIC,
                        .rank_bytes = sizeof(struct world_rank),
                        .index = index,
                        .count = count};
}

static bool is_welcome(const struct launch *l, const struct hello *h) {
  return h->magic == MAGIC && h->rank_bytes == sizeof(struct world_rank) &&
         h->count == l->count && h->index > 0 && h->index < l->count &&
         l->ranks[h->index].link < 0;
}

/* A new process: what it says, the memory for it, its rank. One that is not of this world
   is turned away, and is not waited for. */
static void admit(struct launch *l, int link, int memory) {
  struct hello h;
  int fds[MOST_FDS] = {-1, -1, -1};
  bool is_known = is_ours(link) && !receive_with(link, &h, sizeof h, fds) &&
                  is_welcome(l, &h) && !send_with(link, &h, sizeof h, &memory, 1) &&
                  !receive_with(link, &h, sizeof h, fds) && is_welcome(l, &h);
  if (!is_known) {
    for (int i = 0; i < MOST_FDS; i++) shut(&fds[i]);
    close(link);
    return;
  }
  struct launch_rank *r = &l->ranks[h.index];
  r->pid = h.pid;
  r->link = link;
  for (int s = 0, next = 0; s < LAUNCH_STREAMS; s++) {
    if (h.has[s]) r->stream[s].fd = fds[next++];
  }
}

static int count_here(const struct launch *l) {
  int here = 0;
  for (int i = 0; i < l->count; i++) here += l->ranks[i].pid != 0;
  return here;
}

static int admit_all(struct launch *l, int door, int memory, struct err *e) {
  uint64_t until = process_now_ns() + RENDEZVOUS_S * UINT64_C(1000000000);
  while (count_here(l) < l->count) {
    struct pollfd ready = {.fd = door, .events = POLLIN};
    int rc = poll(&ready, 1, 1000);
    if (rc < 0) return err_errno(e, "wait for the other ranks");
    if (rc > 0) {
      int link = accept4(door, NULL, NULL, SOCK_CLOEXEC);
      if (link >= 0) admit(l, link, memory);
    }
    if (process_now_ns() > until) {
      return err_set(e,
                     "ETIMEDOUT",
                     "%d of %d processes came within %d s; all must be on "
                     "this host and run the same script",
                     count_here(l),
                     l->count,
                     RENDEZVOUS_S);
    }
  }
  return 0;
}

static int open_door(const struct launcher *where, int turn, struct err *e) {
  struct sockaddr_un name;
  socklen_t bytes = name_of(&name, where, turn);
  int door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (door >= 0 && !bind(door, (struct sockaddr *)&name, bytes) &&
      !listen(door, where->count)) {
    return door;
  }
  err_errno(e, "cannot meet the other processes of %s", where->name);
  shut(&door);
  return -1;
}

int rendezvous_lead(struct launch *l, const struct launch_spec *spec,
                    const struct launcher *where, int turn, struct launch_seat *seat,
                    struct err *e) {
  int memory = -1, door = -1;
  *seat = (struct launch_seat){.index = -1, .fd = -1};
  *l = (struct launch){.owner = getpid()};
  if (check_host(where, e)) return -1;
  struct world *world = world_create_file(where->count, &memory, e);
  if (!world) return -1;
  if (launch_prepare(l, where->count, world, e)) goto fail;
  int rc = launch_fork_rank(l, spec, 0, seat, e);
  if (rc > 0) {
    close(memory);
    return 0;
  }
  door = rc < 0 ? -1 : open_door(where, turn, e);
  if (door < 0 || admit_all(l, door, memory, e)) goto fail;
  shut(&door);
  shut(&memory);
  launch_catch(l);
  return 0;
fail:
  launch_close(l);
  shut(&door);
  shut(&memory);
  return -1;
}

/* Process 0 may be later than this one. */
static int knock(const struct launcher *where, int turn, struct err *e) {
  struct sockaddr_un name;
  socklen_t bytes = name_of(&name, where, turn);
  for (int waited = 0;; waited += RETRY_MS) {
    int link = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (link < 0) return err_errno(e, "socket");
    if (connect(link, (struct sockaddr *)&name, bytes) == 0) return link;
    int number = errno;
    close(link);
    errno = number;
    if (number != ECONNREFUSED || waited > RENDEZVOUS_S * 1000) {
      return err_errno(e, "cannot meet process 0 of %s on this host", where->name);
    }
    if (poll(NULL, 0, RETRY_MS) < 0) return err_errno(e, "cannot meet process 0");
  }
}

/* Maps the memory that process 0 hands out. */
static struct world *enter(int link, const struct launcher *where, struct err *e) {
  struct hello h = hello_of(where->index, where->count);
  int fds[MOST_FDS];
  struct world *world = NULL;
  if (send_with(link, &h, sizeof h, NULL, 0) || receive_with(link, &h, sizeof h, fds) ||
      fds[0] < 0) {
    err_set(e,
            "EPROTO",
            "process 0 of %s turned this one away: is it the same program "
            "with the same number of ranks?",
            where->name);
  } else {
    world = world_map(fds[0], where->count, e);
  }
  for (int i = 0; i < MOST_FDS; i++) shut(&fds[i]);
  return world;
}

static int bring(const struct rendezvous *r, struct err *e) {
  struct launch_rank *rank = &r->l.ranks[r->index];
  struct hello h = hello_of(r->index, r->l.count);
  int fds[MOST_FDS];
  size_t count = 0;
  h.pid = rank->pid;
  for (int s = 0; s < LAUNCH_STREAMS; s++) {
    h.has[s] = rank->stream[s].fd >= 0;
    if (h.has[s]) fds[count++] = rank->stream[s].fd;
  }
  if (send_with(r->link, &h, sizeof h, fds, count))
    return err_errno(e, "process 0 is gone");
  for (int s = 0; s < LAUNCH_STREAMS; s++) shut(&rank->stream[s].fd);
  return 0;
}

int rendezvous_follow(struct rendezvous *r, const struct launch_spec *spec,
                      const struct launcher *where, int turn, struct launch_seat *seat,
                      struct err *e) {
  *r = (struct rendezvous){.index = where->index, .link = -1};
  *seat = (struct launch_seat){.index = -1, .fd = -1};
  if (check_host(where, e)) return -1;
  r->link = knock(where, turn, e);
  struct world *world = r->link < 0 ? NULL : enter(r->link, where, e);
  if (!world || launch_prepare(&r->l, where->count, world, e)) goto fail;
  int rc = launch_fork_rank(&r->l, spec, r->index, seat, e);
  if (rc > 0) {
    shut(&r->link); /* or process 0 would not see the parent's end */
    return 0;
  }
  if (rc < 0 || bring(r, e)) goto fail;
  launch_catch(&r->l);
  return 0;
fail:
  rendezvous_close(r);
  return -1;
}

static int tell_end(struct rendezvous *r, struct err *e) {
  struct launch_rank *rank = &r->l.ranks[r->index];
  int rc = rank->is_reaped ? 0 : launch_reap(rank, e);
  if (rc == 1) send_with(r->link, &rank->end, sizeof rank->end, NULL, 0);
  return rc < 0 ? -1 : 0;
}

int rendezvous_attend(struct rendezvous *r, int timeout_ms, struct err *e) {
  struct launch_rank *rank = &r->l.ranks[r->index];
  struct pollfd fds[] = {{.fd = r->link, .events = POLLIN},
                         {.fd = rank->is_reaped ? -1 : rank->pidfd, .events = POLLIN}};
  if (launch_is_terminated(&r->l, e)) return -1;
  if (poll(fds, 2, timeout_ms) < 0) return errno == EINTR ? 0 : err_errno(e, "poll");
  if (tell_end(r, e)) return -1;
  if (!fds[0].revents) return 0;
  bool is_good = false;
  ssize_t got = recv(r->link, &is_good, sizeof is_good, MSG_DONTWAIT);
  r->is_over = true;
  r->is_good = got == (ssize_t)sizeof is_good && is_good;
  return 0;
}

void rendezvous_close(struct rendezvous *r) {
  launch_close(&r->l);
  shut(&r->link);
}
