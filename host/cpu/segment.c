#include "host/cpu/segment.h"
#include "host/cpu/wait.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x3267657361756c63ull /* changes when the layout does */
/* Eight of them, twice over, still leave room in a core's second-level cache. */
#define PAGE ((size_t)4096)

/* The process's mappings: where two ranks live in one process they share one, which
   halves the page faults and lets ThreadSanitizer see what they do to each other. */
struct mapping {
  struct mapping *next;
  dev_t device;
  ino_t inode;
  int references;
  size_t bytes;
  struct cpu_segment *segment;
};
static struct mapping *mappings;
static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t header_bytes(int nranks) {
  size_t bytes = sizeof(struct cpu_segment) + (size_t)nranks * sizeof(struct cpu_rank);
  return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* The control words have a page of their own, so that slots are aligned to pages. */
int cpu_segment_channels(enum cpu_link_kind kind) {
  return kind == CPU_LINK_COLLECTIVE ? CPU_CHANNELS : 1;
}

static size_t links_bytes(const struct cpu_buffers *buffers, enum cpu_link_kind kind,
                          int nranks) {
  size_t n = (size_t)nranks, channels = (size_t)cpu_segment_channels(kind);
  return channels * n * n * (PAGE + buffers[kind].bytes);
}

struct cpu_link *cpu_segment_link(struct cpu_segment *segment, enum cpu_link_kind kind,
                                  int channel, int sender, int receiver) {
  const struct cpu_buffers *buffers = segment->buffers;
  size_t n = (size_t)segment->nranks;
  size_t index = ((size_t)channel * n + (size_t)sender) * n + (size_t)receiver;
  char *links = (char *)segment + header_bytes(segment->nranks);
  for (int k = 0; k < (int)kind; k++) links += links_bytes(buffers, k, segment->nranks);
  return (void *)(links + index * (PAGE + buffers[kind].bytes));
}

char *cpu_segment_slots(struct cpu_link *link) {
  return (char *)link + PAGE;
}

static struct mapping *find(const struct stat *file) {
  struct mapping *m = mappings;
  while (m && (m->device != file->st_dev || m->inode != file->st_ino)) m = m->next;
  return m;
}

static struct mapping *map(int fd, const struct stat *file) {
  struct mapping *m = malloc(sizeof *m);
  size_t bytes = (size_t)file->st_size;
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (!m || at == MAP_FAILED) {
    if (at != MAP_FAILED) munmap(at, bytes);
    free(m);
    return NULL;
  }
  *m =
    (struct mapping){mappings, file->st_dev, file->st_ino, .bytes = bytes, .segment = at};
  mappings = m;
  return m;
}

static struct cpu_segment *open_mapping(int fd) {
  struct stat file;
  if (fstat(fd, &file)) return NULL;
  pthread_mutex_lock(&mappings_lock);
  struct mapping *m = find(&file);
  if (!m) m = map(fd, &file);
  if (m) m->references++;
  pthread_mutex_unlock(&mappings_lock);
  return m ? m->segment : NULL;
}

struct cpu_segment *cpu_segment_open(int fd) {
  struct cpu_segment *segment = open_mapping(fd);
  if (!segment || segment->magic == MAGIC) return segment;
  cpu_segment_close(segment); /* made by another build of nclua */
  return NULL;
}

struct cpu_segment *cpu_segment_create(int nranks, int *fd) {
  struct cpu_buffers buffers[CPU_LINK_KINDS];
  size_t bytes = header_bytes(nranks);
  for (int k = 0; k < CPU_LINK_KINDS; k++) {
    buffers[k] = cpu_buffers_plan(k);
    bytes += links_bytes(buffers, k, nranks);
  }
  *fd = memfd_create("nclua", MFD_CLOEXEC);
  if (*fd < 0) return NULL;
  struct cpu_segment *segment = ftruncate(*fd, (off_t)bytes) ? NULL : open_mapping(*fd);
  if (!segment) {
    close(*fd);
    *fd = -1;
    return NULL;
  }
  segment->magic = MAGIC;
  memcpy(segment->buffers, buffers, sizeof buffers);
  segment->nranks = nranks;
  segment->watch_pids = true;
  return segment;
}

void cpu_segment_close(struct cpu_segment *segment) {
  pthread_mutex_lock(&mappings_lock);
  struct mapping **at = &mappings;
  while ((*at)->segment != segment) at = &(*at)->next;
  struct mapping *m = *at;
  if (--m->references == 0) {
    *at = m->next;
    munmap(segment, m->bytes);
    free(m);
  }
  pthread_mutex_unlock(&mappings_lock);
}

void cpu_segment_set_state(struct cpu_segment *segment, int rank,
                           enum cpu_rank_state state) {
  atomic_store(&segment->ranks[rank].state, state);
  for (int r = 0; r < segment->nranks; r++) {
    for (int c = 0; c < CPU_CHANNELS; c++) cpu_bell_ring(&segment->ranks[r].bells[c]);
  }
}

void cpu_segment_note_cores(struct cpu_rank *rank) {
  cpu_set_t set;
  _Static_assert(sizeof set == sizeof rank->cores, "bits of 1024 cores");
  memset(rank->cores, 0, sizeof rank->cores);
  if (!sched_getaffinity(0, sizeof set, &set)) memcpy(rank->cores, &set, sizeof set);
}

int cpu_segment_count_cores(const struct cpu_segment *segment) {
  int count = 0;
  for (size_t i = 0; i < sizeof segment->ranks->cores / sizeof *segment->ranks->cores;
       i++) {
    uint64_t bits = 0;
    for (int r = 0; r < segment->nranks; r++) bits |= segment->ranks[r].cores[i];
    count += __builtin_popcountll(bits);
  }
  return count > 0 ? count : (int)sysconf(_SC_NPROCESSORS_ONLN); /* more than 1024 */
}
