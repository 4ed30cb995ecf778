#include "host/cuda/cache.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file is this, the symbol, the image. */
struct head {
  char magic[8];
  uint64_t symbol_bytes, image_bytes, checksum;
};

static const char MAGIC[8] = "nclua-k1";
enum { MOST_BYTES = 1 << 28 };

/* FNV-1a, 64 bits (Fowler, Noll, Vo). The NUL goes in too: "ab", "c" is not "a", "bc". */
static uint64_t hash(uint64_t h, const void *data, size_t bytes) {
  const unsigned char *at = data;
  for (size_t i = 0; i < bytes; i++) h = (h ^ at[i]) * 0x100000001b3;
  return h;
}

static uint64_t hash_text(uint64_t h, const char *text) {
  return text ? hash(h, text, strlen(text) + 1) : hash(h, "\1", 2);
}

static uint64_t hash_source(uint64_t h, const struct nvrtc_source *source) {
  h = hash_text(h, source->text);
  h = hash_text(h, source->kernel);
  for (int i = 0; i < source->headers; i++) {
    h = hash_text(hash_text(h, source->header_names[i]), source->header_texts[i]);
  }
  for (int i = 0; i < source->option_count; i++) h = hash_text(h, source->options[i]);
  return h;
}

static int folder(char *path, size_t size) {
  const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int used = -1;
  if (base && base[0] == '/') {
    used = snprintf(path, size, "%s/nclua", base);
  } else if (home && home[0] == '/') {
    used = snprintf(path, size, "%s/.cache/nclua", home);
  }
  return used > 0 && (size_t)used < size ? 0 : -1;
}

/* Two 64-bit hashes with different seeds: 128 bits, so that a collision is out of reach. */
static int file_name(const struct nvrtc_source *source, char *path, size_t size) {
  char base[PATH_MAX];
  if (folder(base, sizeof base)) return -1;
  int used = snprintf(path,
                      size,
                      "%s/%016llx%016llx-sm_%d",
                      base,
                      (unsigned long long)hash_source(0xcbf29ce484222325, source),
                      (unsigned long long)hash_source(0x84222325cbf29ce4, source),
                      source->arch);
  return used > 0 && (size_t)used < size ? 0 : -1;
}

static uint64_t checksum(const struct compiled *c, size_t symbol_bytes) {
  uint64_t h = hash(0xcbf29ce484222325, c->symbol, symbol_bytes);
  return hash(h, c->image, c->bytes);
}

static int read_parts(FILE *file, const struct head *head, struct compiled *out) {
  out->symbol = malloc(head->symbol_bytes + 1);
  out->image = malloc(head->image_bytes);
  out->bytes = head->image_bytes;
  if (!out->symbol || !out->image) return -1;
  out->symbol[head->symbol_bytes] = '\0';
  if (fread(out->symbol, 1, head->symbol_bytes, file) != head->symbol_bytes) return -1;
  if (fread(out->image, 1, out->bytes, file) != out->bytes) return -1;
  return checksum(out, head->symbol_bytes) == head->checksum ? 0 : -1;
}

int cache_load(const struct nvrtc_source *source, struct compiled *out) {
  char path[PATH_MAX];
  struct head head;
  if (file_name(source, path, sizeof path)) return -1;
  FILE *file = fopen(path, "rbe");
  if (!file) return -1;
  *out = (struct compiled){0};
  int rc = -1;
  if (fread(&head, sizeof head, 1, file) == 1 &&
      memcmp(head.magic, MAGIC, sizeof MAGIC) == 0 && head.symbol_bytes < MOST_BYTES &&
      head.image_bytes && head.image_bytes < MOST_BYTES) {
    rc = read_parts(file, &head, out);
  }
  fclose(file);
  if (rc == 0) return 0;
  free(out->symbol);
  free(out->image);
  *out = (struct compiled){0};
  return -1;
}

/* mkdir -p of the folder that `path` lies in. */
static void make_folders(char *path) {
  for (char *at = path + 1; (at = strchr(at, '/')); at++) {
    *at = '\0';
    mkdir(path, 0755); /* a failure shows when the file is opened */
    *at = '/';
  }
}

static int write_parts(FILE *file, const struct compiled *made) {
  const char *symbol = made->symbol ? made->symbol : "";
  struct head head = {.symbol_bytes = strlen(symbol), .image_bytes = made->bytes};
  memcpy(head.magic, MAGIC, sizeof MAGIC);
  head.checksum = checksum(made, head.symbol_bytes);
  if (fwrite(&head, sizeof head, 1, file) != 1) return -1;
  if (fwrite(symbol, 1, head.symbol_bytes, file) != head.symbol_bytes) return -1;
  return fwrite(made->image, 1, made->bytes, file) == made->bytes ? 0 : -1;
}

void cache_store(const struct nvrtc_source *source, const struct compiled *made) {
  char path[PATH_MAX - 8], temporary[PATH_MAX];
  if (file_name(source, path, sizeof path)) return;
  make_folders(path);
  snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
  int fd = mkstemp(temporary);
  if (fd < 0) return;
  FILE *file = fdopen(fd, "wb");
  int rc = file ? write_parts(file, made) : -1;
  if (file ? fclose(file) : close(fd)) rc = -1;
  if (rc || rename(temporary, path)) unlink(temporary); /* ranks may store at once */
}
