/* onnx_write_window.c: convolution and pooling. Padding is the same on both sides here; ONNX lists
 * the fronts, then the backs. */
#include "import/onnx/write/onnx_emit.h"

static void window_attrs(struct emit *e, const rlx_list *kernel, const rlx_list *stride,
                         const rlx_list *padding, const rlx_list *dilation)
{
    int64_t pads[2 * RLX_MAX_RANK];
    size_t n = (size_t)kernel->count;

    for (size_t i = 0; i < 2 * n; i++)
        pads[i] = padding->at[i % n];
    emit_ints(e, "kernel_shape", kernel->at, n);
    emit_ints(e, "strides", stride->at, n);
    emit_ints(e, "pads", pads, 2 * n);
    if (dilation)
        emit_ints(e, "dilations", dilation->at, n);
}

void write_conv(struct emit *e)
{
    const struct attr_conv *a = &e->n->attr.conv;
    rlx_str y = emit_2(e, "Conv", e->in[0], e->in[1]);

    window_attrs(e, &a->kernel_size, &a->stride, &a->padding, &a->dilation);
    emit_int(e, "group", a->groups);
    emit_give(e, y);
}

void write_conv_transpose(struct emit *e)
{
    const struct attr_conv_transpose *a = &e->n->attr.conv_transpose;
    rlx_str y = emit_2(e, "ConvTranspose", e->in[0], e->in[1]);

    window_attrs(e, &a->kernel_size, &a->stride, &a->padding, &a->dilation);
    emit_ints(e, "output_padding", a->output_padding.at, (size_t)a->output_padding.count);
    emit_int(e, "group", a->groups);
    emit_give(e, y);
}

/* ---- pooling ---- */

/* What to pool in: floats that hold the elements, and sums of them, exactly; t itself where there
 * are none. */
static rlx_dtype pooled_type(rlx_dtype t, bool extreme)
{
    switch (t) {
    case RLX_DTYPE_i8:
    case RLX_DTYPE_u8:
    case RLX_DTYPE_i16:
    case RLX_DTYPE_u16: return extreme ? RLX_DTYPE_f32 : RLX_DTYPE_f64;
    case RLX_DTYPE_i32:
    case RLX_DTYPE_u32: return extreme ? RLX_DTYPE_f64 : t;
    case RLX_DTYPE_f16:
    case RLX_DTYPE_bf16: return extreme ? t : RLX_DTYPE_f32;
    default: return t;
    }
}

static rlx_str average(struct emit *e, rlx_str x, rlx_dtype t, bool sum)
{
    const struct attr_pool *a = &e->n->attr.pool;
    double cells = 1;
    rlx_str y = emit_1(e, "AveragePool", x);

    window_attrs(e, &a->kernel_size, &a->stride, &a->padding, NULL);
    emit_int(e, "count_include_pad", sum || a->count_include_pad);
    for (int32_t i = 0; i < a->kernel_size.count; i++)
        cells *= (double)a->kernel_size.at[i];
    return sum ? emit_2(e, "Mul", y, emit_number(e, t, cells)) : y;
}

static rlx_str extreme(struct emit *e, rlx_str x, bool least)
{
    const struct attr_pool *a = &e->n->attr.pool;
    rlx_str y = emit_1(e, "MaxPool", least ? emit_1(e, "Neg", x) : x);

    window_attrs(e, &a->kernel_size, &a->stride, &a->padding, NULL);
    return least ? emit_1(e, "Neg", y) : y;
}

void write_pool(struct emit *e)
{
    int32_t kind = e->n->attr.pool.kind;
    bool least = kind == RLX_POOL_KIND_min, most = kind == RLX_POOL_KIND_max;
    rlx_dtype t = e->n->type.dtype, in = pooled_type(t, least || most);

    if (kind == RLX_POOL_KIND_prod || !dtype_is(in, CLASS_F)) {
        emit_refuse(e, "ONNX has no pooling by %s of %s", enum_word("pool_kind", kind),
                    rlx_dtype_name(t));
        return;
    }
    rlx_str x = emit_cast(e, e->in[0], t, in);
    rlx_str y = least || most ? extreme(e, x, least) : average(e, x, in, kind == RLX_POOL_KIND_sum);
    if (dtype_is(t, CLASS_INT))
        y = least || most ? y : emit_1(e, "Round", y); /* the mean came first */
    emit_give(e, emit_cast(e, y, in, t));
}

/* ---- windows as rows ---- */

/* A convolution whose kernels pick one cell each. */
void write_im2col(struct emit *e)
{
    const struct attr_im2col *a = &e->n->attr.im2col;
    const struct ir_type *x = emit_type(e, 0);
    int64_t channels = x->dim[1], cells = a->kernel_size.at[0] * a->kernel_size.at[1];
    size_t picks = (size_t)(channels * cells), room;
    float *w = NULL;

    if (size_mul(picks, (size_t)cells, &room))
        w = arena_array(e->w->arena, float, room);
    if (!w || !dtype_is(x->dtype, CLASS_F)) {
        emit_refuse(e, "it is too large, or not of floats");
        return;
    }
    for (size_t i = 0; i < picks; i++)
        w[i * (size_t)cells + i % (size_t)cells] = 1;
    rlx_str ones =
        emit_const(e, RLX_DTYPE_f32,
                   RLX_LIST((int64_t)picks, 1, a->kernel_size.at[0], a->kernel_size.at[1]), w);
    rlx_str y = emit_2(e, "Conv", e->in[0], emit_cast(e, ones, RLX_DTYPE_f32, x->dtype));
    window_attrs(e, &a->kernel_size, &a->stride, &a->padding, &a->dilation);
    emit_int(e, "group", channels);
    y = emit_transpose(e, y, (const int64_t[]){0, 2, 3, 1}, 4);
    emit_give(e, emit_reshape(e, y, RLX_LIST(RLX_DIM_INFER, (int64_t)picks)));
}
