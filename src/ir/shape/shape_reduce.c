/* shape_reduce.c: along axes: reductions, extremes, orderings, scans, and losses per row. */
#include "ir/shape/shape.h"

/* ---- reductions ---------------------------------------------------------------------------- */

static unsigned reduce_classes(rlx_op op)
{
    switch (op) {
    case RLX_OP_reduce_mean: return CLASS_F | CLASS_C;
    case RLX_OP_reduce_max:
    case RLX_OP_reduce_min: return CLASS_REAL | CLASS_B;
    default: return CLASS_REAL | CLASS_C;
    }
}

/* Their order says nothing, so every set of axes is written one way. */
static void sort_axes(rlx_list *axes)
{
    for (int32_t i = 1; i < axes->count; i++) {
        int64_t axis = axes->at[i];
        int32_t k = i;
        for (; k > 0 && axes->at[k - 1] > axis; k--)
            axes->at[k] = axes->at[k - 1];
        axes->at[k] = axis;
    }
}

/* x without those axes, or with 1 in their place. */
static rlx_status drop_axes(struct shape_call *c, rlx_dtype dtype, unsigned axes, bool keep)
{
    const struct ir_type *x = c->in[0];
    ir_dim dim[RLX_MAX_RANK];
    int32_t rank = 0;

    for (int32_t i = 0; i < x->rank; i++) {
        bool gone = (axes >> i) & 1u;
        if (!gone || keep)
            dim[rank++] = gone ? 1 : x->dim[i];
    }
    return shape_result(c, dtype, rank, dim);
}

rlx_status shape_reduce(struct shape_call *c)
{
    struct attr_reduce *a = &c->attr->reduce;
    unsigned axes = 0;

    TRY(shape_need_class(c, 0, reduce_classes(c->op)));
    TRY(shape_axes(c, "axes", &a->axes, c->in[0]->rank));
    sort_axes(&a->axes);
    for (int32_t i = 0; i < a->axes.count; i++)
        axes |= 1u << a->axes.at[i];
    return drop_axes(c, c->in[0]->dtype, axes, a->keep_dim);
}

rlx_status shape_arg_extreme(struct shape_call *c)
{
    struct attr_arg_extreme *a = &c->attr->arg_extreme;

    TRY(shape_need_class(c, 0, CLASS_REAL | CLASS_B));
    TRY(shape_axis(c, "axis", &a->axis, c->in[0]->rank));
    ir_dim n = c->in[0]->dim[a->axis];
    TRY(shape_need_index_dtype(c, a->index_dtype, n));
    TRY(drop_axes(c, a->index_dtype, 1u << a->axis, a->keep_dim));
    return shape_need_elements(c, n, "the axis");
}

/* ---- orderings ----------------------------------------------------------------------------- */

rlx_status shape_topk(struct shape_call *c)
{
    const struct ir_type *x = c->in[0];
    struct attr_topk *a = &c->attr->topk;

    TRY(shape_need_class(c, 0, CLASS_REAL));
    TRY(shape_axis(c, "axis", &a->axis, x->rank));
    ir_dim n = x->dim[a->axis];
    if (a->k < 0 || !shape_check(c, CHECK_AT_LEAST, n, a->k, RLX_ERROR_ATTRIBUTE, "an axis and k"))
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: k is %lld; axis %lld of %s allows 0 to %s", c->name,
                          (long long)a->k, (long long)a->axis, type_text(c, x), dim_text(c, n));
    bool values = a->result == RLX_TOPK_RESULT_values;
    TRY(shape_need_index_dtype(c, a->index_dtype, values ? 0 : n));
    TRY(shape_result(c, values ? x->dtype : a->index_dtype, x->rank, x->dim));
    c->out->dim[a->axis] = a->k;
    return RLX_OK;
}

rlx_status shape_sort(struct shape_call *c)
{
    TRY(shape_need_class(c, 0, CLASS_REAL));
    TRY(shape_axis(c, "axis", &c->attr->sort.axis, c->in[0]->rank));
    return shape_result_like(c, 0);
}

rlx_status shape_argsort(struct shape_call *c)
{
    const struct ir_type *x = c->in[0];
    struct attr_argsort *a = &c->attr->argsort;

    TRY(shape_need_class(c, 0, CLASS_REAL));
    TRY(shape_axis(c, "axis", &a->axis, x->rank));
    TRY(shape_need_index_dtype(c, a->index_dtype, x->dim[a->axis]));
    return shape_result(c, a->index_dtype, x->rank, x->dim);
}

/* ---- rows and scans ------------------------------------------------------------------------ */

rlx_status shape_softmax(struct shape_call *c)
{
    TRY(shape_need_class(c, 0, CLASS_F));
    TRY(shape_need_rank(c, 0, 1, RLX_MAX_RANK));
    TRY(shape_axis(c, "axis", &c->attr->softmax.axis, c->in[0]->rank));
    return shape_result_like(c, 0);
}

/* cumsum_backward too. */
rlx_status shape_cumulative(struct shape_call *c)
{
    int64_t *axis = c->op == RLX_OP_cumsum_backward ? &c->attr->cumsum_backward.axis
                                                    : &c->attr->cumulative.axis;

    TRY(shape_need_class(c, 0, CLASS_REAL));
    TRY(shape_axis(c, "axis", axis, c->in[0]->rank));
    return shape_result_like(c, 0);
}

/* ---- losses -------------------------------------------------------------------------------- */

/* logits [n, c] with a label per row */
static rlx_status need_labelled_logits(struct shape_call *c)
{
    TRY(shape_need_class(c, 0, CLASS_F));
    TRY(shape_need_rank(c, 0, 2, 2));
    TRY(shape_need_index(c, 1));
    TRY(shape_need_rank(c, 1, 1, 1));
    if (!shape_agree(c, c->in[0]->dim[0], c->in[1]->dim[0], "rows of logits and labels"))
        return SHAPE_FAIL(c, SHAPE, "%s: logits %s and labels %s differ in their rows", c->name,
                          type_text(c, c->in[0]), type_text(c, c->in[1]));
    return RLX_OK;
}

rlx_status shape_softmax_cross_entropy_with_logits(struct shape_call *c)
{
    TRY(need_labelled_logits(c));
    return shape_result(c, c->in[0]->dtype, 1, c->in[0]->dim);
}

rlx_status shape_softmax_cross_entropy(struct shape_call *c)
{
    TRY(shape_need_class(c, 0, CLASS_F));
    TRY(shape_need_rank(c, 0, 2, 2));
    TRY(shape_need_same_dtype(c, 0, 1));
    TRY(shape_need_same_shape(c, 0, 1));
    return shape_result(c, c->in[0]->dtype, 1, c->in[0]->dim);
}

rlx_status shape_softmax_cross_entropy_backward(struct shape_call *c)
{
    TRY(need_labelled_logits(c));
    TRY(shape_need_same_dtype(c, 0, 2));
    TRY(shape_need_rank(c, 2, 1, 1));
    if (!shape_agree(c, c->in[0]->dim[0], c->in[2]->dim[0], "rows of logits and dloss"))
        return SHAPE_FAIL(c, SHAPE, "%s: logits %s and dloss %s differ in their rows", c->name,
                          type_text(c, c->in[0]), type_text(c, c->in[2]));
    return shape_result_like(c, 0);
}
