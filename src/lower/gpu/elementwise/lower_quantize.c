/* lower_quantize.c: quantised by scale and zero point, fake quantisation and its gradients
 * (ops-core.md 19.2). Scales are a buffer of one number per channel, which elementwise kernels read
 * with a step of 0 along all axes but the channel's. */
#include <stdio.h>
#include <string.h>

#include "lower/gpu/elementwise/lower_elementwise.h"
#include "lower/gpu/rows/lower_channel.h"

#define MOST_TABLE 256 /* words of a launch */

static double most_of(int64_t bits)
{
    return bits == 8 ? 127 : bits == 4 ? 7 : 1;
}

static uint32_t bits_of(double v)
{
    float f = (float)v;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* One element per channel of the first operand. */
static struct ew_value channel_input(struct ew *e, struct gpu_arg a, rlx_dtype t, int64_t axis)
{
    int64_t step[EW_RANK] = {0};

    if (axis != RLX_ABSENT)
        step[axis] = 1;
    return ew_input_steps(e, a, t, step);
}

/* ---- quantize, dequantize ---- */

/* Attributes as a buffer, a launch for each so many of them. */
static struct gpu_arg table_of(struct gpu_call *c, const struct ir_blob *values)
{
    const float *value = values->ptr;
    struct gpu_arg all = gpu_temp(c, values->len * sizeof *value);

    for (size_t i = 0; i < values->len; i += MOST_TABLE) {
        size_t n = values->len - i < MOST_TABLE ? values->len - i : MOST_TABLE;
        gpu_kernel(c, "channel", "table");
        gpu_const(c, "N", (int64_t)n);
        gpu_bind(c, gpu_part(all, i * sizeof *value, n * sizeof *value));
        for (size_t k = 0; k < n; k++)
            gpu_f32(c, "w", (double)value[i + k]);
        gpu_groups(c, 1);
    }
    return all;
}

/* A line that gives `name` the channel's number: a word where there is one channel. */
static void attribute(struct ew *e, const char *name, const struct ir_blob *values, int64_t axis,
                      struct gpu_arg table)
{
    if (values->len == 0) {
        ew_line(e, "let %s = 0.0", name);
    } else if (values->len == 1) {
        ew_line(e, "let %s = from_bits(f32, w[%d])", name,
                ew_word(e, bits_of((double)*(const float *)values->ptr)));
    } else {
        struct ew_value v = channel_input(e, table, RLX_DTYPE_f32, axis);
        ew_line(e, "let %s = %s", name, v.name);
    }
}

void gpu_lower_quantize(struct gpu_call *c)
{
    const struct attr_quantize *a = &c->attr->quantize;
    bool forward = c->op == RLX_OP_quantize;
    struct gpu_arg scales = {0}, zeros = {0};
    struct ew e;

    if (gpu_count(c->out) == 0)
        return;
    if (a->scales.len > 1)
        scales = table_of(c, &a->scales);
    if (a->zero_points.len > 1)
        zeros = table_of(c, &a->zero_points);
    ew_begin(&e, c, c->out);
    struct ew_value x = ew_input(&e, gpu_in(c, 0), &c->in[0]);
    e.uses = EW_USE_QUANT;
    e.weight = 8;
    attribute(&e, "scale", &a->scales, a->axis, scales);
    attribute(&e, "zero", &a->zero_points, a->axis, zeros);
    if (forward) {
        const char *t = ew_carrier(c->in[0].dtype);
        ew_line(&e, "let q = exact_round(%s, floored(%s(scale)), %s(0.0))", x.name, t, t);
        ew_line(&e, "let y = float_to_i8(q + %s(zero))", t);
    } else {
        ew_line(&e, "let y = (f32(%s) - zero) * floored(scale)", x.name);
    }
    ew_store(&e, gpu_out(c), c->out->dtype, "y");
    ew_end(&e);
}

/* ---- scales of fake quantisation ---- */

struct scales {
    struct gpu_arg arg, low; /* low: what is below their last place, where they are computed */
    rlx_dtype dtype;
    bool computed; /* for this batch; else they are given, and to be floored */
};

static rlx_dtype sums_in(rlx_dtype t)
{
    return t == RLX_DTYPE_f64 ? t : RLX_DTYPE_f32;
}

/* state: NULL, or the scales that move. */
static struct scales scales_of_data(struct gpu_call *c, int64_t axis, double most,
                                    const struct gpu_arg *state, double decay)
{
    rlx_dtype t = c->in[0].dtype, sum = sums_in(t);
    struct channel_walk w;
    struct channel_parts p;

    channel_walk_axis(&w, &c->in[0], axis);
    uint64_t bytes = w.channels * rlx_dtype_size(sum);
    struct scales s = {gpu_temp(c, bytes), gpu_temp(c, bytes), sum, !state};
    p = channel_reduce(c, &w, CHANNEL_MAX, gpu_in(c, 0), gpu_in(c, 0), gpu_in(c, 0), t, most);
    gpu_kernel(c, "channel", state ? "moving_scales" : "batch_scales");
    if (state)
        gpu_type(c, "T", t);
    gpu_type(c, "A", sum);
    gpu_bind(c, p.arg);
    if (state)
        gpu_bind(c, *state);
    gpu_bind(c, s.arg);
    if (!state)
        gpu_bind(c, s.low);
    gpu_u32(c, "channels", w.channels);
    gpu_u32(c, "parts", p.parts);
    gpu_f32(c, "most", most);
    if (state) {
        gpu_f32(c, "decay", decay);
        gpu_f32(c, "gain", 1 - decay);
    }
    gpu_invocations(c, w.channels, GPU_GROUP);
    return s;
}

static struct scales scales_given(struct gpu_call *c)
{
    return (struct scales){.arg = gpu_in(c, 1), .dtype = c->in[1].dtype};
}

/* ---- elementwise parts ---- */

/* Lines for x, the channel's scale and the largest code. */
static struct ew_value begin(struct ew *e, struct gpu_call *c, const struct scales *s, int64_t axis,
                             double most)
{
    const char *t = ew_carrier(c->in[0].dtype);

    ew_begin(e, c, c->out);
    struct ew_value x = ew_input(e, gpu_in(c, 0), &c->in[0]);
    struct ew_value v = channel_input(e, s->arg, s->dtype, axis);
    e->uses = EW_USE_QUANT;
    e->weight = 8;
    if (s->computed) {
        struct ew_value low = channel_input(e, s->low, s->dtype, axis);
        ew_line(e, "let scale = %s", v.name);
        ew_line(e, "let low = %s", low.name);
    } else {
        ew_line(e, "let scale = floored(%s)", v.name);
        ew_line(e, "let low = %s(0.0)", t);
    }
    ew_line(e, "let most = %s(%d)", t, (int)most);
    return x;
}

static void lower_fake(struct gpu_call *c, const struct scales *s, int64_t axis, double most)
{
    struct ew e;
    struct ew_value x = begin(&e, c, s, axis, most);

    ew_line(&e, "let q = exact_round(%s, scale, low)", x.name);
    ew_line(&e, "let y = fake_quantized(q, scale, most)");
    ew_store(&e, gpu_out(c), c->out->dtype, "y");
    ew_end(&e);
}

void gpu_lower_fake_quantize(struct gpu_call *c)
{
    const struct attr_fake_quantize *a = &c->attr->fake_quantize;
    double most = most_of(a->bits);
    struct scales s;

    if (gpu_count(c->out) == 0)
        return;
    if (a->scale_mode == RLX_SCALE_MODE_fixed) {
        s = scales_given(c);
    } else {
        struct gpu_arg state = {0};
        bool moves = a->scale_mode == RLX_SCALE_MODE_ema;
        if (moves)
            state = gpu_in(c, 1);
        s = scales_of_data(c, a->axis, most, moves ? &state : NULL, (double)a->decay);
    }
    lower_fake(c, &s, a->axis, most);
}

void gpu_lower_fake_quantize_lsq(struct gpu_call *c)
{
    const struct attr_fake_quantize_lsq *a = &c->attr->fake_quantize_lsq;
    struct scales s = scales_given(c);

    lower_fake(c, &s, a->axis, most_of(a->bits));
}

/* ---- gradients ---- */

/* dy times a factor of x and its scale. */
static void lower_factor(struct gpu_call *c, const struct scales *s, int64_t axis, double most,
                         int32_t dy, const char *factor)
{
    struct ew e;
    struct ew_value x = begin(&e, c, s, axis, most);
    struct ew_value d = ew_input(&e, gpu_in(c, dy), &c->in[dy]);

    ew_line(&e, "let y = %s * %s(%s, scale, low, most)", d.name, factor, x.name);
    ew_store(&e, gpu_out(c), c->out->dtype, "y");
    ew_end(&e);
}

void gpu_lower_fake_quantize_backward(struct gpu_call *c)
{
    const struct attr_fake_quantize_backward *a = &c->attr->fake_quantize_backward;
    bool own = a->scale_mode == RLX_SCALE_MODE_per_batch;
    double most = most_of(a->bits);
    int32_t dy = c->in_count - 1;
    struct scales s;
    struct ew e;

    if (gpu_count(c->out) == 0)
        return;
    if (a->ste == RLX_STE_KIND_identity) {
        ew_begin(&e, c, c->out);
        struct ew_value d = ew_input(&e, gpu_in(c, dy), &c->in[dy]);
        ew_store(&e, gpu_out(c), c->out->dtype, d.name);
        ew_end(&e);
        return;
    }
    s = own ? scales_of_data(c, a->axis, most, NULL, 0) : scales_given(c);
    lower_factor(c, &s, a->axis, most, dy,
                 a->ste == RLX_STE_KIND_clipped ? "ste_clipped"
                 : a->ste == RLX_STE_KIND_tanh  ? "ste_tanh"
                                                : "ste_hard_tanh");
}

void gpu_lower_fake_quantize_lsq_backward(struct gpu_call *c)
{
    const struct attr_fake_quantize_lsq_backward *a = &c->attr->fake_quantize_lsq_backward;
    double most = most_of(a->bits);
    struct scales s = scales_given(c);
    struct channel_walk w;

    if (c->op == RLX_OP_fake_quantize_lsq_backward_x) {
        lower_factor(c, &s, a->axis, most, 2, "lsq_inside");
        return;
    }
    channel_walk_axis(&w, &c->in[0], a->axis);
    channel_sums(c, &w, CHANNEL_LSQ, gpu_in(c, 0), gpu_in(c, 2), gpu_in(c, 1), c->in[0].dtype, most,
                 gpu_out(c));
}

/* ---- gated residual ---- */

/* Gradients of x + gate y, one after another: dz, dz gate, and the sums of dz y over what shares a
 * gate. */
void gpu_lower_gated_residual_backward(struct gpu_call *c)
{
    const struct ir_type *dz = &c->in[3];
    uint64_t bytes = gpu_in(c, 3).bytes;
    struct channel_walk w;
    struct ew e;

    ew_begin(&e, c, dz);
    struct ew_value d = ew_input(&e, gpu_in(c, 3), dz),
                    gate = ew_input(&e, gpu_in(c, 2), &c->in[2]);
    ew_line(&e, "let y = %s * %s", d.name, gate.name);
    ew_store(&e, gpu_part(gpu_out(c), 0, bytes), dz->dtype, d.name);
    ew_store(&e, gpu_part(gpu_out(c), bytes, bytes), dz->dtype, "y");
    ew_end(&e);
    channel_walk_like(&w, dz, &c->in[2]);
    channel_sums(c, &w, CHANNEL_PRODUCT, gpu_in(c, 3), gpu_in(c, 1), gpu_in(c, 1), dz->dtype, 0,
                 gpu_part(gpu_out(c), 2 * bytes, gpu_in(c, 2).bytes));
}
