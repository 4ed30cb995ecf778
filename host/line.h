#ifndef HOST_LINE_H
#define HOST_LINE_H

#include "host/err.h"

#include <stddef.h>

/* An editor of lines on the terminal, by libedit. */
struct line;

/* Called when Tab is pressed, with what stands before the cursor. It answers by
   line_insert and line_show. */
struct line_tab {
  void (*pressed)(void *data, struct line *l, const char *text, size_t length);
  void *data;
};

enum line_end {
  LINE_READ,
  LINE_FINISHED, /* Ctrl-D, or the end of the input */
  LINE_CANCELLED /* Ctrl-C */
};

/* NULL with *e filled if the terminal cannot be used. */
struct line *line_open(struct err *e);
void line_close(struct line *l);

/* The text is without its newline, and good until the next call. */
enum line_end line_read(struct line *l, const char *prompt, const struct line_tab *tab,
                        const char **text);

/* Up-arrow finds it. */
void line_remember(struct line *l, const char *text);

/* At the cursor; and on lines of its own, below. */
void line_insert(struct line *l, const char *text);
void line_show(struct line *l, const char *text);

#endif
