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
    vjp_add(v, i, formula_reduce(&v->f, RLX_OP_reduce_sum, in_type_of(v, i, v->dy), axes, false));
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
        vjp_add(v, 0, formula_node(f, RLX_OP_layer_norm_backward_input, in, 3, &attr));
    }
    if (vjp_wanted(v, 1)) {
        const ir_value in[] = {in_type_of(v, 1, x), in_type_of(v, 1, v->dy)};
        vjp_add(v, 1, formula_node(f, RLX_OP_layer_norm_backward_gamma, in, 2, &attr));
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
        vjp_add(v, 0, formula_node(&v->f, RLX_OP_rms_norm_backward_input, in, 3, &attr));
    if (vjp_wanted(v, 1))
        vjp_add(v, 1, formula_node(&v->f, RLX_OP_rms_norm_backward_gamma, in, 3, &attr));
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
        vjp_add(v, 0, formula_node(f, RLX_OP_group_norm_backward_input, in, 3, &attr));
    }
    if (vjp_wanted(v, 1)) {
        const ir_value in[] = {in_type_of(v, 1, x), in_type_of(v, 1, v->dy)};
        vjp_add(v, 1, formula_node(f, RLX_OP_group_norm_backward_gamma, in, 2, &attr));
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
        vjp_add(v, 0, formula_node(f, RLX_OP_batch_norm_inference_backward_input, in, 5, &attr));
    }
    if (vjp_wanted(v, 1)) {
        const ir_value in[] = {in_type_of(v, 1, given[0]), in_type_of(v, 1, given[3]),
                               in_type_of(v, 1, given[4]), in_type_of(v, 1, v->dy)};
        vjp_add(v, 1, formula_node(f, RLX_OP_batch_norm_inference_backward_gamma, in, 4, &attr));
    }
    give_shift(v, 2, a->axis);
}

/* ---- second derivatives: what the gradients above compute, written out ---- */

/* (x - mean) / sqrt(variance + eps) over those axes; where it is not centred, the mean counts as 0.
 */
static ir_value normal(struct formula *f, ir_value x, rlx_list axes, float eps, bool center)
{
    if (center)
        x = SUB(x, formula_reduce(f, RLX_OP_reduce_mean, x, axes, true));
    ir_value var = formula_reduce(f, RLX_OP_reduce_mean, MUL(x, x), axes, true);

    return DIV(x, formula_1(f, RLX_OP_sqrt, ADD(var, NUM((double)eps))));
}

/* One number per channel of that axis, ready to broadcast. */
static ir_value per_channel(struct formula *f, ir_value x, const struct ir_type *t, int64_t axis)
{
    rlx_list shape = {.count = t->rank - (int32_t)axis, .at = {1, 1, 1, 1, 1, 1, 1, 1}};

    shape.at[0] = t->dim[axis];
    return formula_reshape(f, formula_cast(f, x, f->dtype), shape);
}

static ir_value sum_per_channel(struct formula *f, ir_value x, int32_t rank, int64_t axis)
{
    rlx_list axes = {0};

    for (int32_t i = 0; i < rank; i++)
        if (i != axis)
            axes.at[axes.count++] = i;
    return formula_reduce(f, RLX_OP_reduce_sum, x, axes, false);
}

/* ---- along an axis ---- */

enum part { PART_INPUT, PART_GAMMA, PART_BETA };

static ir_value along_axis(struct formula *f, const struct ir_node *n, int64_t axis, float eps,
                           bool center, enum part part)
{
    const struct ir_type t = *ir_type_of(f->g, n->in[0]);
    ir_value dy = formula_cast(f, n->in[n->in_count - 1], f->dtype);
    ir_value x = rule_apart(f, n->in[0]);
    ir_value first = (ir_value)f->g->node.len;

    if (part == PART_BETA)
        return sum_per_channel(f, dy, t.rank, axis);
    ir_value y = normal(f, x, RLX_LIST(axis), eps, center);
    if (part == PART_GAMMA)
        return sum_per_channel(f, MUL(dy, y), t.rank, axis);
    y = MUL(y, per_channel(f, n->in[1], &t, axis));
    return rule_pull(f, first, y, dy, x);
}

ir_value define_layer_norm_backward(struct formula *f, const struct ir_node *n)
{
    const struct attr_layer_norm_backward *a = &n->attr.layer_norm_backward;
    bool input = n->op == RLX_OP_layer_norm_backward_input;

    return along_axis(f, n, a->axis, a->eps, true, input ? PART_INPUT : PART_GAMMA);
}

ir_value define_rms_norm_backward(struct formula *f, const struct ir_node *n)
{
    const struct attr_rms_norm_backward *a = &n->attr.rms_norm_backward;
    enum part part = n->op == RLX_OP_rms_norm_backward_input   ? PART_INPUT
                     : n->op == RLX_OP_rms_norm_backward_gamma ? PART_GAMMA
                                                               : PART_BETA;

    return along_axis(f, n, a->axis, a->eps, false, part);
}

/* ---- over groups of channels ---- */

/* [N, C, ...] as [N, G, C/G ...], normalised along the last axis, and back. */
static ir_value normal_groups(struct formula *f, ir_value x, const struct ir_type *t,
                              int64_t groups, float eps)
{
    ir_dim each = dim_exact_div(rule_dims(f), rule_product(f, t->dim + 1, t->rank - 1), groups);

    if (each == RLX_DIM_FAILED) {
        formula_fail(f, RLX_ERROR_UNSUPPORTED,
                     "group_norm: the size of a group cannot be written as an expression");
        return RLX_NO_VALUE;
    }
    x = formula_reshape(f, x, RLX_LIST(t->dim[0], groups, each));
    return formula_reshape(f, normal(f, x, RLX_LIST(2), eps, true), formula_shape(t));
}

ir_value define_group_norm_backward(struct formula *f, const struct ir_node *n)
{
    const struct attr_group_norm_backward *a = &n->attr.group_norm_backward;
    const struct ir_type t = *ir_type_of(f->g, n->in[0]);
    ir_value dy = formula_cast(f, n->in[n->in_count - 1], f->dtype);
    ir_value x = rule_apart(f, n->in[0]);
    ir_value first = (ir_value)f->g->node.len;

    if (n->op == RLX_OP_group_norm_backward_beta)
        return sum_per_channel(f, dy, t.rank, 1);
    ir_value y = normal_groups(f, x, &t, a->num_groups, a->eps);
    if (n->op == RLX_OP_group_norm_backward_gamma)
        return sum_per_channel(f, MUL(dy, y), t.rank, 1);
    return rule_pull(f, first, MUL(y, per_channel(f, n->in[1], &t, 1)), dy, x);
}

/* ---- with given statistics, which have no gradient ---- */

static ir_value given(struct formula *f, ir_value x, const struct ir_type *t, int64_t axis)
{
    return per_channel(f, formula_1(f, RLX_OP_stop_gradient, x), t, axis);
}

ir_value define_batch_norm_inference_backward(struct formula *f, const struct ir_node *n)
{
    const struct attr_batch_norm_inference_backward *a = &n->attr.batch_norm_inference_backward;
    const struct ir_type t = *ir_type_of(f->g, n->in[0]);
    bool input = n->op == RLX_OP_batch_norm_inference_backward_input;
    ir_value dy = formula_cast(f, n->in[n->in_count - 1], f->dtype);

    if (n->op == RLX_OP_batch_norm_inference_backward_beta)
        return sum_per_channel(f, dy, t.rank, a->axis);
    ir_value var = ADD(given(f, n->in[input ? 3 : 2], &t, a->axis), NUM((double)a->eps));
    dy = DIV(dy, formula_1(f, RLX_OP_sqrt, var));
    if (input)
        return MUL(dy, per_channel(f, n->in[1], &t, a->axis));
    ir_value x = formula_cast(f, n->in[0], f->dtype);
    dy = MUL(dy, SUB(x, given(f, n->in[1], &t, a->axis)));
    return sum_per_channel(f, dy, t.rank, a->axis);
}

/* ---- adaptive, gated: the gradients of three operands, one after another ---- */

static ir_value packed(struct formula *f, ir_value first, ir_value y, ir_value dy,
                       const ir_value *wrt)
{
    ir_value part[3];

    for (int i = 0; i < 3 && f->status == RLX_OK; i++) {
        const struct ir_type t = *formula_type(f, wrt[i]);
        part[i] = formula_reshape(f, rule_pull(f, first, y, dy, wrt[i]),
                                  RLX_LIST(rule_product(f, t.dim, t.rank)));
    }
    return f->status == RLX_OK ? formula_concat(f, part, 3, 0) : RLX_NO_VALUE;
}

ir_value define_ada_layer_norm_backward(struct formula *f, const struct ir_node *n)
{
    const struct attr_ada_layer_norm_backward *a = &n->attr.ada_layer_norm_backward;
    const ir_value wrt[] = {rule_apart(f, n->in[0]), rule_apart(f, n->in[1]),
                            rule_apart(f, n->in[2])};
    ir_value dy = formula_cast(f, n->in[3], f->dtype), first = (ir_value)f->g->node.len;
    rlx_list last = RLX_LIST(ir_type_of(f->g, n->in[0])->rank - 1);
    ir_value y = normal(f, wrt[0], last, a->eps, a->norm == RLX_NORM_KIND_layer);

    return packed(f, first, ADD(MUL(y, ADD(wrt[1], NUM(1))), wrt[2]), dy, wrt);
}

ir_value define_gated_residual_backward(struct formula *f, const struct ir_node *n)
{
    const ir_value wrt[] = {rule_apart(f, n->in[0]), rule_apart(f, n->in[1]),
                            rule_apart(f, n->in[2])};
    ir_value dy = formula_cast(f, n->in[3], f->dtype), first = (ir_value)f->g->node.len;

    return packed(f, first, ADD(wrt[0], MUL(wrt[2], wrt[1])), dy, wrt);
}
