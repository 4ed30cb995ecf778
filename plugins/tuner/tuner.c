#include "plugins/tuner/abi.h"
#include "plugins/tuner/observe.h"
#include "plugins/tuner/rules.h"
#include "plugins/tuner/steer.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* A communicator's side: what NCCL said when it made it. */
struct tuner {
  int64_t ranks, nodes;
};

/* A live choice in one word, so that it is read whole: channels, protocol + 1,
   algorithm + 1; 0 is none, KEPT_LIVE means NCCL's own. */
enum { KEPT_LIVE = 0xff };
static _Atomic uint32_t live[ABI_FUNCTIONS];
static _Atomic uint64_t calls, forced, unavailable;

/* The configuration is the process's: read once, by the first communicator. */
static pthread_once_t configured = PTHREAD_ONCE_INIT;
static struct rules rules;
static bool is_observing;
static abi_logger logger;

static void say(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(int level, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (logger)
    logger(level, ABI_TUNING, __FILE__, __LINE__, "nclua tuner: %s", text);
  else
    fprintf(stderr, "nclua tuner: %s\n", text);
}

static const char *setting(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

/* A mistake in the configuration is said and leaves NCCL's choices alone: this may run
   inside somebody's training job. */
static void configure(void) {
  char why[512];
  const char *force = setting("NCLUA_TUNER_FORCE");
  const char *table = setting("NCLUA_TUNER_RULES");
  const char *file = setting("NCLUA_TUNER_OBSERVE");
  if (!table) table = setting("NCCL_TUNER_CONFIG_FILE");
  int rc = 0;
  if (force)
    rc = rules_parse_force(&rules, force, why, sizeof why);
  else if (table)
    rc = rules_read(&rules, table, why, sizeof why);
  if (rc)
    say(ABI_WARN, "no override: %s", why);
  else if (rules.count)
    say(ABI_INFO, "%zu rules", rules.count);
  if (file && observe_open(file, why, sizeof why))
    say(ABI_WARN, "not observing: %s", why);
  else if (file)
    is_observing = true;
}

static int start(size_t ranks, size_t nodes, abi_logger log_function, void **context) {
  struct tuner *t = malloc(sizeof *t);
  logger = log_function;
  pthread_once(&configured, configure);
  *context = t; /* NULL is dealt with: a tuner without memory keeps NCCL's choices */
  if (t) *t = (struct tuner){.ranks = (int64_t)ranks, .nodes = (int64_t)nodes};
  return ABI_SUCCESS;
}

static int start_v5(void **context, uint64_t comm_id, size_t ranks, size_t nodes,
                    abi_logger log_function, void *nvl_domain, void *constants) {
  (void)comm_id;
  (void)nvl_domain;
  (void)constants;
  return start(ranks, nodes, log_function, context);
}

static int stop(void *context) {
  if (is_observing) observe_flush();
  free(context);
  return ABI_SUCCESS;
}

static bool find_live(int func, struct rule *out) {
  uint32_t word = atomic_load_explicit(&live[func], memory_order_acquire);
  if (!word) return false;
  *out = (struct rule){.algorithm = (int)(word & 0xff) - 1,
                       .protocol = (int)(word >> 8 & 0xff) - 1,
                       .channels = (int)(word >> 16)};
  return true;
}

static bool is_available(const struct rule *r, const float *table, int algorithms,
                         int protocols) {
  return r->algorithm < algorithms && r->protocol < protocols &&
         table[r->algorithm * protocols + r->protocol] >= 0;
}

/* The live choice; else the first rule that matches and whose cell is available. */
static enum outcome decide(const struct call *call, const float *table, int algorithms,
                           int protocols, struct rule *out) {
  if (find_live(call->func, out)) {
    if (out->algorithm + 1 == KEPT_LIVE) return KEPT;
    return is_available(out, table, algorithms, protocols) ? FORCED : UNAVAILABLE;
  }
  enum outcome outcome = KEPT;
  for (size_t i = 0; i < rules.count; i++) {
    if (!rules_match(&rules.rows[i], call)) continue;
    *out = rules.rows[i];
    if (is_available(out, table, algorithms, protocols)) return FORCED;
    outcome = UNAVAILABLE;
  }
  return outcome;
}

static void find_cheapest(const float *table, int algorithms, int protocols,
                          struct observation *o) {
  float best = -1;
  o->algorithm = o->protocol = -1;
  for (int i = 0; i < algorithms * protocols; i++) {
    if (table[i] < 0 || (best >= 0 && table[i] >= best)) continue;
    best = table[i];
    o->algorithm = i / protocols;
    o->protocol = i % protocols;
  }
}

static void observe(const struct call *call, const float *before, const float *after,
                    int algorithms, int channels, enum outcome outcome) {
  struct observation o = {
    .call = *call, .algorithms = algorithms, .channels = channels, .outcome = outcome};
  for (int i = 0; i < algorithms * ABI_PROTOCOLS; i++) o.costs[i] = before[i];
  find_cheapest(after, algorithms, ABI_PROTOCOLS, &o);
  observe_call(&o);
}

static void tune(const struct call *call, float *table, int algorithms, int protocols,
                 int *channels) {
  float before[ABI_MAX_ALGORITHMS * ABI_PROTOCOLS];
  struct rule rule;
  for (int i = 0; i < algorithms * protocols; i++) before[i] = table[i];
  enum outcome outcome = decide(call, table, algorithms, protocols, &rule);
  if (outcome == FORCED) {
    table[rule.algorithm * protocols + rule.protocol] = 0; /* cheaper than all others */
    if (rule.channels > 0) *channels = rule.channels;
    atomic_fetch_add_explicit(&forced, 1, memory_order_relaxed);
  } else if (outcome == UNAVAILABLE) {
    atomic_fetch_add_explicit(&unavailable, 1, memory_order_relaxed);
  }
  if (is_observing) observe(call, before, table, algorithms, *channels, outcome);
}

static int advise_v4(void *context, int func, size_t bytes, int ops, float **table,
                     int algorithms, int protocols, int registered, int *channels) {
  const struct tuner *t = context;
  atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
  if (!t || func < 0 || func >= ABI_FUNCTIONS || protocols != ABI_PROTOCOLS ||
      algorithms > ABI_MAX_ALGORITHMS) {
    return ABI_SUCCESS; /* a future NCCL: an error here would fail the collective */
  }
  struct call call = {.func = func,
                      .bytes = bytes,
                      .nodes = t->nodes,
                      .ranks = t->ranks,
                      .ops = ops,
                      .registered = registered};
  tune(&call, (float *)table, algorithms, protocols, channels);
  return ABI_SUCCESS;
}

static int advise_v3(void *context, int func, size_t bytes, int ops, float **table,
                     int algorithms, int protocols, int *channels) {
  return advise_v4(context, func, bytes, ops, table, algorithms, protocols, ANY, channels);
}

/* Version 2 has no table: nothing to observe, and a choice may prove to be unavailable. */
static int advise_v2(void *context, int func, size_t bytes, int coll_net, int nvls, int ops,
                     int *algorithm, int *protocol, int *channels) {
  (void)coll_net;
  (void)nvls;
  float table[ABI_MAX_ALGORITHMS * ABI_PROTOCOLS];
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) table[i] = 1;
  int rc = advise_v4(context,
                     func,
                     bytes,
                     ops,
                     (float **)(void *)table,
                     ABI_MAX_ALGORITHMS,
                     ABI_PROTOCOLS,
                     ANY,
                     channels);
  for (int i = 0; i < ABI_MAX_ALGORITHMS * ABI_PROTOCOLS; i++) {
    if (table[i] > 0) continue;
    *algorithm = i / ABI_PROTOCOLS;
    *protocol = i % ABI_PROTOCOLS;
  }
  return rc;
}

static uint32_t pack(int algorithm, int protocol, int channels) {
  if (algorithm == STEER_RELEASE) return 0;
  if (algorithm == STEER_KEEP) return KEPT_LIVE;
  return (uint32_t)(channels << 16) | (uint32_t)(protocol + 1) << 8 |
         (uint32_t)(algorithm + 1);
}

int nclua_tuner_force(int func, int algorithm, int protocol, int channels) {
  bool is_range = func >= -1 && func < ABI_FUNCTIONS && algorithm >= STEER_KEEP &&
                  algorithm < ABI_MAX_ALGORITHMS;
  if (!is_range || channels < 0 || channels > 1024) return -1;
  if (algorithm >= 0 && (protocol < 0 || protocol >= ABI_PROTOCOLS)) return -1;
  uint32_t word = pack(algorithm, protocol, channels);
  for (int f = 0; f < ABI_FUNCTIONS; f++) {
    if (func < 0 || func == f) atomic_store_explicit(&live[f], word, memory_order_release);
  }
  return 0;
}

void nclua_tuner_report(struct steer_report *out) {
  *out = (struct steer_report){.calls = atomic_load(&calls),
                               .forced = atomic_load(&forced),
                               .unavailable = atomic_load(&unavailable)};
}

void nclua_tuner_flush(void) {
  if (is_observing) observe_flush();
}

#define NAME "nclua"

STEER_EXPORT extern const struct abi_v2 ncclTunerPlugin_v2;
STEER_EXPORT extern const struct abi_v3 ncclTunerPlugin_v3;
STEER_EXPORT extern const struct abi_v4 ncclTunerPlugin_v4;
STEER_EXPORT extern const struct abi_v5 ncclTunerPlugin_v5;
STEER_EXPORT extern const struct abi_v6 ncclTunerPlugin_v6;

const struct abi_v2 ncclTunerPlugin_v2 = {NAME, start, advise_v2, stop};
const struct abi_v3 ncclTunerPlugin_v3 = {NAME, start, advise_v3, stop};
const struct abi_v4 ncclTunerPlugin_v4 = {NAME, start, advise_v4, stop};
const struct abi_v5 ncclTunerPlugin_v5 = {NAME, start_v5, advise_v4, stop};
const struct abi_v6 ncclTunerPlugin_v6 = {{NAME, start_v5, advise_v4, stop}, NULL};
