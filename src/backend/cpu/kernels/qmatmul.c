/* qmatmul.c: products of i8 with rescaling, qmatmul and qconv_2d (ops-core 19.2).
 *
 *     out = sat8(round(mult * (bias + sum of (x - x_zp) (w - w_zp))) + out_zp)
 *
 * Elements less their zero points fit int16_t, and products of pairs of these are what CPUs add up
 * best (GEMM_I16). Sums are i32 and wrap. */
#include "backend/cpu/kernels/conv_core.h"
#include "backend/cpu/kernels/quant_tile.h"

struct rescale {
    double mult;
    int64_t out_zp;
};

/* n sums with their biases (bias_step 0: one for all) to i8. */
static void rescale_row(const struct rescale *s, const uint32_t *sum, const int32_t *bias,
                        int64_t bias_step, int8_t *out, int64_t n)
{
    double mult = s->mult, zp = (double)s->out_zp;

    for (int64_t i = 0; i < n; i++) {
        int32_t total = (int32_t)(sum[i] + (uint32_t)bias[i * bias_step]);
        double v = quant_round(mult * (double)total) + zp;
        v = v < INT8_MIN ? INT8_MIN : v;
        out[i] = (int8_t)(v > INT8_MAX ? INT8_MAX : v);
    }
}

/* ---- qmatmul ------------------------------------------------------------------------------- */

struct qproduct {
    const struct cpu_tensor *x, *w, *bias, *out;
    int64_t m, n, k;
    int x_zp, w_zp;
    struct rescale rescale;
};

/* Rows of x: each line's k lie together. */
static void pack_x(const void *ctx, const struct gemm_part *p)
{
    const struct qproduct *q = ctx;
    const int8_t *x = (const int8_t *)q->x->data + p->line * q->k + p->k;
    int64_t lanes = (p->ks + 1) / 2;
    int16_t *to = p->panel;

    for (int64_t l = 0; l < gemm_up(p->lines, p->width); l++) {
        int16_t *lane = to + (l / p->width * lanes * p->width + l % p->width) * 2;
        for (int64_t j = 0; j < lanes * 2; j++)
            lane[j / 2 * p->width * 2 + j % 2] =
                l < p->lines && j < p->ks ? (int16_t)(x[l * q->k + j] - q->x_zp) : 0;
    }
}

/* Columns of w: the lines of one k lie together. */
static void pack_w(const void *ctx, const struct gemm_part *p)
{
    const struct qproduct *q = ctx;
    const int8_t *w = (const int8_t *)q->w->data + p->k * q->n + p->line;
    int64_t lanes = (p->ks + 1) / 2;
    int16_t *to = p->panel;

    memset(to, 0, (size_t)(gemm_up(p->lines, p->width) * lanes * 2) * sizeof *to);
    for (int64_t l = 0; l < p->lines; l += p->width) {
        int64_t n = cpu_min_i64(p->width, p->lines - l);
        for (int64_t j = 0; j < p->ks; j++) {
            int16_t *row = to + (l * lanes + j / 2 * p->width) * 2 + j % 2;
            for (int64_t i = 0; i < n; i++)
                row[i * 2] = (int16_t)(w[j * q->n + l + i] - q->w_zp);
        }
    }
}

static void store_product(const void *ctx, const struct gemm_block *b)
{
    const struct qproduct *q = ctx;

    for (int64_t r = 0; r < b->rows; r++)
        rescale_row(&q->rescale, (const uint32_t *)b->sum + r * b->ld,
                    (const int32_t *)q->bias->data + b->col, 1,
                    (int8_t *)q->out->data + (b->row + r) * q->n + b->col, b->cols);
}

/* Leading axes of x are rows. */
static void describe(const struct cpu_call *c, struct qproduct *q, struct gemm *g)
{
    const struct attr_qmatmul *a = &c->attr->qmatmul;

    *q = (struct qproduct){.x = &c->in[0], .w = &c->in[1], .bias = &c->in[2], .out = c->out};
    q->x_zp = (int)a->x_zp;
    q->w_zp = (int)a->w_zp;
    q->rescale = (struct rescale){.mult = (double)a->mult, .out_zp = a->out_zp};
    q->k = q->w->dim[0];
    q->n = q->w->dim[1];
    q->m = c->out->count / q->n;
    *g = (struct gemm){.kind = GEMM_I16,
                       .items = 1,
                       .m = q->m,
                       .n = q->n,
                       .k = q->k,
                       .pack_a = pack_x,
                       .pack_b = pack_w,
                       .in_scratch = true,
                       .store = store_product,
                       .ctx = q};
}

static uint64_t qmatmul_scratch(const struct cpu_call *c)
{
    struct qproduct q;
    struct gemm g;

    if (c->out->count == 0)
        return 0;
    describe(c, &q, &g);
    return gemm_scratch(&g, c->pool);
}

static void qmatmul(const struct cpu_call *c)
{
    struct qproduct q;
    struct gemm g;

    if (c->out->count == 0)
        return;
    describe(c, &q, &g);
    gemm_run(&g, c->pool, c->scratch);
}

/* ---- qconv_2d ------------------------------------------------------------------------------ */

/* Columns are positions, of one image or of all. */
static void store_conv(const void *ctx, const struct gemm_block *b)
{
    const struct conv *v = ctx;
    const struct attr_qconv_2d *a = &v->call->attr->qconv_2d;
    const struct rescale rescale = {.mult = (double)a->mult, .out_zp = a->out_zp};
    int64_t plane = windows_volume(v->out_dim), n;

    for (int64_t r = 0; r < b->rows; r++) {
        int64_t co = b->item % v->groups * v->m + b->row + r;
        const int32_t *bias = (const int32_t *)v->call->in[2].data + co;
        for (int64_t j = 0; j < b->cols; j += n) {
            int64_t pos = (b->col + j) % plane;
            int64_t image = (b->col + j) / plane + b->item / v->groups;
            n = cpu_min_i64(b->cols - j, plane - pos);
            rescale_row(&rescale, (const uint32_t *)b->sum + r * b->ld + j, bias, 0,
                        (int8_t *)v->out->data + (image * v->groups * v->m + co) * plane + pos, n);
        }
    }
}

static void describe_conv(const struct cpu_call *c, struct conv *v)
{
    const struct attr_qconv_2d *a = &c->attr->qconv_2d;
    const struct conv_lists l = {&a->stride, &a->padding, &a->dilation};

    *v = (struct conv){.src = &c->in[0],
                       .w = &c->in[1],
                       .out = c->out,
                       .call = c,
                       .store = store_conv,
                       .x_zero = a->x_zp,
                       .w_zero = a->w_zp};
    conv_prepare(v, &l, a->groups);
}

static uint64_t qconv_2d_scratch(const struct cpu_call *c)
{
    struct conv v;

    if (c->out->count == 0)
        return 0;
    describe_conv(c, &v);
    return conv_scratch(&v, c->pool);
}

static void qconv_2d(const struct cpu_call *c)
{
    struct conv v;

    if (c->out->count == 0)
        return;
    describe_conv(c, &v);
    conv_run(&v, c->pool, c->scratch);
}

extern const struct cpu_kernel CPU_NAME(cpu_qmatmul);
extern const struct cpu_kernel CPU_NAME(cpu_qconv_2d);
const struct cpu_kernel CPU_NAME(cpu_qmatmul) = {.run = qmatmul, .scratch = qmatmul_scratch};
const struct cpu_kernel CPU_NAME(cpu_qconv_2d) = {.run = qconv_2d, .scratch = qconv_2d_scratch};
