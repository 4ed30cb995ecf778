#include "host/interrupt.h"

#include <lauxlib.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

/* Signal handlers cannot carry a pointer. */
static struct interrupt *volatile current;
static volatile sig_atomic_t is_asked;

enum { EVERY = 1000 }; /* instructions: some 5 us */

/* A hook is no function of its own: level 0 is what it interrupts. */
static void raise_here(lua_State *L) {
  luaL_where(L, 0);
  lua_pushliteral(L, "interrupted");
  lua_concat(L, 2);
  lua_error(L);
}

static void stop_hook(lua_State *L, lua_Debug *ar) {
  (void)ar;
  lua_sethook(L, NULL, 0, 0);
  raise_here(L);
}

/* Raises until the prompt is reached, whoever catches errors on the way there. At varying
   distances: a loop around a pcall would always be hit inside of it. Handles that are
   closed on the way are C functions, which counting instructions leaves alone. */
static void watch_hook(lua_State *L, lua_Debug *ar) {
  (void)ar;
  static unsigned raised;
  const int count = is_asked ? 1 + (int)(raised++ * 7 % 31) : EVERY;
  if (lua_gethookcount(L) != count) lua_sethook(L, watch_hook, LUA_MASKCOUNT, count);
  if (is_asked) raise_here(L);
}

/* A held key must not end the session; who still waits after a second means it. */
static void ask_watched(int signal_number) {
  static time_t first_s;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (!is_asked) first_s = now.tv_sec;
  is_asked = 1;
  if (now.tv_sec - first_s < 2) return;
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

static void on_interrupt(int signal_number) {
  if (current->is_watched) {
    ask_watched(signal_number);
    return;
  }
  signal(signal_number, SIG_DFL);
  is_asked = 1;
  int events = LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT;
  lua_sethook(current->L, stop_hook, events, 1);
}

/* New coroutines inherit the hook, which a signal handler could not give them. */
void interrupt_begin(struct interrupt *i, lua_State *L, bool is_watched) {
  *i = (struct interrupt){.outer = current, .L = L, .is_watched = is_watched};
  is_asked = 0;
  if (is_watched) lua_sethook(L, watch_hook, LUA_MASKCOUNT, EVERY);
  current = i;
  i->before = signal(SIGINT, on_interrupt);
}

void interrupt_end(struct interrupt *i) {
  signal(SIGINT, i->outer ? on_interrupt : i->before);
  current = i->outer;
  is_asked = 0;
  const bool goes_on = i->outer && i->outer->is_watched;
  lua_sethook(i->L, goes_on ? watch_hook : NULL, goes_on ? LUA_MASKCOUNT : 0, EVERY);
}

bool interrupt_is_watched(void) {
  return current && current->is_watched;
}

bool interrupt_is_asked(void) {
  return is_asked;
}
