#ifndef BINDINGS_FRAME_H
#define BINDINGS_FRAME_H

/* Lua values as bytes between the processes of one world (same program, same machine):
   numbers in their own binary form, so that nothing is rounded. A frame is a kind and some
   values. */

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

enum frame_kind { FRAME_ROW, FRAME_CHECK, FRAME_ERROR, FRAME_FINISHED, FRAME_KINDS };

/* Frames that wait to be sent: those before `ready` are whole. */
struct frame_buffer {
  char *data; /* malloc'ed, the owner's to free */
  size_t ready, used, room;
};

/* Appends a frame of the values at stack indices first..last: nil, booleans, numbers,
   strings, and tables of these. Raises for others, "WHAT: ...", leaving no half frame. */
void frame_append(lua_State *L, struct frame_buffer *b, enum frame_kind kind, int first,
                  int last, const char *what);

/* Pushes the values of a frame (without its length) and returns their number, or -1 if it
   is damaged. */
int frame_push(lua_State *L, const char *data, size_t bytes, enum frame_kind *kind);

#endif
