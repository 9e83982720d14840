/* autodiff.h: gradients. A rule says for one node how the gradient of its value reaches its
 * operands (ops-core.md 1.10); the walk carries a gradient from one value back to others.
 *
 * All of it appends ordinary nodes to the graph. A gradient has the type of what it belongs to;
 * RLX_NO_VALUE stands for one that is zero because nothing flows. */
#ifndef AUTODIFF_AUTODIFF_H
#define AUTODIFF_AUTODIFF_H

#include "ir/graph.h"

/* How a node of g is differentiated. */
enum grad_way {
    GRAD_STOPS,   /* nothing flows through it */
    GRAD_RULE,    /* by its family's rule */
    GRAD_EXPANDS, /* by the rules of the simpler ops it stands for */
    GRAD_MISSING  /* not at all: NO_RULE */
};
enum grad_way grad_way(const struct ir_graph *g, const struct ir_node *n);
/* Does the op have a rule, or do all ops it stands for? For the table of `rlx ops`. */
bool grad_has_rule(rlx_op op);

/* The node in the simpler ops that it stands for, after all others, where that can be. */
bool grad_can_expand(const struct ir_graph *g, const struct ir_node *n);
rlx_status grad_expand(struct ir_graph *g, ir_value node, ir_value *out, struct diag *d);

/* The gradients of one node's operands: dy is that of its value. wanted[i]: operand i's is wanted;
 * dx[i] is the result. Integers have none, except that the i8 between quantised ops have one in
 * f32: dx of dequantize is that of its operand, and the dy of quantize. */
rlx_status grad_node(struct ir_graph *g, ir_value node, ir_value dy, const bool *wanted,
                     ir_value *dx, struct diag *d);

/* From `out`, whose gradient is dy, back to wrt[]; nodes before `floor` are not looked into, so
 * that wrt may lie before it. Contributions to one value are added in the order of the walk:
 * consumers from the last to the first, operands from the first. NO_RULE is found before anything
 * is added. */
rlx_status grad_walk(struct ir_graph *g, ir_value floor, ir_value out, ir_value dy,
                     const ir_value *wrt, size_t count, ir_value *dx, struct diag *d);
/* The same from several values; there is at least one. */
rlx_status grad_walk_all(struct ir_graph *g, ir_value floor, const ir_value *out,
                         const ir_value *dy, size_t out_count, const ir_value *wrt, size_t count,
                         ir_value *dx, struct diag *d);

/* forward.c: how of[] change while each wrt[i] moves along tangent[i], which has its type. out[i]
 * is RLX_NO_VALUE where of[i] stays. */
rlx_status grad_push(struct ir_graph *g, const ir_value *of, size_t of_count, const ir_value *wrt,
                     const ir_value *tangent, size_t count, ir_value *out, struct diag *d);

/* batch.c: of[] once for each of `size` examples: batched[i] stands for wrt[i], with an axis of the
 * examples in front; so has out[k] for of[k]. */
rlx_status grad_batch(struct ir_graph *g, const ir_value *of, size_t of_count, const ir_value *wrt,
                      const ir_value *batched, size_t count, ir_dim size, ir_value *out,
                      struct diag *d);

/* Asked before anything is built, of a whole graph: which of out[] may depend on wrt[], and is
 * there a rule everywhere in between? */
rlx_status grad_flows(struct ir_graph *g, const ir_value *out, size_t out_count,
                      const ir_value *wrt, size_t count, bool *flows, struct diag *d);
rlx_status grad_check(struct ir_graph *g, const ir_value *out, size_t out_count,
                      const ir_value *wrt, size_t count, struct diag *d);

#endif
