#ifndef HOST_ERR_H
#define HOST_ERR_H

/* Why an environment call failed: a stable symbol for programs, a sentence for people. */
struct err {
  const char *code; /* static string: "ENOENT", "ncclSystemError", "SQLITE_BUSY" */
  char text[512];
};

/* Fills *e and returns -1, so that a caller can write: return err_set(e, ...); */
int err_set(struct err *e, const char *code, const char *fmt, ...)
  __attribute__((format(printf, 3, 4)));

/* The same from errno; the text is "what: strerror". Reads errno first. */
int err_errno(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The symbol of an errno value ("ENOENT"), a static string. */
const char *err_symbol(int number);

#endif
