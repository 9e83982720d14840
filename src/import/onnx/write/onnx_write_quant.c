/* onnx_write_quant.c: numbers of fewer bits. */
#include <math.h>

#include "import/onnx/write/onnx_emit.h"

#define LEAST_SCALE 1e-12

/* ---- scales in the graph ---- */

/* One number per channel, or a scalar. */
static rlx_list channel_shape(const struct attr_quantize *a)
{
    return a->axis == RLX_ABSENT ? RLX_EMPTY : RLX_LIST((int64_t)a->scales.len);
}

static rlx_str scales_of(struct emit *e, const struct attr_quantize *a)
{
    float *scale = arena_array(e->w->arena, float, a->scales.len);

    if (!scale) {
        e->w->no_memory = true;
        return STR("");
    }
    for (size_t i = 0; i < a->scales.len; i++)
        scale[i] = fmaxf(((const float *)a->scales.ptr)[i], (float)LEAST_SCALE);
    return emit_const(e, RLX_DTYPE_f32, channel_shape(a), scale);
}

static rlx_str zero_points_of(struct emit *e, const struct attr_quantize *a)
{
    int8_t *zero = arena_array(e->w->arena, int8_t, a->scales.len);

    if (!zero) {
        e->w->no_memory = true;
        return STR("");
    }
    for (size_t i = 0; i < a->zero_points.len; i++)
        zero[i] = (int8_t)((const float *)a->zero_points.ptr)[i];
    return emit_const(e, RLX_DTYPE_i8, channel_shape(a), zero);
}

static void write_linear(struct emit *e, const char *op, rlx_str x)
{
    const struct attr_quantize *a = &e->n->attr.quantize;
    rlx_str y = emit_3(e, op, x, scales_of(e, a), zero_points_of(e, a));

    if (a->axis != RLX_ABSENT)
        emit_int(e, "axis", a->axis);
    emit_give(e, y);
}

void write_quantize(struct emit *e)
{
    write_linear(e, "QuantizeLinear",
                 emit_cast(e, e->in[0], emit_type(e, 0)->dtype, RLX_DTYPE_f32));
}

void write_dequantize(struct emit *e)
{
    write_linear(e, "DequantizeLinear", e->in[0]);
}

/* ---- there and back ----
 *
 * In f64, so that a number between two steps goes to the one that the definition takes. */

static double greatest(int64_t bits)
{
    return (double)((INT64_C(1) << (bits - 1)) - 1);
}

static rlx_str at_least(struct emit *e, rlx_str scale, rlx_dtype t)
{
    return emit_2(e, "Max", scale, emit_number(e, t, LEAST_SCALE));
}

/* The scale at which the largest of each channel is the greatest number there is: [channels]. */
static rlx_str scale_of_data(struct emit *e, rlx_str x, rlx_dtype t, int64_t axis, int64_t bits)
{
    int64_t axes[RLX_MAX_RANK];
    size_t n = 0;
    rlx_str most = emit_1(e, "Abs", x);

    for (int32_t i = 0; i < emit_type(e, 0)->rank; i++)
        if (i != axis)
            axes[n++] = i;
    if (n) {
        most = emit_2(e, "ReduceMax", most, emit_i64s(e, axes, n));
        emit_int(e, "keepdims", 0);
    }
    return at_least(e, emit_2(e, "Div", most, emit_number(e, t, greatest(bits))), t);
}

/* As it is multiplied with x. */
static rlx_str along(struct emit *e, rlx_str scale, int64_t axis)
{
    rlx_list shape = {.count = emit_type(e, 0)->rank};

    for (int32_t i = 0; i < shape.count; i++)
        shape.at[i] = i == axis ? RLX_DIM_INFER : 1;
    return axis == RLX_ABSENT ? emit_reshape(e, scale, RLX_EMPTY) : emit_reshape(e, scale, shape);
}

/* x and scale are f64. */
static void write_fake(struct emit *e, rlx_str x, rlx_str scale, int64_t axis, int64_t bits)
{
    rlx_dtype t = RLX_DTYPE_f64;

    scale = along(e, scale, axis);
    rlx_str q = emit_1(e, "Round", emit_2(e, "Div", x, scale));
    q = emit_3(e, "Clip", q, emit_number(e, t, -greatest(bits)), emit_number(e, t, greatest(bits)));
    emit_give(e, emit_cast(e, emit_2(e, "Mul", q, scale), t, e->n->type.dtype));
}

/* The state moves towards the scale of the data; at first it takes it over. */
static rlx_str average(struct emit *e, rlx_str now, rlx_dtype t)
{
    const struct attr_fake_quantize *a = &e->n->attr.fake_quantize;
    rlx_dtype s = emit_type(e, 1)->dtype;
    rlx_str old = emit_cast(e, e->in[1], s, t);
    rlx_str kept = emit_2(e, "Mul", old, emit_number(e, t, (double)a->decay));
    rlx_str next = emit_2(e, "Mul", now, emit_number(e, t, 1 - (double)a->decay));
    rlx_str first = emit_2(e, "LessOrEqual", old, emit_number(e, t, 0));

    next = emit_3(e, "Where", first, now, emit_2(e, "Add", kept, next));
    e->written = emit_cast(e, emit_2(e, "Reshape", next, emit_1(e, "Shape", e->in[1])), t, s);
    return emit_cast(e, e->written, s, t);
}

void write_fake_quantize(struct emit *e)
{
    const struct attr_fake_quantize *a = &e->n->attr.fake_quantize;
    rlx_dtype t = RLX_DTYPE_f64;
    rlx_str x = emit_cast(e, e->in[0], emit_type(e, 0)->dtype, t), scale;

    if (a->scale_mode == RLX_SCALE_MODE_fixed)
        scale = at_least(e, emit_cast(e, e->in[1], emit_type(e, 1)->dtype, t), t);
    else
        scale = scale_of_data(e, x, t, a->axis, a->bits);
    if (a->scale_mode == RLX_SCALE_MODE_ema)
        scale = at_least(e, average(e, scale, t), t);
    write_fake(e, x, scale, a->axis, a->bits);
}

void write_fake_quantize_lsq(struct emit *e)
{
    const struct attr_fake_quantize_lsq *a = &e->n->attr.fake_quantize_lsq;
    rlx_dtype t = RLX_DTYPE_f64;
    rlx_str x = emit_cast(e, e->in[0], emit_type(e, 0)->dtype, t);
    rlx_str scale = at_least(e, emit_cast(e, e->in[1], emit_type(e, 1)->dtype, t), t);

    write_fake(e, x, scale, a->axis, a->bits);
}

/* ---- products of integers ---- */

/* What an i32 sum becomes: scaled, rounded, moved, and cut off at 8 bits. In f64 nothing is lost.
 */
static void rescale(struct emit *e, rlx_str sum, float mult, int64_t zero_point)
{
    rlx_dtype t = RLX_DTYPE_f64;
    rlx_str y = emit_cast(e, sum, RLX_DTYPE_i32, t);

    y = emit_1(e, "Round", emit_2(e, "Mul", y, emit_number(e, t, (double)mult)));
    y = emit_2(e, "Add", y, emit_number(e, t, (double)zero_point));
    y = emit_3(e, "Clip", y, emit_number(e, t, -128), emit_number(e, t, 127));
    emit_give(e, emit_cast(e, y, t, RLX_DTYPE_i8));
}

void write_qmatmul(struct emit *e)
{
    const struct attr_qmatmul *a = &e->n->attr.qmatmul;
    const rlx_str in[] = {e->in[0], e->in[1], emit_number(e, RLX_DTYPE_i8, (double)a->x_zp),
                          emit_number(e, RLX_DTYPE_i8, (double)a->w_zp)};
    rlx_str sum = emit_node(e, "MatMulInteger", in, 4);

    rescale(e, emit_2(e, "Add", sum, e->in[2]), a->mult, a->out_zp);
}

/* Padding counts as nothing, so it is put around x before, as the number that represents zero.
 */
void write_qconv_2d(struct emit *e)
{
    const struct attr_qconv_2d *a = &e->n->attr.qconv_2d;
    const int64_t *p = a->padding.at, pads[] = {0, 0, p[0], p[1], 0, 0, p[0], p[1]};
    rlx_str zero = emit_number(e, RLX_DTYPE_i8, (double)a->x_zp), x = e->in[0];

    if (p[0] || p[1])
        x = emit_3(e, "Pad", x, emit_i64s(e, pads, 8), zero);
    const rlx_str in[] = {x, e->in[1], zero, emit_number(e, RLX_DTYPE_i8, (double)a->w_zp)};
    rlx_str sum = emit_node(e, "ConvInteger", in, 4);
    emit_ints(e, "kernel_shape", a->kernel_size.at, 2);
    emit_ints(e, "strides", a->stride.at, 2);
    emit_ints(e, "dilations", a->dilation.at, 2);
    emit_int(e, "group", a->groups);
    rlx_str bias = emit_reshape(e, e->in[2], RLX_LIST(RLX_DIM_INFER, 1, 1));
    rescale(e, emit_2(e, "Add", sum, bias), a->mult, a->out_zp);
}
