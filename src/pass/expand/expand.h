/* expand.h: what an op that a device has no kernels for becomes. */
#ifndef PASS_EXPAND_H
#define PASS_EXPAND_H

#include "ir/formula.h"
#include "pass/rebuild.h"

/* Adds the nodes that stand for n; in[] are its operands in the new graph. */
typedef rlx_status (*expander)(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                               ir_value *out);

/* When a kind is rewritten, where the device has no say in it: */
enum rewrite_when {
    REWRITE_COMPOSITE, /* where the device lacks it; also for no device in particular */
    REWRITE_LACKING,   /* where the device lacks it */
    REWRITE_LOGICAL,   /* the same, unless the dispatch policy says otherwise (runtime.md 1.11) */
    REWRITE_PARTLY     /* where the device has not this form of it */
};

/* legalise.c: one row per kind that can be written with others. */
struct rewriter {
    enum op_family kind;
    enum rewrite_when when;
    const char *name; /* for reports */
    expander expand;
    bool (*applies)(const struct ir_graph *g, const struct ir_node *n); /* NULL: always */
    enum op_family makes[16]; /* the kinds it may put in the place; FAMILY_none ends them */
};
const struct rewriter *rewriter_at(size_t i);         /* NULL: there are no more */
const struct rewriter *rewriter_of(enum op_family f); /* NULL: it has none */
int rewriter_depth(enum op_family f);                 /* rounds until nothing is left of it */

/* Shorthands. Types are those of the new graph. */
static inline const struct ir_type *expand_type(const struct rebuild *r, ir_value v)
{
    return ir_type_of(&r->made, v);
}
rlx_status expand_1(struct rebuild *r, rlx_op op, ir_value a, ir_value *out);
rlx_status expand_2(struct rebuild *r, rlx_op op, ir_value a, ir_value b, ir_value *out);
rlx_status expand_narrow(struct rebuild *r, ir_value x, int64_t axis, ir_dim start, ir_dim len,
                         ir_value *out);
rlx_status expand_reshape(struct rebuild *r, ir_value x, rlx_list shape, ir_value *out);
rlx_status expand_transpose(struct rebuild *r, ir_value x, rlx_list perm, ir_value *out);
rlx_status expand_cast(struct rebuild *r, ir_value x, rlx_dtype to,
                       ir_value *out); /* or x itself */
/* The same without a node where x has that shape already. */
rlx_status expand_reshape_to(struct rebuild *r, ir_value x, rlx_list shape, ir_value *out);
rlx_status expand_to_shape(struct rebuild *r, ir_value x, rlx_list shape, ir_value *out);
/* x unchanged when there is no activation. */
rlx_status expand_activation(struct rebuild *r, rlx_op activation, ir_value x, ir_value *out);

/* Formulas of the new graph. */
static inline struct formula expand_formula(struct rebuild *r, rlx_dtype dtype)
{
    return (struct formula){.g = &r->made, .diag = r->diag, .dtype = formula_dtype(dtype)};
}

/* expand.c */
rlx_status expand_lora_matmul(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                              ir_value *out);
rlx_status expand_matmul_bias_act(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                  ir_value *out);
rlx_status expand_conv_bias_act(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                ir_value *out);
rlx_status expand_residual_norm(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                ir_value *out);
rlx_status expand_swiglu(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                         ir_value *out);
rlx_status expand_layer_norm_2d(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                ir_value *out);
rlx_status expand_ada_layer_norm(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                 ir_value *out);
rlx_status expand_gated_residual(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                 ir_value *out);
/* expand_blocks.c */
rlx_status expand_attention_block(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                  ir_value *out);
rlx_status expand_transformer_layer(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                    ir_value *out);
/* expand_causal_conv.c */
rlx_status expand_causal_conv(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                              ir_value *out);
/* expand_recurrent.c */
rlx_status expand_mamba2(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                         ir_value *out);
rlx_status expand_recurrent(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                            ir_value *out);
/* expand_dot.c */
rlx_status expand_dot_general(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                              ir_value *out);
/* expand_region.c */
rlx_status expand_region(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                         ir_value *out);
rlx_status expand_batch_region(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                               ir_value *out);
rlx_status expand_transform(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                            ir_value *out);
/* expand_slopes.c */
rlx_status expand_activation_backward(struct rebuild *r, const struct ir_node *n,
                                      const ir_value *in, ir_value *out);
/* expand_logical.c */
rlx_status expand_group_norm(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                             ir_value *out);
rlx_status expand_resize_nearest_2x(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                    ir_value *out);
rlx_status expand_reduce(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                         ir_value *out);
/* expand_scan.c */
rlx_status expand_selective_scan(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                 ir_value *out);
rlx_status expand_gated_delta_net(struct rebuild *r, const struct ir_node *n, const ir_value *in,
                                  ir_value *out);

#endif
