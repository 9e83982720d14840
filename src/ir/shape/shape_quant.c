/* shape_quant.c: scales per tensor or per channel: quantised, dequantised, and both at once. */
#include <math.h>

#include "ir/shape/shape.h"

/* axis absent: one channel, the whole tensor. Else its length, which is fixed. */
static rlx_status channels(struct shape_call *c, int64_t *axis, int64_t *count)
{
    *count = 1;
    if (*axis == RLX_ABSENT)
        return RLX_OK;
    TRY(shape_axis(c, "axis", axis, c->in[0]->rank));
    *count = c->in[0]->dim[*axis];
    return shape_need_static(c, *count, "the channel axis");
}

/* ---- quantize, dequantize ------------------------------------------------------------------ */

static rlx_status bad_entry(struct shape_call *c, const char *what, size_t i, float v,
                            const char *rule)
{
    char text[32];

    str_from_f32(text, v);
    return SHAPE_FAIL(c, ATTRIBUTE, "%s: %s[%zu] is %s; it must be %s", c->name, what, i, text,
                      rule);
}

static rlx_status need_scales(struct shape_call *c, const struct attr_quantize *a, int64_t count)
{
    const float *scale = a->scales.ptr, *zero = a->zero_points.ptr;

    if (a->scales.len != (uint64_t)count)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: %zu scales for %lld channels of %s", c->name,
                          a->scales.len, (long long)count, type_text(c, c->in[0]));
    if (a->zero_points.len && a->zero_points.len != a->scales.len)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: %zu zero_points for %zu scales", c->name,
                          a->zero_points.len, a->scales.len);
    for (size_t i = 0; i < a->scales.len; i++)
        if (!isfinite(scale[i]))
            return bad_entry(c, "scales", i, scale[i], "finite");
    for (size_t i = 0; i < a->zero_points.len; i++)
        if (!(zero[i] >= -128.0f && zero[i] <= 127.0f && floorf(zero[i]) == zero[i]))
            return bad_entry(c, "zero_points", i, zero[i], "an integer from -128 to 127");
    return RLX_OK;
}

/* quantize: floats to i8. dequantize: i8 to f32. */
rlx_status shape_quantize(struct shape_call *c)
{
    const struct ir_type *x = c->in[0];
    bool forward = c->op == RLX_OP_quantize;
    int64_t count;

    if (forward)
        TRY(shape_need_class(c, 0, CLASS_F));
    else if (x->dtype != RLX_DTYPE_i8)
        return SHAPE_FAIL(c, DTYPE, "%s: q has element type %s; allowed: i8", c->name,
                          rlx_dtype_name(x->dtype));
    TRY(channels(c, &c->attr->quantize.axis, &count));
    TRY(need_scales(c, &c->attr->quantize, count));
    return shape_result(c, forward ? RLX_DTYPE_i8 : RLX_DTYPE_f32, x->rank, x->dim);
}

/* ---- fake quantisation --------------------------------------------------------------------- */

static rlx_status need_bits(struct shape_call *c, int64_t bits)
{
    if (bits == 8 || bits == 4 || bits == 2)
        return RLX_OK;
    return SHAPE_FAIL(c, ATTRIBUTE, "%s: bits is %lld; it must be 8, 4 or 2", c->name,
                      (long long)bits);
}

/* The operand holds one scale per channel: [channels], or a scalar for the whole tensor. */
static rlx_status need_scale_operand(struct shape_call *c, int32_t operand, int64_t axis,
                                     int64_t count)
{
    const struct ir_type *s = c->in[operand];
    bool scalar = s->rank == 0 && axis == RLX_ABSENT;

    TRY(shape_need_same_dtype(c, 0, operand));
    if (scalar || (s->rank == 1 && shape_agree(c, s->dim[0], count, "scales and channels")))
        return RLX_OK;
    return SHAPE_FAIL(c, SHAPE, "%s: %s is %s; %s has %lld channel%s", c->name,
                      shape_operand_name(c, operand), type_text(c, s), type_text(c, c->in[0]),
                      (long long)count, count == 1 ? "" : "s");
}

/* What fake quantisation and its gradients have in common: x, bits, axis, and the scales operand
 * (-1: there is none). */
static rlx_status need_fake(struct shape_call *c, int64_t bits, int64_t *axis, int32_t scales)
{
    int64_t count;

    TRY(shape_need_class(c, 0, CLASS_F));
    TRY(need_bits(c, bits));
    TRY(channels(c, axis, &count));
    return scales < 0 ? RLX_OK : need_scale_operand(c, scales, *axis, count);
}

static rlx_status need_dy(struct shape_call *c, int32_t dy)
{
    TRY(shape_need_same_dtype(c, 0, dy));
    return shape_need_same_shape(c, 0, dy);
}

rlx_status shape_fake_quantize(struct shape_call *c)
{
    struct attr_fake_quantize *a = &c->attr->fake_quantize;
    bool own = a->scale_mode == RLX_SCALE_MODE_per_batch;

    TRY(shape_need_inputs(c, own ? 1 : 2,
                          own ? "scale_mode per_batch" : "scale_mode ema or fixed"));
    TRY(need_fake(c, a->bits, &a->axis, own ? -1 : 1));
    if (a->scale_mode == RLX_SCALE_MODE_ema)
        TRY(shape_need_state(c, 1));
    if (!(a->decay >= 0.0f && a->decay <= 1.0f)) {
        char text[32];
        str_from_f32(text, a->decay);
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: decay is %s; it must be 0 to 1", c->name, text);
    }
    return shape_result_like(c, 0);
}

rlx_status shape_fake_quantize_lsq(struct shape_call *c)
{
    struct attr_fake_quantize_lsq *a = &c->attr->fake_quantize_lsq;

    TRY(need_fake(c, a->bits, &a->axis, 1));
    return shape_result_like(c, 0);
}

/* x, dy; with scales from an operand x, scales, dy. */
rlx_status shape_fake_quantize_backward(struct shape_call *c)
{
    struct attr_fake_quantize_backward *a = &c->attr->fake_quantize_backward;
    bool own = a->scale_mode == RLX_SCALE_MODE_per_batch;

    TRY(shape_need_inputs(c, own ? 2 : 3,
                          own ? "scale_mode per_batch" : "scale_mode ema or fixed"));
    TRY(need_fake(c, a->bits, &a->axis, own ? -1 : 1));
    TRY(need_dy(c, own ? 1 : 2));
    return shape_result_like(c, 0);
}

rlx_status shape_fake_quantize_lsq_backward(struct shape_call *c)
{
    struct attr_fake_quantize_lsq_backward *a = &c->attr->fake_quantize_lsq_backward;

    TRY(need_fake(c, a->bits, &a->axis, 1));
    TRY(need_dy(c, 2));
    return shape_result_like(c, c->op == RLX_OP_fake_quantize_lsq_backward_scale ? 1 : 0);
}
