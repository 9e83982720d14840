/* batch.h: one node for many examples at once: what a rule is given, and what it gives.
 *
 * The rows BATCH of ops.def say which rule a family has, and which of its operands have the axis of
 * the examples then. Where a rule does not apply, the node is run for one example after another. */
#ifndef AUTODIFF_BATCH_H
#define AUTODIFF_BATCH_H

#include "autodiff/autodiff.h"
#include "ir/formula.h"

struct batch {
    struct formula f;
    struct ir_node *n;    /* as it was for one example: a copy, which a rule may change */
    ir_value node;        /* where that is */
    ir_dim size;          /* how many examples there are */
    const char *operands; /* the names of those that the rule gives the axis to */
    ir_value *in;         /* its operands, with an axis of `size` in front where has[i] */
    bool *has;
};

/* The node for all examples; RLX_NO_VALUE: not in this form. */
typedef ir_value (*batch_rule)(struct batch *b);

ir_value batch_shifted(struct batch *b);   /* one axis more in front of all the others */
ir_value batch_broadcast(struct batch *b); /* the same where operands are broadcast */
ir_value batch_items(struct batch *b);     /* more items along the first axis */
ir_value batch_spelled(struct batch *b);   /* as the simpler ops that it stands for */
ir_value batch_gradients(struct batch *b); /* of inputs: shifted; of weights: spelled */
ir_value batch_item_gradients(struct batch *b);
ir_value batch_conv(struct batch *b);
ir_value batch_gather(struct batch *b);
ir_value batch_scatter_nd(struct batch *b);
ir_value batch_attention(struct batch *b);
ir_value batch_rope(struct batch *b);
ir_value batch_solve(struct batch *b);
/* batch_scan.c: for any node. */
ir_value batch_one_by_one(struct batch *b);

/* What rules are written with (batch_rules.c): operand i as one example has it, its type then, and
 * with the axis of the examples, whether it has it or not. */
struct ir_type batch_type(const struct batch *b, int32_t i);
ir_value batch_lifted(struct batch *b, int32_t i);
/* Is operand i one of those that the rule gives the axis to? Has any other one it? */
bool batch_takes(const struct batch *b, int32_t i);
bool batch_others_have(const struct batch *b);
/* t with the axis of the examples in front. */
rlx_list batch_shape(const struct batch *b, const struct ir_type *t);
/* The op on in[] for all examples, with n's attributes, where axes count from the second one. */
ir_value batch_node(struct batch *b, rlx_op op, const ir_value *in);

/* batch.c: the nodes from `first` on, which end in `out`, stand for b->n. */
ir_value batch_nodes(struct batch *b, ir_value first, ir_value out);

#endif
