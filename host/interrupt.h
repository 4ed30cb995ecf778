#ifndef HOST_INTERRUPT_H
#define HOST_INTERRUPT_H

#include <lua.h>
#include <stdbool.h>

/* Ctrl-C while Lua code runs raises "interrupted" in it. Watched code, at a prompt, is also
   interrupted in coroutines and in waits for a device. A second Ctrl-C (of watched
   code: two seconds later) ends the process: the first may be stuck in a library's call. */
struct interrupt {
  struct interrupt *outer;
  lua_State *L;
  bool is_watched;
  void (*before)(int); /* what SIGINT did */
};

/* What is between begin and end. These nest, in one thread; *i is the caller's. */
void interrupt_begin(struct interrupt *i, lua_State *L, bool is_watched);
void interrupt_end(struct interrupt *i);

/* Should a wait ask again and again instead of blocking? And: has it to give up? */
bool interrupt_is_watched(void);
bool interrupt_is_asked(void);

#endif
