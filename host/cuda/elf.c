#include "host/cuda/elf.h"

#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct view {
  const char *at;
  size_t bytes;
};

/* The part [offset, offset + bytes) of the file, or nothing if the file ends before. */
static struct view part(struct view file, uint64_t offset, uint64_t bytes) {
  if (offset > file.bytes || bytes > file.bytes - offset) return (struct view){0};
  return (struct view){file.at + offset, bytes};
}

static bool section(struct view file, const Elf64_Ehdr *head, unsigned i, Elf64_Shdr *out) {
  struct view v = part(
    file, head->e_shoff + (uint64_t)i * head->e_shentsize, sizeof *out); /* may wrap: part
    checks the sum against the file, so that a wrapped one only finds other bytes */
  if (!v.at) return false;
  memcpy(out, v.at, sizeof *out);
  return true;
}

/* The bytes of section `wanted`. NCCL is 200 MB, its strings are in 0.2 MB of them. */
static struct view section_named(struct view file, const char *wanted) {
  Elf64_Ehdr head;
  Elf64_Shdr names, s;
  struct view v = part(file, 0, sizeof head);
  if (!v.at) return v;
  memcpy(&head, v.at, sizeof head);
  bool is_elf64 =
    memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64;
  if (!is_elf64 || !section(file, &head, head.e_shstrndx, &names)) return (struct view){0};
  struct view table = part(file, names.sh_offset, names.sh_size);
  for (unsigned i = 0; i < head.e_shnum && section(file, &head, i, &s); i++) {
    size_t length = strlen(wanted) + 1;
    struct view name = part(table, s.sh_name, length);
    if (name.at && memcmp(name.at, wanted, length) == 0) {
      return part(file, s.sh_offset, s.sh_size);
    }
  }
  return (struct view){0};
}

static int find_word(struct view v, const char *marker, char *word, size_t size) {
  size_t length = strlen(marker);
  const char *end = v.at ? v.at + v.bytes : NULL;
  for (const char *at = v.at; at && at < end;) {
    at = memmem(at, (size_t)(end - at), marker, length);
    if (!at) return -1;
    at += length;
    if (at == end || !isdigit((unsigned char)*at)) continue;
    size_t used = 0;
    while (at < end && isgraph((unsigned char)*at) && used + 1 < size) word[used++] = *at++;
    word[used] = '\0';
    return 0;
  }
  return -1;
}

int elf_find_version(const char *path, const char *marker, char *word, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat s;
  int rc = -1;
  if (fd < 0) return -1;
  if (fstat(fd, &s) || s.st_size <= 0) goto done;
  struct view file = {.bytes = (size_t)s.st_size};
  void *map = mmap(NULL, file.bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (map == MAP_FAILED) goto done;
  file.at = map;
  rc = find_word(section_named(file, ".rodata"), marker, word, size);
  munmap(map, file.bytes);
done:
  close(fd);
  return rc;
}
