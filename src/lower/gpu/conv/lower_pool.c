/* lower_pool.c: windows of images without products: pooling, its gradient, and windows as rows. */
#include "lower/gpu/move/lower_move.h"
#include "lower/gpu/order/lower_sort.h"
#include "lower/gpu/rows/lower_combine.h"

#define SMALL 25 /* windows of so many taps are loaded at once */
#define LARGE 32 /* those of more are shared by invocations */

/* The words of a kernel's window: sizes of an image with three axes, of what comes of it, and the
 * window's own. */
static void add_three(struct gpu_call *c, const char *name, const int64_t *at, int32_t count,
                      uint64_t otherwise)
{
    for (int32_t i = count; i < 3; i++)
        gpu_u32(c, name, otherwise);
    for (int32_t i = 0; i < count; i++)
        gpu_u32(c, name, (uint64_t)at[i]);
}

static void add_window(struct gpu_call *c, const struct ir_type *x, const struct ir_type *y,
                       const rlx_list *kernel, const rlx_list *stride, const rlx_list *padding)
{
    int32_t axes = x->rank - 2;

    add_three(c, "size", x->dim + 2, axes, 1);
    add_three(c, "out_size", y->dim + 2, axes, 1);
    add_three(c, "taps", kernel->at, axes, 1);
    add_three(c, "step", stride->at, axes, 1);
    add_three(c, "pad", padding->at, axes, 0);
}

static rlx_op pool_op(int32_t kind)
{
    switch (kind) {
    case RLX_POOL_KIND_max: return RLX_OP_max;
    case RLX_POOL_KIND_min: return RLX_OP_min;
    case RLX_POOL_KIND_prod: return RLX_OP_mul;
    default: return RLX_OP_add;
    }
}

/* A window's sizes as constants; 0: they are words. */
static void add_taps(struct gpu_call *c, const rlx_list *kernel, bool small)
{
    const char *const name[] = {"K0", "K1", "K2"};

    for (int32_t i = 0; i < 3; i++) {
        int32_t axis = i - (3 - kernel->count);
        gpu_const(c, name[i], !small ? 0 : axis < 0 ? 1 : kernel->at[axis]);
    }
}

void gpu_lower_pool(struct gpu_call *c)
{
    const struct attr_pool *a = &c->attr->pool;
    struct gpu_acc acc = gpu_accumulator(c, pool_op(a->kind), c->out->dtype);
    bool mean = a->kind == RLX_POOL_KIND_mean, paired = mean && c->out->dtype != RLX_DTYPE_f64;
    uint64_t count = gpu_count(c->out), taps = 1, lanes = 1, scale = 1;

    for (int32_t i = 0; i < a->kernel_size.count; i++)
        taps *= (uint64_t)a->kernel_size.at[i];
    while (taps > LARGE && lanes < GPU_GROUP && lanes * 8 < taps)
        lanes *= 2;
    while (scale < taps)
        scale *= 2;
    gpu_kernel(c, "pool", "pool");
    gpu_name(c, "T", acc.element);
    gpu_name(c, "A", paired ? "f32x2" : acc.type);
    gpu_name(c, "S", paired ? "f32x2" : acc.shared);
    gpu_const(c, "OP", acc.op);
    gpu_flag(c, "WIDE", acc.wide);
    gpu_flag(c, "MEAN", mean);
    gpu_flag(c, "PAIRED", paired);
    gpu_flag(c, "ALL", a->count_include_pad);
    gpu_const(c, "LANES", (int64_t)lanes);
    add_taps(c, &a->kernel_size, taps <= SMALL);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", count);
    gpu_u32(c, "low", acc.start[0]);
    gpu_u32(c, "high", acc.start[1]);
    gpu_f32(c, "scale", 1.0 / (double)scale);
    add_window(c, &c->in[0], c->out, &a->kernel_size, &a->stride, &a->padding);
    gpu_groups(c, gpu_ceil(count, GPU_GROUP / lanes));
}

void gpu_lower_max_pool_backward(struct gpu_call *c)
{
    const struct attr_max_pool_backward *a = &c->attr->max_pool_backward;
    const struct ir_type *x = &c->in[0], *dy = &c->in[1];
    struct gpu_acc acc = gpu_accumulator(c, RLX_OP_add, x->dtype);
    struct gpu_arg winner = gpu_temp(c, gpu_count(dy) * sizeof(uint32_t));

    gpu_kernel(c, "pool", "winners");
    gpu_order_type(c, x->dtype);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, winner);
    gpu_u32(c, "count", gpu_count(dy));
    add_window(c, x, dy, &a->kernel_size, &a->stride, &a->padding);
    gpu_invocations(c, gpu_count(dy), GPU_GROUP);

    gpu_kernel(c, "pool", "from_winners");
    gpu_name(c, "T", acc.element);
    gpu_name(c, "A", acc.type);
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, winner);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", gpu_count(x));
    add_window(c, x, dy, &a->kernel_size, &a->stride, &a->padding);
    gpu_invocations(c, gpu_count(x), GPU_GROUP);
}

void gpu_lower_im2col(struct gpu_call *c)
{
    const struct attr_im2col *a = &c->attr->im2col;
    const struct ir_type *x = &c->in[0];
    uint64_t count = gpu_count(c->out);
    int64_t out[2];

    for (int32_t i = 0; i < 2; i++)
        out[i] = (x->dim[2 + i] + 2 * a->padding.at[i] -
                  a->dilation.at[i] * (a->kernel_size.at[i] - 1) - 1) /
                     a->stride.at[i] +
                 1;
    gpu_kernel(c, "pool", "im2col");
    gpu_name(c, "W", gpu_word(rlx_dtype_size(x->dtype)));
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", count);
    gpu_u32(c, "channels", (uint64_t)x->dim[1]);
    gpu_dims(c, "size", x->dim + 2, 2);
    gpu_dims(c, "out_size", out, 2);
    gpu_dims(c, "taps", a->kernel_size.at, 2);
    gpu_dims(c, "step", a->stride.at, 2);
    gpu_dims(c, "pad", a->padding.at, 2);
    gpu_dims(c, "apart", a->dilation.at, 2);
    gpu_invocations(c, count, GPU_GROUP);
}
