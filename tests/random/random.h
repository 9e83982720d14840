/* random.h: random graphs, and what is expected of them.
 *
 *     grow.c, grow_free.c, grow_rows.c, grow_flow.c   a graph from a seed
 *     spread.c     the definition of every value, and how far from it rounding may carry one
 *     world.c      the devices; a graph run on one of them
 *     check.c      all that is asked of a graph
 *     apart.c      the same in a process of its own
 *     shrink.c     the smallest graph that still fails
 *     main.c       the command */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include "base/str.h"
#include "inspect/selftest/selftest.h"
#include "ir/text/text.h"
#include "rlx/rlx.h"

/* ---- dice ---- */

struct dice {
    uint64_t state;
};
static inline uint32_t dice_next(struct dice *d)
{
    uint64_t z = d->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(z >> 32);
}
/* 0 .. n-1; n >= 1. */
static inline int64_t dice_below(struct dice *d, int64_t n)
{
    return (int64_t)(((uint64_t)dice_next(d) * (uint64_t)n) >> 32);
}
static inline bool dice_percent(struct dice *d, int64_t percent)
{
    return dice_below(d, 100) < percent;
}
/* In [-1, 1). */
static inline double dice_unit(struct dice *d)
{
    return (double)dice_next(d) * 0x1p-31 - 1;
}

/* ---- values ---- */

/* What a leaf holds follows from its name, "valid_7_x3": the kind of selftest.h, its number, and
 * which leaf it is. So a graph's text is enough to run it again. */
void leaf_name(const struct value_spec *spec, int64_t number, char out[48]);
struct value_spec leaf_spec(rlx_str name);

/* Every value of a graph by its definition, and the same several times over with every result moved
 * by what its device may be off: where these lie, a device's value may lie. */
struct spread {
    struct ir_graph *graph;
    struct arena arena;
    struct dice dice;
    enum value_profile profile;
    uint64_t seed; /* of the leaves' values */
    int samples;
    double reach;               /* what devices are allowed, times this */
    struct eval_tensor *center; /* by node */
    struct eval_tensor **moved; /* by sample, then by node */
    size_t done, room;          /* nodes that have values */
    struct diag diag;
};
void spread_init(struct spread *s, struct ir_graph *g, enum value_profile profile, uint64_t seed,
                 int samples, double reach);
void spread_free(struct spread *s);
/* Of all nodes that have none yet. */
rlx_status spread_go_on(struct spread *s);
/* Forget the nodes from v on. */
void spread_back(struct spread *s, size_t v);
/* One value as a device has it. Answers whether it may; else `message` says what is wrong. */
bool spread_allows(const struct spread *s, ir_value v, const struct eval_tensor *got, bool flushes,
                   char *message, size_t room);
/* How far the samples lie apart, as a part of the largest value. Infinite: not all are finite. */
double spread_width(const struct spread *s, ir_value v);

/* What the tolerance of a node goes by besides its value, where it does (selftest.h: abs_want). */
rlx_status node_sizes(const struct ir_graph *g, const struct ir_node *n,
                      const struct eval_tensor *const *in, struct eval_tensor *out, bool *has,
                      struct arena *a, struct diag *d);

/* About the distance between neighbouring values at v. */
double unit_at(rlx_dtype t, double v);
/* An op of many steps, which may be at odds with its operands: a norm of numbers that are nearly
 * equal makes much of little. */
bool node_is_composite(const struct ir_node *n);
/* x with every float moved in its last bits: by up to four times that. */
rlx_status moved_operand(struct arena *a, const struct eval_tensor *x, struct dice *dice,
                         const struct eval_tensor **out, struct diag *d);

/* ---- graphs ---- */

struct grown {
    struct ir_module *mod;
    enum value_profile profile;
    uint64_t values; /* the seed of its values */
};
rlx_status grow(uint64_t seed, struct grown *out, struct diag *d);

/* All graphs from number `keep` on. */
void module_drop_graphs(struct ir_module *m, size_t keep);
/* Why no graph has that op; NULL: some have. */
const char *left_out(rlx_op op);

/* ---- the world ---- */

enum { MOST_DEVICES = 8, MOST_OUTPUTS = 64 };
struct world {
    rlx_context *one, *several; /* threads */
    rlx_device *cpu, *cpu_several;
    rlx_device *level[MOST_DEVICES];
    size_t levels;
    rlx_device *gpu[2];
    size_t gpus;
    const char *apart; /* the GPUs to open in processes of their own; NULL: all in this one */
};
/* gpus: a list such as "vulkan,webgpu"; what is not there is left out. */
bool world_open(struct world *w, const char *gpus, rlx_error *err);
void world_close(struct world *w);

/* ---- checks ---- */

enum check {
    CHECK_NONE,
#define CHECK(name, what) CHECK_##name,
#include "checks.def"
    CHECK_COUNT
};
const char *check_what(enum check c);

struct outcome {
    enum check failed; /* CHECK_NONE: all is well */
    char message[700];
    long tried[CHECK_COUNT], skipped[CHECK_COUNT];
};
struct question {
    const char *text; /* of the graph */
    enum value_profile profile;
    uint64_t values, choices; /* seeds: of the leaves, of options */
    uint64_t checks;          /* bits: which are made */
};
void ask(struct world *w, const struct question *q, struct outcome *out);
/* The same in a process of its own: what crashes there is CHECK_crash. */
void ask_apart(const char *gpus, const struct question *q, struct outcome *out);

/* ---- shrinking ---- */

/* The text of a graph without what no output needs; to be freed. */
char *without_dead(const struct ir_module *m);

/* The text of the smallest graph found that fails the same check; to be freed. */
char *shrink(struct world *w, const struct question *q, enum check failed, struct outcome *last);

#endif
