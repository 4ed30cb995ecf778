#include "host/cpu/primitives.h"
#include "host/cpu/watch.h"

static void move_watched(struct cpu_primitives *p, const struct cpu_chunk *chunk) {
  struct coll_step step = cpu_watch_enter(p, chunk);
  p->protocol->move(p, chunk);
  if (!p->rc) cpu_steps_leave(&step);
}

/* An empty chunk is skipped on both sides alike: its count follows from the call. */
static void move(struct cpu_primitives *p, const struct cpu_chunk *chunk) {
  if (p->rc || !chunk->count) return;
  if (atomic_load_explicit(&cpu_steps_watched, memory_order_relaxed))
    move_watched(p, chunk);
  else
    p->protocol->move(p, chunk);
}

void cpu_send(struct cpu_primitives *p, const void *src, size_t count) {
  move(p, &(struct cpu_chunk){src, NULL, count, .send = true});
}

void cpu_copy_send(struct cpu_primitives *p, const void *src, void *dst, size_t count) {
  move(p, &(struct cpu_chunk){src, dst, count, .send = true});
}

void cpu_recv(struct cpu_primitives *p, void *dst, size_t count) {
  move(p, &(struct cpu_chunk){NULL, dst, count, .recv = true});
}

void cpu_recv_copy_send(struct cpu_primitives *p, void *dst, size_t count) {
  move(p, &(struct cpu_chunk){NULL, dst, count, .recv = true, .send = true});
}

void cpu_recv_reduce_send(struct cpu_primitives *p, const void *src, size_t count) {
  move(p, &(struct cpu_chunk){src, NULL, count, .recv = true, .send = true});
}

void cpu_recv_reduce_copy(struct cpu_primitives *p, const void *src, void *dst,
                          size_t count) {
  move(p, &(struct cpu_chunk){src, dst, count, .recv = true, .post = true});
}

void cpu_recv_reduce_copy_send(struct cpu_primitives *p, const void *src, void *dst,
                               size_t count) {
  move(p, &(struct cpu_chunk){src, dst, count, .recv = true, .send = true, .post = true});
}
