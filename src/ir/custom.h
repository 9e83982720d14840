/* custom.h: the ops a program registers with its context. */
#ifndef IR_CUSTOM_H
#define IR_CUSTOM_H

#include "ir/graph.h"
#include "rlx/custom.h"

#define CUSTOM_RESULTS 8   /* of one op, at most */
#define CUSTOM_MESSAGE 256 /* bytes for what infer has to say */

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
int32_t custom_results(const rlx_custom_op *op);

/* A static type as the registered op sees it, without data; false: it is too large. */
bool custom_tensor(const struct ir_type *t, rlx_tensor *out);
/* The types of all results, for static operands: CUSTOM_RESULTS of them, without data. */
rlx_status custom_infer(const rlx_custom_op *op, const rlx_tensor *in, int32_t in_count,
                        const struct ir_blob *attrs, rlx_tensor *out, struct diag *d);
/* What one of its functions returned, if that is not success: with a sentence of its own where it
 * has one, and ARGUMENT where it is not a status at all. */
rlx_status custom_failed(const rlx_custom_op *op, const char *function, rlx_status s,
                         const char *message, struct diag *d);

#endif
