/* sub_graph.h: graphs of gradients, for the ops that run graphs. */
#ifndef AUTODIFF_SUB_GRAPH_H
#define AUTODIFF_SUB_GRAPH_H

#include "autodiff/autodiff.h"

/* One more input of a sub-graph, by a name that is free. */
rlx_status sub_input(struct ir_graph *g, rlx_dtype dtype, rlx_list shape, ir_value *out,
                     struct diag *d);

/* Which gradients of a sub-graph are wanted. */
struct grad_sub {
    struct ir_graph *of;
    const bool *given;  /* by output: its gradient is given */
    const bool *wanted; /* by input: its gradient is wanted; integers are left out */
    bool all;           /* one output per input: zeros where the gradient is not wanted */
};

/* Whether it can be built. NO_RULE, naming the op in the way, if not. */
rlx_status grad_sub_check(const struct grad_sub *s, struct diag *d);
/* Built, as another graph of the same module. Its inputs are those of s->of and then the gradients
 * that are given; its outputs, in the order of the inputs, the gradients that are wanted. Inputs
 * that no gradient flows to get zeros. */
rlx_status grad_sub_build(const struct grad_sub *s, int32_t *id, struct diag *d);

#endif
