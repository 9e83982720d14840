/* rule_norm.c: normalisations (ops-core.md 11). Those that stand for these (layer_norm_2d,
 * ada_layer_norm, gated_residual) are differentiated through them.
 *
 * Scales and shifts may be f32 beside an x of halves: sums for them are taken in their type. */
#include "autodiff/rule.h"

/* A value in the type of operand i. */
static ir_value in_type_of(struct vjp *v, int32_t i, ir_value x)
{
    return formula_cast(&v->f, x, vjp_type(v, i)->dtype);
}

/* dy summed over every axis but one, for operand i. */
static void give_shift(struct vjp *v, int32_t i, int64_t axis)
{
    rlx_list axes = {0};

    if (i >= v->n->in_count || !vjp_wanted(v, i))
        return;
    for (int32_t k = 0; k < v->n->type.rank; k++)
        if (k != axis)
            axes.at[axes.count++] = k;
    vjp_give(v, i, formula_reduce(&v->f, RLX_OP_reduce_sum, in_type_of(v, i, v->dy), axes, false));
}

void vjp_layer_norm(struct vjp *v)
{
    const struct attr_layer_norm *a = &v->n->attr.layer_norm;
    struct formula *f = &v->f;
    ir_value x = v->n->in[0];
    union ir_attr attr;

    attr_defaults(RLX_OP_layer_norm_backward_input, &attr);
    attr.layer_norm_backward.axis = a->axis;
    attr.layer_norm_backward.eps = a->eps;
    if (vjp_wanted(v, 0)) {
        const ir_value in[] = {x, v->n->in[1], v->dy};
        vjp_give(v, 0, formula_node(f, RLX_OP_layer_norm_backward_input, in, 3, &attr));
    }
    if (vjp_wanted(v, 1)) {
        const ir_value in[] = {in_type_of(v, 1, x), in_type_of(v, 1, v->dy)};
        vjp_give(v, 1, formula_node(f, RLX_OP_layer_norm_backward_gamma, in, 2, &attr));
    }
    give_shift(v, 2, a->axis);
}

void vjp_rms_norm(struct vjp *v)
{
    const struct attr_rms_norm *a = &v->n->attr.rms_norm;
    const ir_value in[] = {v->n->in[0], v->n->in[1], v->dy};
    union ir_attr attr;

    attr_defaults(RLX_OP_rms_norm_backward_input, &attr);
    attr.rms_norm_backward.axis = a->axis;
    attr.rms_norm_backward.eps = a->eps;
    if (vjp_wanted(v, 0))
        vjp_give(v, 0, formula_node(&v->f, RLX_OP_rms_norm_backward_input, in, 3, &attr));
    if (vjp_wanted(v, 1))
        vjp_give(v, 1, formula_node(&v->f, RLX_OP_rms_norm_backward_gamma, in, 3, &attr));
    give_shift(v, 2, a->axis);
}

void vjp_group_norm(struct vjp *v)
{
    const struct attr_group_norm *a = &v->n->attr.group_norm;
    struct formula *f = &v->f;
    ir_value x = v->n->in[0];
    union ir_attr attr;

    attr_defaults(RLX_OP_group_norm_backward_input, &attr);
    attr.group_norm_backward.num_groups = a->num_groups;
    attr.group_norm_backward.eps = a->eps;
    if (vjp_wanted(v, 0)) {
        const ir_value in[] = {x, v->n->in[1], v->dy};
        vjp_give(v, 0, formula_node(f, RLX_OP_group_norm_backward_input, in, 3, &attr));
    }
    if (vjp_wanted(v, 1)) {
        const ir_value in[] = {in_type_of(v, 1, x), in_type_of(v, 1, v->dy)};
        vjp_give(v, 1, formula_node(f, RLX_OP_group_norm_backward_gamma, in, 2, &attr));
    }
    give_shift(v, 2, 1);
}

/* No gradient flows to the statistics. */
void vjp_batch_norm_inference(struct vjp *v)
{
    const struct attr_batch_norm_inference *a = &v->n->attr.batch_norm_inference;
    const ir_value *given = v->n->in;
    struct formula *f = &v->f;
    union ir_attr attr;

    attr_defaults(RLX_OP_batch_norm_inference_backward_input, &attr);
    attr.batch_norm_inference_backward.axis = a->axis;
    attr.batch_norm_inference_backward.eps = a->eps;
    if (vjp_wanted(v, 0)) {
        const ir_value in[] = {given[0], given[1], given[3], given[4], v->dy};
        vjp_give(v, 0, formula_node(f, RLX_OP_batch_norm_inference_backward_input, in, 5, &attr));
    }
    if (vjp_wanted(v, 1)) {
        const ir_value in[] = {in_type_of(v, 1, given[0]), in_type_of(v, 1, given[3]),
                               in_type_of(v, 1, given[4]), in_type_of(v, 1, v->dy)};
        vjp_give(v, 1, formula_node(f, RLX_OP_batch_norm_inference_backward_gamma, in, 4, &attr));
    }
    give_shift(v, 2, a->axis);
}
