/* saved.h: offsets of an earlier plan (saved.c), and the functions of plan.c that it uses. */
#ifndef PLAN_SAVED_H
#define PLAN_SAVED_H

#include "plan/liveness.h"

/* Takes the saved offsets over if the steps are the saved ones and every rule holds: p->restored
 * is set then, else p->misfit says why. Fails only when out of memory. */
rlx_status plan_restore(struct plan *p, struct steps *s, const struct root *root,
                        const struct plan_options *o, struct arena *scratch, struct diag *d);

void plan_place_views(struct steps *s); /* each view where its root is */

#endif
