/* search.h: what assign.c asks of the exact search (search.c). */
#ifndef PLAN_SEARCH_H
#define PLAN_SEARCH_H

#include "plan/plan.h"

struct search {
    const struct plan_item *box; /* sizes above zero, all multiples of grain */
    uint32_t count;
    uint64_t goal;   /* a height that is low enough to stop. At least the lower bound, below
                      * height */
    uint64_t grain;  /* heights worth telling apart */
    uint64_t budget; /* boxes to look at */
    /* In: the best stacking so far; out: a better one if it was found. */
    uint64_t *offset, height;
    uint64_t nodes, effort; /* out: placements and refusals tried, boxes looked at */
};

/* Above this many pairs of a box and a section it lives through, there is no search. */
#define SEARCH_MEMBERS_MAX (UINT64_C(1) << 22)

rlx_status search_run(struct search *s, struct arena *arena, struct diag *d);

#endif
