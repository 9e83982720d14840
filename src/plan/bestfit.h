/* bestfit.h: place boxes one by one in a given order, each in the tightest gap (bestfit.c). */
#ifndef PLAN_BESTFIT_H
#define PLAN_BESTFIT_H

#include "plan/plan.h"

/* Time is cut into 64 lanes, these joined by four into 16, those into 4, those into one: a box is
 * compared with the boxes of the narrowest lane that holds its whole life. */
enum { BESTFIT_LEVELS = 3, BESTFIT_LANES = 1 + 8 + 64 };

struct bestfit {
    const struct plan_item *box; /* sizes above zero */
    uint32_t count;
    uint64_t segment;      /* no box across a multiple of this; 0: anywhere */
    uint8_t *first, *last; /* of the 64 lanes: where a box is born, where it dies */
    uint64_t *offset;      /* what bestfit_place found */
    struct bestfit_lane {
        uint32_t *placed; /* boxes that live in it, by offset */
        uint32_t count;
    } lane[BESTFIT_LANES];
    uint64_t effort; /* boxes looked at */
};
rlx_status bestfit_init(struct bestfit *f, const struct plan_item *box, uint32_t count,
                        struct arena *arena, struct diag *d);
/* Place all boxes in this order; the height of the result. */
uint64_t bestfit_place(struct bestfit *f, const uint32_t *order);

#endif
