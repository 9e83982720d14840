/* liveness.h: which roots need a slot, and from when to when (liveness.c). */
#ifndef PLAN_LIVENESS_H
#define PLAN_LIVENESS_H

#include "plan/plan.h"

struct root {       /* one per value; meaningless where the value is a view */
    uint32_t flags; /* enum value_flags of the root and of all its views */
    int32_t owner;  /* the root whose slot this one is in: itself, or where in-place steps began */
    int32_t until;  /* of an owner: the last position at which anyone lives in its slot */
};

/* Refuses steps that are not well formed: ids out of range, views that leave their root. */
rlx_status liveness_check(const struct steps *s, struct diag *d);
/* Fills birth and death of every value. *out has value_count entries, in the arena. */
rlx_status liveness_find(struct steps *s, struct arena *arena, struct root **out, struct diag *d);
/* Let outputs take over inputs that die: sets shares, owner and until. How many did. */
uint32_t liveness_in_place(struct steps *s, struct root *root);

#endif
