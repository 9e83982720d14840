/* custom.h: the ops a program registers with its context. */
#ifndef IR_CUSTOM_H
#define IR_CUSTOM_H

#include "ir/graph.h"

struct ir_customs {
    const rlx_custom_op *op; /* names and strings live as long as this */
    size_t count;
    /* Calls op->vjp for node n of g, which a caller's builders then add to; from above, as graphs
     * that callers see are not known here. NULL: there are no callers. */
    rlx_status (*vjp)(void *owner, const rlx_custom_op *op, struct ir_graph *g,
                      const struct ir_node *n, ir_value y, ir_value dy, ir_value *dx,
                      struct diag *d);
    void *owner;
};

const rlx_custom_op *custom_find(const struct ir_customs *c, rlx_str name); /* NULL: none */

#endif
