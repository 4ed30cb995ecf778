#include "host/line.h"

#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REMEMBERED = 2000 };

struct line {
  EditLine *editor;
  History *history;
  const char *prompt;
  const struct line_tab *tab;
  char *text;
  bool is_cancelled, has_shown;
};

static struct line *line_of(EditLine *editor) {
  struct line *l = NULL;
  el_get(editor, EL_CLIENTDATA, &l);
  return l;
}

static char *show_prompt(EditLine *editor) {
  return (char *)line_of(editor)->prompt; /* libedit does not write to it */
}

static unsigned char on_tab(EditLine *editor, int key) {
  (void)key;
  struct line *l = line_of(editor);
  const LineInfo *info = el_line(editor);
  if (!l->tab || !l->tab->pressed) return CC_ERROR;
  l->has_shown = false;
  const size_t length = (size_t)(info->cursor - info->buffer);
  l->tab->pressed(l->tab->data, l, info->buffer, length);
  return l->has_shown ? CC_REDISPLAY : CC_REFRESH;
}

static unsigned char on_cancel(EditLine *editor, int key) {
  (void)key;
  line_of(editor)->is_cancelled = true;
  return CC_EOF;
}

static unsigned char on_stop(EditLine *editor, int key) {
  (void)key;
  (void)editor;
  raise(SIGTSTP);
  return CC_REDISPLAY;
}

/* While a line is edited Ctrl-C and Ctrl-Z are keys like others: they raise no signals. */
static void set_keys(EditLine *editor) {
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_ADDFN, "nclua-complete", "complete a name", on_tab);
  el_set(editor, EL_ADDFN, "nclua-cancel", "forget the line", on_cancel);
  el_set(editor, EL_ADDFN, "nclua-stop", "stop the program", on_stop);
  el_set(editor, EL_SETTY, "-d", "-isig", NULL);
  el_set(editor, EL_BIND, "^I", "nclua-complete", NULL);
  el_set(editor, EL_BIND, "^C", "nclua-cancel", NULL);
  el_set(editor, EL_BIND, "^Z", "nclua-stop", NULL);
  el_set(editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
}

static bool open_history(struct line *l) {
  HistEvent event;
  l->history = history_init();
  if (!l->history) return false;
  history(l->history, &event, H_SETSIZE, REMEMBERED);
  history(l->history, &event, H_SETUNIQUE, 1);
  el_set(l->editor, EL_HIST, history, l->history);
  return true;
}

struct line *line_open(struct err *e) {
  setlocale(LC_CTYPE, ""); /* how wide a character is */
  struct line *l = calloc(1, sizeof *l);
  if (!l) goto fail;
  l->editor = el_init("nclua", stdin, stdout, stderr);
  if (!l->editor) goto fail;
  el_set(l->editor, EL_CLIENTDATA, l);
  el_set(l->editor, EL_PROMPT, show_prompt);
  set_keys(l->editor);
  if (!open_history(l)) goto fail;
  el_source(l->editor, NULL); /* ~/.editrc: the user's own keys */
  return l;
fail:
  line_close(l);
  err_set(e, "EIO", "the terminal cannot be used for editing lines");
  return NULL;
}

void line_close(struct line *l) {
  if (!l) return;
  if (l->history) history_end(l->history);
  if (l->editor) el_end(l->editor);
  free(l->text);
  free(l);
}

enum line_end line_read(struct line *l, const char *prompt, const struct line_tab *tab,
                        const char **text) {
  int length = 0;
  l->prompt = prompt;
  l->tab = tab;
  l->is_cancelled = false;
  fflush(stdout);
  const char *line = el_gets(l->editor, &length);
  l->tab = NULL;
  if (!line || length <= 0 || l->is_cancelled) {
    fputc('\n', stdout);
    return l->is_cancelled ? LINE_CANCELLED : LINE_FINISHED;
  }
  free(l->text);
  l->text = strndup(line, (size_t)length);
  if (!l->text) return LINE_CANCELLED;
  const size_t end = strlen(l->text);
  if (end && l->text[end - 1] == '\n') l->text[end - 1] = '\0';
  *text = l->text;
  return LINE_READ;
}

void line_remember(struct line *l, const char *text) {
  HistEvent event;
  if (*text) history(l->history, &event, H_ENTER, text);
}

void line_insert(struct line *l, const char *text) {
  if (*text) el_insertstr(l->editor, text);
}

void line_show(struct line *l, const char *text) {
  printf("\n%s\n", text);
  fflush(stdout);
  l->has_shown = true;
}
