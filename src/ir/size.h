/* size.h: what bind.c and size.c share. */
#ifndef IR_SIZE_H
#define IR_SIZE_H

#include "ir/graph.h"

/* A deferred check, now that both its sides have sizes. */
rlx_status ir_check_fits(const struct ir_check *c, const struct ir_node *n, int64_t a, int64_t b,
                         struct diag *d);

#endif
