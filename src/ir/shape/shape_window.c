/* shape_window.c: shape rules of convolution, pooling and what belongs to them (ops-core.md 12).
 *
 * Per spatial axis with size L, kernel k, stride s, padding p, dilation d, a window spans
 * d (k-1) + 1 elements, and there are (L + 2p - span) / s + 1 of them. Batch and spatial axes may
 * be symbolic; channels and kernels are static. */
#include <inttypes.h>

#include "ir/shape/shape_need.h"

#define MAX_SPATIAL 3

/* The attributes of a window, wherever they are stored; a NULL list is one the op does not have. */
struct window {
    rlx_list *kernel, *stride, *padding, *dilation;
    int32_t axes; /* spatial */
    int64_t span[MAX_SPATIAL];
};

#define WINDOW_OF(a, dilation_)                                                        \
    {                                                                                  \
        .kernel = &(a)->kernel_size, .stride = &(a)->stride, .padding = &(a)->padding, \
        .dilation = (dilation_)                                                        \
    }

/* An attribute list with one entry per spatial axis; an empty one becomes the default. */
static rlx_status fill_list(struct shape_call *c, const char *what, rlx_list *l, int32_t axes,
                            int64_t def, int64_t least)
{
    if (!l)
        return RLX_OK;
    if (l->count == 0) {
        for (int32_t i = 0; i < axes; i++)
            l->at[i] = def;
        l->count = axes;
    }
    if (l->count != axes)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: %s has %d entries, there are %d spatial axes", c->name,
                          what, l->count, axes);
    for (int32_t i = 0; i < axes; i++)
        TRY(shape_need_range(c, what, l->at[i], least, INT64_MAX));
    return RLX_OK;
}

static int64_t list_at(const rlx_list *l, int32_t i, int64_t def)
{
    return l ? l->at[i] : def;
}

/* Defaults filled in, ranges checked, spans computed. The kernel is known: from w, or required. */
static rlx_status settle_window(struct shape_call *c, struct window *w)
{
    if (w->kernel->count == 0)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: kernel_size is missing", c->name);
    TRY(fill_list(c, "kernel_size", w->kernel, w->axes, 1, 1));
    TRY(fill_list(c, "stride", w->stride, w->axes, 1, 1));
    TRY(fill_list(c, "padding", w->padding, w->axes, 0, 0));
    TRY(fill_list(c, "dilation", w->dilation, w->axes, 1, 1));
    for (int32_t i = 0; i < w->axes; i++) {
        int64_t d = list_at(w->dilation, i, 1), k = w->kernel->at[i];
        if (__builtin_mul_overflow(d, k - 1, &w->span[i]) ||
            __builtin_add_overflow(w->span[i], 1, &w->span[i]))
            return SHAPE_FAIL(c, LIMIT,
                              "%s: a kernel of %" PRId64 " with dilation %" PRId64
                              " spans more than 64 bits can count",
                              c->name, k, d);
    }
    return RLX_OK;
}

/* How many windows there are along spatial axis i of size `size`. */
static rlx_status window_count(struct shape_call *c, const struct window *w, int32_t i, ir_dim size,
                               ir_dim *out)
{
    struct dim_table *t = c->mod->dims;
    int64_t p = list_at(w->padding, i, 0), s = list_at(w->stride, i, 1);
    ir_dim padded = dim_add(t, size, dim_mul(t, 2, p));

    if (!shape_at_least(c, padded, w->span[i], "padded sizes and window spans"))
        return SHAPE_FAIL(c, SHAPE,
                          "%s: a window of %" PRId64 " does not fit axis %d of %s with padding "
                          "%" PRId64,
                          c->name, w->span[i], i + 2, dim_text(c, size), p);
    *out = dim_add(t, dim_floor_div(t, dim_sub(t, padded, w->span[i]), s), 1);
    return RLX_OK;
}

/* ---- convolution --------------------------------------------------------------------------- */

/* A convolution's window, and the channels its operands must have. */
struct conv {
    struct window win;
    int64_t groups;
    ir_dim in_channels, out_channels;
};

#define CONV_OF(a)                                                 \
    {                                                              \
        .win = WINDOW_OF(a, &(a)->dilation), .groups = (a)->groups \
    }

/* kernel_size as w has it, filled in where it was left open. */
static rlx_status kernel_from_weight(struct shape_call *c, rlx_list *kernel,
                                     const struct ir_type *w)
{
    int32_t axes = w->rank - 2;

    for (int32_t i = 0; i < w->rank; i++)
        TRY(shape_need_static(c, w->dim[i], "every size of w"));
    if (kernel->count == 0) {
        for (int32_t i = 0; i < axes; i++)
            kernel->at[i] = w->dim[i + 2];
        kernel->count = axes;
    }
    bool same = kernel->count == axes;
    for (int32_t i = 0; same && i < axes; i++)
        same = kernel->at[i] == w->dim[i + 2];
    if (same)
        return RLX_OK;
    return SHAPE_FAIL(c, ATTRIBUTE, "%s: kernel_size %s differs from that of w, %s", c->name,
                      ints_text(c, kernel), dims_text(c, w->dim + 2, axes));
}

static rlx_status need_groups(struct shape_call *c, int64_t groups, int64_t channels,
                              const char *what)
{
    TRY(shape_need_range(c, "groups", groups, 1, INT64_MAX));
    if (channels % groups == 0)
        return RLX_OK;
    return SHAPE_FAIL(c, ATTRIBUTE, "%s: groups %" PRId64 " does not divide the %" PRId64 " %s",
                      c->name, groups, channels, what);
}

/* x [n,cin,*] and w [cout,cin/groups,kernel], given as shapes since gradients lack one of them. */
static rlx_status settle_conv(struct shape_call *c, struct conv *v, const struct ir_type *x,
                              const struct ir_type *w)
{
    if (x->rank != w->rank)
        return SHAPE_FAIL(c, SHAPE, "%s: x and w have different ranks: %d and %d", c->name, x->rank,
                          w->rank);
    TRY(kernel_from_weight(c, v->win.kernel, w));
    TRY(shape_need_static(c, x->dim[1], "the channels of x"));
    v->win.axes = x->rank - 2;
    v->in_channels = x->dim[1];
    v->out_channels = w->dim[0];
    TRY(settle_window(c, &v->win));
    TRY(need_groups(c, v->groups, v->in_channels, "channels of x"));
    TRY(need_groups(c, v->groups, v->out_channels, "channels of the result"));
    return shape_need_equal(c, w->dim[1], v->in_channels / v->groups,
                            "channels per group of w and x");
}

/* [n, cout, windows...] */
static rlx_status conv_dims(struct shape_call *c, const struct conv *v, const struct ir_type *x,
                            ir_dim *out)
{
    out[0] = x->dim[0];
    out[1] = v->out_channels;
    for (int32_t i = 0; i < v->win.axes; i++)
        TRY(window_count(c, &v->win, i, x->dim[i + 2], &out[i + 2]));
    return RLX_OK;
}

static rlx_status need_image(struct shape_call *c, int32_t operand)
{
    return shape_need_rank(c, operand, 3, 2 + MAX_SPATIAL);
}

rlx_status shape_conv(struct shape_call *c)
{
    struct conv v = CONV_OF(&c->attr->conv);
    ir_dim dim[2 + MAX_SPATIAL];

    TRY(shape_need_floats(c, 2));
    TRY(need_image(c, 0));
    TRY(need_image(c, 1));
    TRY(settle_conv(c, &v, c->in[0], c->in[1]));
    TRY(conv_dims(c, &v, c->in[0], dim));
    return shape_result(c, c->in[0]->dtype, c->in[0]->rank, dim);
}

/* fused_conv_bias_act: x, w, bias [cout], and residual, which is like the result. */
rlx_status shape_fused_conv_bias_act(struct shape_call *c)
{
    const struct attr_fused_conv_bias_act *attr = &c->attr->fused_conv_bias_act;
    struct conv v = CONV_OF(&c->attr->fused_conv_bias_act);
    ir_dim dim[2 + MAX_SPATIAL];

    if (attr->has_residual)
        TRY(shape_need_inputs(c, 4, "has_residual"));
    else
        TRY(shape_need_inputs(c, 3, "has_residual off"));
    TRY(shape_need_floats(c, c->in_count));
    TRY(need_image(c, 0));
    TRY(need_image(c, 1));
    TRY(settle_conv(c, &v, c->in[0], c->in[1]));
    TRY(shape_need_activation(c, attr->activation, c->in[0]->dtype));
    TRY(conv_dims(c, &v, c->in[0], dim));
    TRY(shape_need_dims(c, 2, &v.out_channels, 1));
    if (attr->has_residual)
        TRY(shape_need_dims(c, 3, dim, c->in[0]->rank));
    return shape_result(c, c->in[0]->dtype, c->in[0]->rank, dim);
}

/* qconv_2d: i8 x [n,cin,h,w], i8 w, i32 bias [cout] -> i8. */
rlx_status shape_qconv_2d(struct shape_call *c)
{
    const struct attr_qconv_2d *attr = &c->attr->qconv_2d;
    struct conv v = CONV_OF(&c->attr->qconv_2d);
    ir_dim dim[2 + MAX_SPATIAL];

    TRY(shape_need_dtype(c, 0, RLX_DTYPE_i8));
    TRY(shape_need_dtype(c, 1, RLX_DTYPE_i8));
    TRY(shape_need_dtype(c, 2, RLX_DTYPE_i32));
    TRY(shape_need_rank(c, 0, 4, 4));
    TRY(shape_need_rank(c, 1, 4, 4));
    TRY(settle_conv(c, &v, c->in[0], c->in[1]));
    TRY(shape_need_range(c, "x_zp", attr->x_zp, INT8_MIN, INT8_MAX));
    TRY(shape_need_range(c, "w_zp", attr->w_zp, INT8_MIN, INT8_MAX));
    TRY(shape_need_range(c, "out_zp", attr->out_zp, INT8_MIN, INT8_MAX));
    TRY(conv_dims(c, &v, c->in[0], dim));
    TRY(shape_need_dims(c, 2, &v.out_channels, 1));
    return shape_result(c, RLX_DTYPE_i8, 4, dim);
}

/* ---- its gradients ------------------------------------------------------------------------- */

/* dy has the shape of the convolution of x. Where the convolution stands for a transposed one, x
 * may be longer by an output_padding below max(stride, dilation), which dilation can turn into
 * whole windows that dy does not have. */
static rlx_status need_upstream(struct shape_call *c, int32_t operand, const struct conv *v,
                                const struct ir_type *x)
{
    const struct ir_type *dy = c->in[operand];
    ir_dim dim[2 + MAX_SPATIAL];

    TRY(conv_dims(c, v, x, dim));
    if (dy->rank != x->rank)
        return shape_need_dims(c, operand, dim, x->rank);
    for (int32_t i = 0; i < v->win.axes; i++) {
        int64_t s = v->win.stride->at[i], d = v->win.dilation->at[i];
        ir_dim have = dy->dim[i + 2], full = dim[i + 2];
        if (d <= s || have == full)
            continue;
        TRY(shape_need_least(c, full, have, "windows of x, compared with dy,"));
        TRY(shape_need_least(c, dim_add(c->mod->dims, have, (d - 1) / s), full, "sizes of dy"));
        dim[i + 2] = have;
    }
    return shape_need_dims(c, operand, dim, x->rank);
}

/* conv_backward_input: dy, w -> x_shape. */
rlx_status shape_conv_backward_input(struct shape_call *c)
{
    const rlx_list *x_shape = &c->attr->conv_backward_input.x_shape;
    struct conv v = CONV_OF(&c->attr->conv_backward_input);
    struct ir_type x = {.dtype = c->in[0]->dtype, .rank = x_shape->count};

    TRY(shape_need_floats(c, 2));
    TRY(need_image(c, 1));
    if (x.rank != c->in[1]->rank)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: x_shape has %d sizes, w has rank %d", c->name, x.rank,
                          c->in[1]->rank);
    for (int32_t i = 0; i < x.rank; i++) {
        TRY(shape_need_size(c, "x_shape", x_shape->at[i]));
        x.dim[i] = x_shape->at[i];
    }
    TRY(settle_conv(c, &v, &x, c->in[1]));
    TRY(need_upstream(c, 0, &v, &x));
    return shape_result(c, x.dtype, x.rank, x.dim);
}

/* conv_backward_weight: x, dy -> [cout, cin/groups, kernel]. */
rlx_status shape_conv_backward_weight(struct shape_call *c)
{
    struct conv v = CONV_OF(&c->attr->conv_backward_weight);
    const struct ir_type *x = c->in[0], *dy = c->in[1];
    struct ir_type w = {.dtype = x->dtype, .rank = x->rank};

    TRY(shape_need_floats(c, 2));
    TRY(need_image(c, 0));
    TRY(need_image(c, 1));
    TRY(shape_need_static(c, x->dim[1], "the channels of x"));
    TRY(shape_need_static(c, dy->dim[1], "the channels of dy"));
    v.win.axes = x->rank - 2;
    TRY(settle_window(c, &v.win));
    TRY(need_groups(c, v.groups, x->dim[1], "channels of x"));
    TRY(need_groups(c, v.groups, dy->dim[1], "channels of dy"));
    v.in_channels = x->dim[1];
    v.out_channels = dy->dim[1];
    TRY(need_upstream(c, 1, &v, x));
    w.dim[0] = v.out_channels;
    w.dim[1] = v.in_channels / v.groups;
    for (int32_t i = 0; i < v.win.axes; i++)
        w.dim[i + 2] = v.win.kernel->at[i];
    return shape_result(c, w.dtype, w.rank, w.dim);
}

/* ---- transposed convolution ---------------------------------------------------------------- */

/* (L-1) s - 2p + span + op, which must not be negative. */
static rlx_status transposed_size(struct shape_call *c, const struct window *w, int32_t i,
                                  int64_t op, ir_dim size, ir_dim *out)
{
    struct dim_table *t = c->mod->dims;
    int64_t p = w->padding->at[i], s = w->stride->at[i];
    ir_dim more = dim_add(t, dim_add(t, dim_mul(t, size, s), w->span[i]), op);
    ir_dim less = dim_add(t, dim_mul(t, 2, p), s);

    if (!shape_at_least(c, more, less, "sizes and their padding"))
        return SHAPE_FAIL(c, SHAPE,
                          "%s: axis %d of %s with padding %" PRId64 " would have a negative size",
                          c->name, i + 2, dim_text(c, size), p);
    *out = dim_sub(t, more, less);
    return RLX_OK;
}

/* x [n,cin,*], w [cin,cout/groups,kernel] in two or three dimensions. */
rlx_status shape_conv_transpose(struct shape_call *c)
{
    struct attr_conv_transpose *attr = &c->attr->conv_transpose;
    struct window win = WINDOW_OF(attr, &attr->dilation);
    const struct ir_type *x = c->in[0], *w = c->in[1];
    ir_dim dim[2 + MAX_SPATIAL];

    TRY(shape_need_floats(c, 2));
    TRY(shape_need_rank(c, 0, 4, 5));
    TRY(shape_need_rank(c, 1, x->rank, x->rank));
    TRY(kernel_from_weight(c, win.kernel, w));
    TRY(shape_need_static(c, x->dim[1], "the channels of x"));
    win.axes = x->rank - 2;
    TRY(settle_window(c, &win));
    TRY(fill_list(c, "output_padding", &attr->output_padding, win.axes, 0, 0));
    TRY(need_groups(c, attr->groups, x->dim[1], "channels of x"));
    TRY(shape_need_equal(c, x->dim[1], w->dim[0], "channels of x and w"));
    dim[0] = x->dim[0];
    dim[1] = dim_mul(c->mod->dims, w->dim[1], attr->groups);
    for (int32_t i = 0; i < win.axes; i++) {
        int64_t s = attr->stride.at[i], d = attr->dilation.at[i];
        int64_t op = attr->output_padding.at[i];
        TRY(shape_need_range(c, "output_padding", op, 0, (s > d ? s : d) - 1));
        TRY(transposed_size(c, &win, i, op, x->dim[i + 2], &dim[i + 2]));
    }
    return shape_result(c, x->dtype, x->rank, dim);
}

/* ---- pooling ------------------------------------------------------------------------------- */

/* Every window meets the input: padding below the kernel, and there is an input. */
static rlx_status pool_dims(struct shape_call *c, struct window *w, ir_dim *out)
{
    const struct ir_type *x = c->in[0];

    w->axes = x->rank - 2;
    TRY(settle_window(c, w));
    out[0] = x->dim[0];
    out[1] = x->dim[1];
    for (int32_t i = 0; i < w->axes; i++) {
        if (w->padding->at[i] >= w->kernel->at[i])
            return SHAPE_FAIL(c, SHAPE,
                              "%s: padding %" PRId64 " is not smaller than kernel_size %" PRId64,
                              c->name, w->padding->at[i], w->kernel->at[i]);
        TRY(shape_need_least(c, x->dim[i + 2], 1, "spatial sizes"));
        TRY(window_count(c, w, i, x->dim[i + 2], &out[i + 2]));
    }
    return RLX_OK;
}

rlx_status shape_pool(struct shape_call *c)
{
    struct attr_pool *attr = &c->attr->pool;
    struct window win = WINDOW_OF(attr, NULL);
    ir_dim dim[2 + MAX_SPATIAL];

    TRY(shape_need_class(c, 0, attr->kind == RLX_POOL_KIND_mean ? CLASS_F : CLASS_REAL));
    TRY(need_image(c, 0));
    TRY(pool_dims(c, &win, dim));
    return shape_result(c, c->in[0]->dtype, c->in[0]->rank, dim);
}

/* max_pool_backward: x, dy -> like x. */
rlx_status shape_max_pool_backward(struct shape_call *c)
{
    struct attr_max_pool_backward *attr = &c->attr->max_pool_backward;
    struct window win = WINDOW_OF(attr, NULL);
    ir_dim dim[2 + MAX_SPATIAL];

    TRY(shape_need_floats(c, 2));
    TRY(need_image(c, 0));
    TRY(pool_dims(c, &win, dim));
    TRY(shape_need_dims(c, 1, dim, c->in[0]->rank));
    return shape_result_like(c, 0);
}

/* im2col: [n,c,h,w] -> [n ho wo, c kh kw]. */
rlx_status shape_im2col(struct shape_call *c)
{
    struct attr_im2col *attr = &c->attr->im2col;
    struct window win = WINDOW_OF(attr, &attr->dilation);
    const struct ir_type *x = c->in[0];
    ir_dim rows[3], columns[3];

    TRY(shape_need_class(c, 0, CLASS_F));
    TRY(shape_need_rank(c, 0, 4, 4));
    TRY(shape_need_static(c, x->dim[1], "the channels of x"));
    win.axes = 2;
    TRY(settle_window(c, &win));
    rows[0] = x->dim[0];
    columns[0] = x->dim[1];
    for (int32_t i = 0; i < 2; i++) {
        TRY(window_count(c, &win, i, x->dim[i + 2], &rows[i + 1]));
        columns[i + 1] = attr->kernel_size.at[i];
    }
    const ir_dim dim[2] = {shape_product(c, rows, 3), shape_product(c, columns, 3)};
    return shape_result(c, x->dtype, 2, dim);
}
