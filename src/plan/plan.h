/* plan.h: where every byte lives, decided before the run.
 *
 * plan_build walks the steps for lifetimes, lets outputs take over inputs that die (in place), and
 * places every root of the activation arena so that no two that live at the same time overlap.
 * The other regions are laid out one value after the other. Where a region is larger than a buffer
 * of the device may be, it is cut into several, and nothing lies across a cut. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "base/str.h"
#include "plan/steps.h"

/* ---- the bare problem: intervals and sizes (assign.c, search.c) ---- */

struct plan_item {
    uint64_t size;
    int32_t birth, death; /* closed: it lives at both */
};

struct plan_problem {
    const struct plan_item *item;
    size_t count;
    uint64_t align;    /* of every offset; a power of two, or 1 */
    uint64_t capacity; /* stop as soon as it fits in this; 0: stop at the lower bound only */
    uint64_t budget;   /* of effort, one of these or any number; 0: PLAN_BUDGET_DEFAULT */
    uint64_t segment; /* no item across a multiple of this, greedy only (segments.h); 0: anywhere */
};

/* Effort is counted in buffers looked at, a few nanoseconds each. It is spent only where the first
 * greedy orders miss the goal. Equal problems and budgets give equal results.
 *   DEFAULT   within a compile: up to some tens of milliseconds
 *   THOROUGH  when asked to make it fit: up to ten seconds or so
 *   NONE      greedy only */
#define PLAN_BUDGET_DEFAULT (UINT64_C(4) << 20)
#define PLAN_BUDGET_THOROUGH (UINT64_C(4) << 30)
#define PLAN_BUDGET_NONE UINT64_MAX

struct plan_fit {
    uint64_t *offset;     /* one per item, in the arena given */
    uint64_t arena;       /* bytes, up to alignment */
    uint64_t lower_bound; /* no plan can be smaller */
    uint64_t unshared;    /* if nothing were shared */
    int32_t peak;         /* a position at which lower_bound bytes are live */
    const char *method;   /* which ordering or search found it: "size", "area", "lifetime", "birth",
                           * "lifted", "search"; NULL if there was nothing to place */
    uint64_t nodes;       /* of the exact search; 0: it was not needed */
};
rlx_status plan_assign(const struct plan_problem *p, struct arena *arena, struct plan_fit *out,
                       struct diag *d);

/* ---- a program's plan (plan.c) ---- */

#define PLAN_ALIGN 64

struct plan_options {
    uint64_t align; /* of every slot, a power of two; 0: PLAN_ALIGN */
    bool no_reuse;  /* every root has its own bytes; nothing is done in place */
    bool no_in_place;
    bool check_plan;     /* run the checks of plan_check afterwards */
    uint64_t budget;     /* as in plan_problem */
    uint64_t max_buffer; /* bytes of one buffer: larger regions are cut (segments.h); 0: no limit */
    /* Offsets of an earlier plan, taken over where they fit these very steps; NULL: none. */
    const struct plan_saved *saved;
};

/* A plan as a file has it: steps (works are NULL) with the offsets of their values. Nothing in it
 * is trusted: see saved.c. */
struct plan_saved {
    const struct steps *steps;
    uint64_t size[REGION_COUNT];
    uint64_t align;
    uint64_t max_buffer; /* that it was planned for */
};

struct plan {
    const struct steps *steps;   /* whose values now have offsets */
    uint64_t size[REGION_COUNT]; /* where each region ends */
    /* Bytes of memory taken, for display. Less than size where a region is cut up. For weights and
     * states all of them, and for outside the copies of weights, as their owner reports. */
    uint64_t held[REGION_COUNT];
    uint64_t align;
    uint64_t segment; /* activations and constants are cut at its multiples; 0: not at all */
    uint64_t lower_bound, unshared; /* of the activation region */
    int32_t peak;
    const char *method;
    uint32_t in_place; /* outputs that took over an input's slot */
    bool restored;     /* the offsets are those of plan_options.saved */
    char misfit[120];  /* why they were not; "" if there were none */
};

rlx_status plan_build(struct steps *s, const struct plan_options *o, struct arena *arena,
                      struct plan **out, struct diag *d);
/* Every rule a plan must keep; the first broken one is INTERNAL with the pair named. */
rlx_status plan_check(const struct plan *p, struct arena *scratch, struct diag *d);

/* ---- for people (print.c, svg.c, csv.c) ---- */

/* name(user, node) gives what to call a node ("" if nothing better than its id). */
typedef rlx_str (*plan_name)(void *user, int32_t node);
void plan_print(const struct plan *p, plan_name name, void *user, struct text *out);
void plan_print_json(const struct plan *p, plan_name name, void *user, struct text *out);
void plan_draw(const struct plan *p, plan_name name, void *user, struct text *out); /* SVG */

/* MiniMalloc CSV: a header naming id, lower, upper, size in any order; lifetime [lower, upper). */
struct plan_csv {
    struct plan_item *item;
    rlx_str *id;
    size_t count;
};
rlx_status plan_csv_read(rlx_str text, struct arena *arena, struct plan_csv *out, struct diag *d);
/* A bare problem as a plan, so that it can be printed and drawn like one. */
rlx_status plan_from_fit(const struct plan_item *item, size_t count, const struct plan_fit *fit,
                         struct arena *arena, struct plan **out, struct diag *d);

#endif
