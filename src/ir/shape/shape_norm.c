/* shape_norm.c: shape rules of normalisations and their gradients (ops-core.md 11).
 *
 * The normalised axis and channels are static. Scales and shifts have the dtype of x, or f32 while
 * x is f16 or bf16; upstream gradients have the type of x. An empty normalised set leaves the
 * result empty too, so it needs no refusal of its own. */
#include <inttypes.h>

#include "ir/shape/shape_need.h"

/* x is a float of rank >= lo, `axis` one of its axes; *size what it has there. */
static rlx_status norm_axis(struct shape_call *c, int32_t lo, int64_t *axis, ir_dim *size)
{
    TRY(shape_need_class(c, 0, CLASS_F));
    TRY(shape_need_rank(c, 0, lo, RLX_MAX_RANK));
    TRY(shape_axis(c, "axis", axis, c->in[0]->rank));
    *size = c->in[0]->dim[*axis];
    return shape_need_static(c, *size, "the normalised axis");
}

/* A scale, shift or statistic: one number per position on the axis. */
static rlx_status need_per_channel(struct shape_call *c, int32_t operand, ir_dim size)
{
    TRY(shape_need_dtype_or_f32(c, operand, 0));
    return shape_need_dims(c, operand, &size, 1);
}

rlx_status shape_layer_norm(struct shape_call *c)
{
    struct attr_layer_norm *attr = &c->attr->layer_norm;
    ir_dim size;

    TRY(norm_axis(c, 1, &attr->axis, &size));
    TRY(shape_need_nonnegative(c, "eps", attr->eps));
    TRY(need_per_channel(c, 1, size));
    TRY(need_per_channel(c, 2, size));
    return shape_result_like(c, 0);
}

/* layer_norm_backward_input: x, gamma, dy -> like x; ..._gamma: x, dy -> [d]. */
rlx_status shape_layer_norm_backward(struct shape_call *c)
{
    struct attr_layer_norm_backward *attr = &c->attr->layer_norm_backward;
    ir_dim size;

    TRY(norm_axis(c, 1, &attr->axis, &size));
    TRY(shape_need_nonnegative(c, "eps", attr->eps));
    TRY(shape_need_same_type(c, c->in_count - 1, 0));
    if (c->op == RLX_OP_layer_norm_backward_gamma)
        return shape_result(c, c->in[0]->dtype, 1, &size);
    TRY(need_per_channel(c, 1, size));
    return shape_result_like(c, 0);
}

rlx_status shape_rms_norm(struct shape_call *c)
{
    struct attr_rms_norm *attr = &c->attr->rms_norm;
    ir_dim size;

    TRY(norm_axis(c, 1, &attr->axis, &size));
    TRY(shape_need_nonnegative(c, "eps", attr->eps));
    for (int32_t i = 1; i < c->in_count; i++)
        TRY(need_per_channel(c, i, size));
    return shape_result_like(c, 0);
}

/* x, gamma, beta?, dy -> like x, like gamma or like beta (like gamma where there is no beta). */
rlx_status shape_rms_norm_backward(struct shape_call *c)
{
    struct attr_rms_norm_backward *attr = &c->attr->rms_norm_backward;
    int32_t dy = c->in_count - 1;
    ir_dim size;

    TRY(norm_axis(c, 1, &attr->axis, &size));
    TRY(shape_need_nonnegative(c, "eps", attr->eps));
    for (int32_t i = 1; i < dy; i++)
        TRY(need_per_channel(c, i, size));
    TRY(shape_need_same_type(c, dy, 0));
    switch (c->op) {
    case RLX_OP_rms_norm_backward_gamma: return shape_result_like(c, 1);
    case RLX_OP_rms_norm_backward_beta: return shape_result_like(c, dy - 1);
    default: return shape_result_like(c, 0);
    }
}

/* x [n,c,*], num_groups divides c. */
static rlx_status need_groups(struct shape_call *c, int64_t groups, ir_dim *channels)
{
    int64_t axis = 1;

    TRY(norm_axis(c, 2, &axis, channels));
    TRY(shape_need_range(c, "num_groups", groups, 1, INT64_MAX));
    if (*channels % groups != 0)
        return SHAPE_FAIL(c, ATTRIBUTE,
                          "%s: num_groups %" PRId64 " does not divide the %" PRId64 " channels",
                          c->name, groups, *channels);
    return RLX_OK;
}

rlx_status shape_group_norm(struct shape_call *c)
{
    const struct attr_group_norm *attr = &c->attr->group_norm;
    ir_dim channels;

    TRY(need_groups(c, attr->num_groups, &channels));
    TRY(shape_need_nonnegative(c, "eps", attr->eps));
    TRY(need_per_channel(c, 1, channels));
    TRY(need_per_channel(c, 2, channels));
    return shape_result_like(c, 0);
}

/* group_norm_backward_input: x, gamma, dy -> like x; ..._gamma and ..._beta: x, dy -> [c]. */
rlx_status shape_group_norm_backward(struct shape_call *c)
{
    const struct attr_group_norm_backward *attr = &c->attr->group_norm_backward;
    ir_dim channels;

    TRY(need_groups(c, attr->num_groups, &channels));
    TRY(shape_need_nonnegative(c, "eps", attr->eps));
    TRY(shape_need_same_type(c, c->in_count - 1, 0));
    if (c->op != RLX_OP_group_norm_backward_input)
        return shape_result(c, c->in[0]->dtype, 1, &channels);
    TRY(need_per_channel(c, 1, channels));
    return shape_result_like(c, 0);
}

/* layer_norm_2d: x [n,c,h,w], normalised over c. */
rlx_status shape_layer_norm_2d(struct shape_call *c)
{
    int64_t axis = 1;
    ir_dim channels;

    TRY(shape_need_rank(c, 0, 4, 4));
    TRY(norm_axis(c, 4, &axis, &channels));
    TRY(shape_need_nonnegative(c, "eps", c->attr->layer_norm_2d.eps));
    TRY(need_per_channel(c, 1, channels));
    TRY(need_per_channel(c, 2, channels));
    return shape_result_like(c, 0);
}

rlx_status shape_batch_norm_inference(struct shape_call *c)
{
    struct attr_batch_norm_inference *attr = &c->attr->batch_norm_inference;
    ir_dim channels;

    TRY(norm_axis(c, 1, &attr->axis, &channels));
    TRY(shape_need_nonnegative(c, "eps", attr->eps));
    for (int32_t i = 1; i < c->in_count; i++)
        TRY(need_per_channel(c, i, channels));
    return shape_result_like(c, 0);
}

/* ..._input: x, gamma, mean, var, dy -> like x; ..._gamma: x, mean, var, dy; ..._beta: x, dy. */
rlx_status shape_batch_norm_inference_backward(struct shape_call *c)
{
    struct attr_batch_norm_inference_backward *attr = &c->attr->batch_norm_inference_backward;
    int32_t dy = c->in_count - 1;
    ir_dim channels;

    TRY(norm_axis(c, 1, &attr->axis, &channels));
    TRY(shape_need_nonnegative(c, "eps", attr->eps));
    for (int32_t i = 1; i < dy; i++)
        TRY(need_per_channel(c, i, channels));
    TRY(shape_need_same_type(c, dy, 0));
    if (c->op != RLX_OP_batch_norm_inference_backward_input)
        return shape_result(c, c->in[0]->dtype, 1, &channels);
    return shape_result_like(c, 0);
}

/* x [...,d]; scale and shift broadcast to it, with d itself as their last axis. */
static rlx_status need_modulated(struct shape_call *c, float eps)
{
    int64_t axis = -1;
    ir_dim size;

    TRY(norm_axis(c, 1, &axis, &size));
    TRY(shape_need_nonnegative(c, "eps", eps));
    for (int32_t i = 1; i < 3; i++) {
        const struct ir_type *t = c->in[i];
        TRY(shape_need_same_dtype(c, 0, i));
        TRY(shape_need_rank(c, i, 1, c->in[0]->rank));
        TRY(shape_need_equal(c, t->dim[t->rank - 1], size,
                             i == 1 ? "last axes of scale and x" : "last axes of shift and x"));
        TRY(shape_broadcasts_to(c, t, c->in[0], shape_operand_name(c, i)));
    }
    return RLX_OK;
}

rlx_status shape_ada_layer_norm(struct shape_call *c)
{
    TRY(need_modulated(c, c->attr->ada_layer_norm.eps));
    return shape_result_like(c, 0);
}

/* x and y alike, gate broadcasts to them. */
static rlx_status need_gated(struct shape_call *c)
{
    TRY(shape_need_floats(c, 3));
    TRY(shape_need_same_shape(c, 1, 0));
    return shape_broadcasts_to(c, c->in[2], c->in[0], "gate");
}

rlx_status shape_gated_residual(struct shape_call *c)
{
    TRY(need_gated(c));
    return shape_result_like(c, 0);
}

rlx_status shape_ada_layer_norm_backward(struct shape_call *c)
{
    TRY(need_modulated(c, c->attr->ada_layer_norm_backward.eps));
    TRY(shape_need_same_type(c, 3, 0));
    return shape_packed_gradients(c, 3);
}

rlx_status shape_gated_residual_backward(struct shape_call *c)
{
    TRY(need_gated(c));
    TRY(shape_need_same_type(c, 3, 0));
    return shape_packed_gradients(c, 3);
}
