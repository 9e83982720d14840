/* lower_matmul_q8.c: products of i8 with rescaling: qmatmul and qconv_2d (ops-core.md 19.2). */
#include <math.h>

#include "lower/gpu/conv/lower_conv.h"

/* mult as mantissa 2^-shift, 1 <= shift <= 63. Sums have 32 bits, and the result is i8: a
 * number too large makes the largest of all but 0, one too small 0. */
static void rescale_words(struct gpu_call *c, double mult, int64_t x_zp, int64_t w_zp,
                          int64_t out_zp)
{
    int exponent;
    double part = frexp(fabs(mult), &exponent);
    uint64_t mantissa = (uint64_t)ldexp(part, 24);
    int shift = 24 - exponent;

    if (shift < 1) {
        mantissa = (UINT64_C(1) << 24) - 1;
        shift = 1;
    } else if (shift > 63) {
        mantissa = 0;
        shift = 1;
    }
    gpu_i32(c, "x_zero", x_zp);
    gpu_i32(c, "w_zero", w_zp);
    gpu_i32(c, "y_zero", out_zp);
    gpu_u32(c, "mantissa", mult != 0 ? mantissa : 0);
    gpu_u32(c, "shift", (uint64_t)shift);
    gpu_u32(c, "negative", mult < 0);
}

static int64_t width_of(const struct gpu_call *c, int32_t i, uint64_t stride)
{
    return stride % 4 == 0 && gpu_aligned(c, gpu_in(c, i), 4) ? 4 : 1;
}

void gpu_lower_qmatmul(struct gpu_call *c)
{
    const struct attr_qmatmul *a = &c->attr->qmatmul;
    uint64_t k = (uint64_t)c->in[1].dim[0], n = (uint64_t)c->in[1].dim[1];
    struct gpu_product of = {.items = 1, .m = n ? gpu_count(c->out) / n : 0, .n = n, .k = k};
    struct gpu_tiling t = gpu_best_tiling(&of, false);

    gpu_kernel(c, "matmul_q8", "tiled");
    gpu_tile_constants(c, t.tile);
    gpu_const(c, "VX", width_of(c, 0, k));
    gpu_const(c, "VW", width_of(c, 1, n));
    for (int32_t i = 0; i < 3; i++)
        gpu_bind(c, gpu_in(c, i));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", t.groups);
    gpu_u32(c, "m", of.m);
    gpu_u32(c, "n", n);
    gpu_u32(c, "k", k);
    rescale_words(c, (double)a->mult, a->x_zp, a->w_zp, a->out_zp);
    gpu_groups(c, t.groups);
}

void gpu_lower_qconv_2d(struct gpu_call *c)
{
    const struct attr_qconv_2d *a = &c->attr->qconv_2d;
    const struct gpu_conv_lists l = {&a->stride, &a->padding, &a->dilation, a->groups};
    struct gpu_conv v = gpu_conv_of(c, GPU_CONV_FORWARD, &l, &c->in[0], &c->in[1], c->out);
    uint64_t count = gpu_count(c->out);

    gpu_kernel(c, "conv_q8", "direct");
    gpu_conv_taps(c, &v);
    for (int32_t i = 0; i < 3; i++)
        gpu_bind(c, gpu_in(c, i));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "count", count);
    gpu_u32(c, "m", v.of.m);
    gpu_u32(c, "channels", v.channels);
    gpu_u32(c, "across", v.across);
    gpu_u32(c, "others", v.others);
    gpu_conv_shape(c, &v);
    rescale_words(c, (double)a->mult, a->x_zp, a->w_zp, a->out_zp);
    gpu_invocations(c, count, GPU_GROUP);
}
