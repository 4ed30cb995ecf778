#include "host/cpu/handshake.h"
#include "host/cpu/fail.h"
#include "host/cpu/gate.h"
#include "host/cpu/unique_id.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAGIC 0x31696c6c65686370ull
#define PATIENCE_MS 2000 /* with a guest that has connected but says nothing */

struct answer {
  int rc;
  char text[256];
};

static ncclResult_t fail_errno(const char *what) {
  return cpu_fail(ncclSystemError, "%s: %s", what, strerror(errno));
}

/* Packets, so that a word is read whole or not at all. */
static int new_socket(void) {
  return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

static bool wait_readable(int fd, int milliseconds) {
  struct pollfd p = {.fd = fd, .events = POLLIN};
  return poll(&p, 1, milliseconds) == 1;
}

static int left_ms(int64_t deadline) {
  int64_t now = cpu_now_ns();
  if (now >= deadline) return 0;
  int64_t ms = (deadline - now) / 1000000 + 1;
  return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Is the other end a process of this user? Its pid as seen from here in *pid. */
static bool is_same_user(int fd, int *pid) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size)) return false;
  *pid = peer.pid;
  return peer.uid == geteuid();
}

ncclResult_t cpu_handshake_listen(const ncclUniqueId *id, int nranks, int *door) {
  struct sockaddr_un address;
  socklen_t size = cpu_unique_id_address(id, &address);
  *door = new_socket();
  if (*door < 0) return fail_errno("socket");
  if (!bind(*door, (struct sockaddr *)&address, size) && !listen(*door, nranks)) {
    return ncclSuccess;
  }
  int taken = errno == EADDRINUSE;
  if (!taken) fail_errno("bind");
  close(*door);
  if (!taken) return ncclSystemError;
  return cpu_fail(ncclInvalidUsage, "another rank 0 already waits under this unique id");
}

/* Fills guest->hello; false if the guest is none of ours. */
static bool greet(struct cpu_guest *guest) {
  int pid;
  if (!is_same_user(guest->socket, &pid)) return false;
  if (!wait_readable(guest->socket, PATIENCE_MS)) return false;
  struct cpu_hello *hello = &guest->hello;
  if (recv(guest->socket, hello, sizeof *hello, 0) != sizeof *hello) return false;
  guest->same_pids = pid == hello->pid;
  return hello->magic == MAGIC;
}

ncclResult_t cpu_handshake_accept(int door, int64_t deadline, struct cpu_guest *guest) {
  while (wait_readable(door, left_ms(deadline))) {
    *guest = (struct cpu_guest){.socket = accept4(door, NULL, NULL, SOCK_CLOEXEC)};
    if (guest->socket < 0) return fail_errno("accept");
    if (greet(guest)) return ncclSuccess;
    close(guest->socket);
  }
  return ncclInProgress;
}

void cpu_handshake_answer(struct cpu_guest *guest, ncclResult_t rc, int fd) {
  struct answer answer = {.rc = rc};
  if (rc) snprintf(answer.text, sizeof answer.text, "%s", cpu_fail_text());
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
  } control = {.header = {CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS}};
  memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
  struct iovec data = {&answer, sizeof answer};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
  if (!rc) {
    message.msg_control = &control;
    message.msg_controllen = sizeof control.room;
  }
  sendmsg(guest->socket, &message, MSG_NOSIGNAL); /* who has gone again is missed later */
  close(guest->socket);
}

/* Rank 0's answer; false if it hung up instead: it is about to close its door. */
static bool read_answer(int socket, struct answer *answer, int *fd) {
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec data = {answer, sizeof *answer};
  struct msghdr message = {.msg_iov = &data,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof control.room};
  *fd = -1;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof *answer) return false;
  const struct cmsghdr *c = CMSG_FIRSTHDR(&message);
  if (c && c->cmsg_type == SCM_RIGHTS) memcpy(fd, CMSG_DATA(c), sizeof *fd);
  return answer->rc || *fd >= 0;
}

/* One attempt: false if nobody answers there (yet). */
static bool knock(const struct sockaddr_un *address, socklen_t size,
                  const struct cpu_hello *hello, int64_t deadline, struct answer *answer,
                  int *fd) {
  int pid, s = new_socket();
  bool answered = s >= 0 && !connect(s, (const struct sockaddr *)address, size) &&
                  is_same_user(s, &pid) &&
                  send(s, hello, sizeof *hello, MSG_NOSIGNAL) > 0 &&
                  wait_readable(s, left_ms(deadline)) && read_answer(s, answer, fd);
  if (s >= 0) close(s);
  return answered;
}

ncclResult_t cpu_handshake_knock(const ncclUniqueId *id, int rank, int nranks,
                                 int64_t deadline, int *fd) {
  struct sockaddr_un address;
  socklen_t size = cpu_unique_id_address(id, &address);
  struct cpu_hello hello = {MAGIC, rank, nranks, getpid()};
  struct answer answer;
  for (long pause_ns = 100000; !knock(&address, size, &hello, deadline, &answer, fd);) {
    if (left_ms(deadline) == 0) {
      return cpu_fail(
        ncclSystemError, "timed out: rank 0 of %d has not come to this unique id", nranks);
    }
    nanosleep(&(struct timespec){0, pause_ns}, NULL);
    if (pause_ns < 10000000) pause_ns *= 2; /* rank 0 may need the core to get here */
  }
  if (answer.rc) return cpu_fail_again((ncclResult_t)answer.rc, answer.text);
  return ncclSuccess;
}
