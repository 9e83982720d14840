/* eval_quant.c: quantised by scale and zero point, and fake quantisation (ops-core.md 19.2).
 *
 * A channel is a position on `axis`; without one there is a single channel. Rounding is to nearest
 * even. */
#include <math.h>

#include "ir/eval/eval.h"

#define LEAST_SCALE 1e-12

static double floored(double scale)
{
    return scale < LEAST_SCALE ? LEAST_SCALE : scale; /* NaN stays */
}

static int64_t channel_count(const struct eval_tensor *x, int64_t axis)
{
    return axis == RLX_ABSENT ? 1 : x->type.dim[axis];
}

static int64_t channel_of(const struct eval_tensor *x, int64_t axis, int64_t k)
{
    int64_t at[RLX_MAX_RANK];

    if (axis == RLX_ABSENT)
        return 0;
    eval_unflatten(x, k, at);
    return at[axis];
}

/* ---- quantize, dequantize ------------------------------------------------------------------ */

rlx_status eval_quantize(struct eval_call *c)
{
    const struct attr_quantize *a = &c->attr->quantize;
    const float *scales = a->scales.ptr, *zeros = a->zero_points.ptr;

    for (int64_t k = 0; k < c->out->count; k++) {
        int64_t channel = channel_of(c->in[0], a->axis, k);
        double s = floored((double)scales[channel]);
        double z = a->zero_points.len ? (double)zeros[channel] : 0;
        if (c->op == RLX_OP_quantize)
            eval_set(c->out, k, rint(c->in[0]->at[k].f / s) + z); /* saturates */
        else
            c->out->at[k].f = ((double)c->in[0]->at[k].i - z) * s;
    }
    return RLX_OK;
}

/* ---- fake quantisation --------------------------------------------------------------------- */

static double qmax_of(int64_t bits)
{
    return bits == 8 ? 127 : bits == 4 ? 7 : 1;
}

static double fake(double x, double scale, double qmax)
{
    double q = rint(x / scale);

    return (q < -qmax ? -qmax : q > qmax ? qmax : q) * scale; /* NaN stays */
}

/* One scale per channel, from the data: the largest magnitude becomes qmax. */
static rlx_status scales_of_data(struct eval_call *c, int64_t axis, double qmax, double **out)
{
    const struct eval_tensor *x = c->in[0];
    int64_t count = channel_count(x, axis);
    double *scale = arena_array(c->arena, double, (size_t)count);

    if (!scale)
        return diag_no_memory(c->diag, (size_t)count * sizeof *scale);
    for (int64_t k = 0; k < x->count; k++) {
        double *to = &scale[channel_of(x, axis, k)], size = fabs(x->at[k].f);
        if (size > *to || isnan(size))
            *to = size;
    }
    for (int64_t i = 0; i < count; i++)
        scale[i] = floored(scale[i] / qmax);
    *out = scale;
    return RLX_OK;
}

/* As an operand gives them. */
static rlx_status scales_of_operand(struct eval_call *c, const struct eval_tensor *operand,
                                    double **out)
{
    double *scale = arena_array(c->arena, double, (size_t)operand->count);

    if (!scale)
        return diag_no_memory(c->diag, (size_t)operand->count * sizeof *scale);
    for (int64_t i = 0; i < operand->count; i++)
        scale[i] = floored(operand->at[i].f);
    *out = scale;
    return RLX_OK;
}

/* The state moves towards the data's scales, and is what then holds, in its own precision. */
static rlx_status scales_of_average(struct eval_call *c, double qmax, double **out)
{
    const struct attr_fake_quantize *a = &c->attr->fake_quantize;
    const struct eval_tensor *old = c->in[1];
    double decay = (double)a->decay, *scale;
    struct eval_tensor now;

    TRY(scales_of_data(c, a->axis, qmax, &scale));
    TRY(eval_tensor_new(c->arena, &old->type, &now, c->diag));
    for (int64_t i = 0; i < now.count; i++) {
        double was = old->at[i].f;
        now.at[i].f = was <= 0 ? scale[i] : decay * was + (1 - decay) * scale[i];
    }
    eval_round(&now);
    if (c->state)
        eval_copy(c->state, &now);
    return scales_of_operand(c, &now, out);
}

rlx_status eval_fake_quantize(struct eval_call *c)
{
    const struct attr_fake_quantize *a = &c->attr->fake_quantize;
    double qmax = qmax_of(a->bits), *scale = NULL;

    if (a->scale_mode == RLX_SCALE_MODE_per_batch)
        TRY(scales_of_data(c, a->axis, qmax, &scale));
    else if (a->scale_mode == RLX_SCALE_MODE_ema)
        TRY(scales_of_average(c, qmax, &scale));
    else
        TRY(scales_of_operand(c, c->in[1], &scale));
    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k].f = fake(c->in[0]->at[k].f, scale[channel_of(c->in[0], a->axis, k)], qmax);
    return RLX_OK;
}

rlx_status eval_fake_quantize_lsq(struct eval_call *c)
{
    const struct attr_fake_quantize_lsq *a = &c->attr->fake_quantize_lsq;
    double *scale;

    TRY(scales_of_operand(c, c->in[1], &scale));
    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k].f =
            fake(c->in[0]->at[k].f, scale[channel_of(c->in[0], a->axis, k)], qmax_of(a->bits));
    return RLX_OK;
}

/* ---- straight-through gradients ------------------------------------------------------------ */

static double ste_factor(int32_t ste, double x, double scale, double qmax)
{
    double rest, t;

    switch (ste) {
    case RLX_STE_KIND_clipped: return fabs(x) <= qmax * scale;
    case RLX_STE_KIND_tanh: t = tanh(x / scale); return 1 - t * t;
    case RLX_STE_KIND_hard_tanh:
        rest = 1 - fabs(x / (qmax * scale));
        return rest < 0 ? 0 : rest; /* NaN stays */
    default: return 1;
    }
}

rlx_status eval_fake_quantize_backward(struct eval_call *c)
{
    const struct attr_fake_quantize_backward *a = &c->attr->fake_quantize_backward;
    const struct eval_tensor *x = c->in[0], *dy = c->in[c->in_count - 1];
    double qmax = qmax_of(a->bits), *scale = NULL;

    if (a->scale_mode == RLX_SCALE_MODE_per_batch)
        TRY(scales_of_data(c, a->axis, qmax, &scale));
    else
        TRY(scales_of_operand(c, c->in[1], &scale));
    for (int64_t k = 0; k < c->out->count; k++)
        c->out->at[k].f =
            dy->at[k].f * ste_factor(a->ste, x->at[k].f, scale[channel_of(x, a->axis, k)], qmax);
    return RLX_OK;
}

/* How the result moves with the scale: round(z) - z inside the range, its end outside. */
static double lsq_slope(double z, double qmax)
{
    return z > qmax ? qmax : z < -qmax ? -qmax : rint(z) - z; /* NaN stays */
}

rlx_status eval_fake_quantize_lsq_backward(struct eval_call *c)
{
    const struct attr_fake_quantize_lsq_backward *a = &c->attr->fake_quantize_lsq_backward;
    const struct eval_tensor *x = c->in[0], *dy = c->in[2];
    double qmax = qmax_of(a->bits), *scale;

    TRY(scales_of_operand(c, c->in[1], &scale));
    for (int64_t k = 0; k < x->count; k++) {
        int64_t channel = channel_of(x, a->axis, k);
        double z = x->at[k].f / scale[channel];
        if (c->op == RLX_OP_fake_quantize_lsq_backward_x)
            c->out->at[k].f = dy->at[k].f * (fabs(z) <= qmax);
        else
            c->out->at[channel].f += dy->at[k].f * lsq_slope(z, qmax);
    }
    return RLX_OK;
}
