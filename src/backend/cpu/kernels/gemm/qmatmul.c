/* qmatmul.c: products of i8 with rescaling, qmatmul and qconv_2d (ops-core.md 19.2).
 *
 *     out = sat8(round(mult * (bias + sum of (x - x_zp) (w - w_zp))) + out_zp)
 *
 * Elements less their zero points fit int16_t, and products of pairs of these are what most CPUs
 * add up best (GEMM_I16). Where a CPU multiplies bytes, and w was packed beforehand, rows hold
 * u = x + 128, and with z = x_zp + 128
 *
 *     sum of (u - z) (w - w_zp)  =  sum of u w  -  z * sum of w  -  w_zp * sum of (u - z)
 *
 * where the column's sum of w comes with its panels. Sums are i32 and wrap. */
#include "backend/cpu/kernels/conv/conv_core.h"
#include "backend/cpu/kernels/dequant/quant_tile.h"
#include "backend/cpu/kernels/gemm/gemm_amx.h"

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
    enum gemm_kind kind;   /* with w's panels at hand, if there are any */
    const void *ready;     /* those; NULL: none */
    const uint32_t *w_sum; /* of columns, for kinds of bytes */
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

/* ---- bytes --------------------------------------------------------------------------------- */

static int64_t step_of(enum gemm_kind kind)
{
    return kind == GEMM_I8_AMX ? 64 : 4;
}

static void pack_x_bytes(const void *ctx, const struct gemm_part *p)
{
    const struct qproduct *q = ctx;
    gemm_pack_u8_a(q->x->data, q->k, step_of(q->kind), p);
}

static void pack_w_bytes(const void *ctx, const struct gemm_part *p)
{
    const struct qproduct *q = ctx;
    gemm_pack_i8_b(q->w->data, q->n, step_of(q->kind), p);
}

static void sum_columns(const struct qproduct *q, uint32_t *sum)
{
    const int8_t *w = q->w->data;

    memset(sum, 0, (size_t)q->n * sizeof *sum);
    for (int64_t k = 0; k < q->k; k++)
        for (int64_t j = 0; j < q->n; j++) {
            int32_t v = w[k * q->n + j];
            sum[j] += (uint32_t)v;
        }
}

/* Takes out of n sums of one row what u - z and w - w_zp would not have put in. */
static void less_zero_points(const struct qproduct *q, int64_t row, int64_t col, uint32_t *sum,
                             int64_t n)
{
    const int8_t *x = (const int8_t *)q->x->data + row * q->k;
    uint32_t z = (uint32_t)(q->x_zp + 128), of_row = 0;

    for (int64_t k = 0; k < q->k && q->w_zp != 0; k++)
        of_row += (uint32_t)((int32_t)x[k] - q->x_zp);
    of_row *= (uint32_t)q->w_zp;
    for (int64_t j = 0; j < n; j++)
        sum[j] -= z * q->w_sum[col + j] + of_row;
}

static void store_product(const void *ctx, const struct gemm_block *b)
{
    const struct qproduct *q = ctx;

    for (int64_t r = 0; r < b->rows; r++)
        rescale_row(&q->rescale, (const uint32_t *)b->sum + r * b->ld,
                    (const int32_t *)q->bias->data + b->col, 1,
                    (int8_t *)q->out->data + (b->row + r) * q->n + b->col, b->cols);
}

static void store_bytes(const void *ctx, const struct gemm_block *b)
{
    const struct qproduct *q = ctx;

    for (int64_t r = 0; r < b->rows; r++)
        less_zero_points(q, b->row + r, b->col, (uint32_t *)b->sum + r * b->ld, b->cols);
    store_product(ctx, b);
}

static const void *ready_w(const void *ctx, int64_t item)
{
    const struct qproduct *q = ctx;

    (void)item;
    return q->ready;
}

/* Which kind packed panels of w are for. */
static enum gemm_kind ready_kind(bool amx)
{
#ifdef GEMM_HAS_I8
    return amx ? GEMM_I8_AMX : GEMM_I8;
#else
    (void)amx;
    return GEMM_I16;
#endif
}

/* Leading axes of x are rows. */
static void describe(const struct cpu_call *c, enum gemm_kind kind, struct qproduct *q,
                     struct gemm *g)
{
    const struct attr_qmatmul *a = &c->attr->qmatmul;
    bool bytes = kind != GEMM_I16;

    *q = (struct qproduct){.x = &c->in[0], .w = &c->in[1], .bias = &c->in[2], .out = c->out};
    q->x_zp = (int)a->x_zp;
    q->w_zp = (int)a->w_zp;
    q->rescale = (struct rescale){.mult = (double)a->mult, .out_zp = a->out_zp};
    q->k = q->w->dim[0];
    q->n = q->w->dim[1];
    q->m = q->n ? c->out->count / q->n : 0;
    q->kind = kind;
    *g = (struct gemm){.kind = kind,
                       .items = 1,
                       .m = q->m,
                       .n = q->n,
                       .k = q->k,
                       .pack_a = bytes ? pack_x_bytes : pack_x,
                       .pack_b = bytes ? pack_w_bytes : pack_w,
                       .in_scratch = true,
                       .store = bytes ? store_bytes : store_product,
                       .ctx = q};
    if (c->in[1].packed) {
        q->ready = c->in[1].packed;
        q->w_sum = (const uint32_t *)(const void *)((const char *)q->ready + gemm_ready_bytes(g));
        g->ready_b = ready_w;
    }
}

static enum gemm_kind kind_of(const struct cpu_call *c, bool amx)
{
    return c->in[1].packed ? ready_kind(amx) : GEMM_I16;
}

static uint64_t scratch_on(const struct cpu_call *c, bool amx)
{
    struct qproduct q;
    struct gemm g;

    if (c->out->count == 0)
        return 0;
    describe(c, kind_of(c, amx), &q, &g);
    return gemm_scratch(&g, c->pool);
}

static void run_on(const struct cpu_call *c, bool amx)
{
    struct qproduct q;
    struct gemm g;

    if (c->out->count == 0)
        return;
    describe(c, kind_of(c, amx), &q, &g);
    gemm_run(&g, c->pool, c->scratch);
}

/* Panels, then the sums of columns where the kind needs them. Pairs already include w_zp. */
static struct cpu_pack pack_size_on(const struct cpu_call *c, int32_t i, bool amx)
{
    const uint64_t layout = (uint64_t)0x716d6d00 << 32; /* unlike other kernels' */
    enum gemm_kind kind = ready_kind(amx);
    struct qproduct q;
    struct gemm g;

    if (i != 1 || c->in[1].count == 0 || c->in[1].dim[1] <= GEMM_READY_COLUMNS)
        return (struct cpu_pack){0};
    describe(c, kind, &q, &g);
    uint64_t sums = kind == GEMM_I16 ? 0 : (uint64_t)q.n * sizeof *q.w_sum;
    uint64_t zp = kind == GEMM_I16 ? (uint8_t)q.w_zp : 0;
    return (struct cpu_pack){.bytes = gemm_ready_bytes(&g) + sums,
                             .layout = layout | (uint64_t)kind << 8 | zp};
}

static void pack_on(const struct cpu_call *c, void *to, bool amx)
{
    enum gemm_kind kind = ready_kind(amx);
    struct qproduct q;
    struct gemm g;

    describe(c, kind, &q, &g);
    gemm_make_ready(&g, 0, c->pool, to);
    if (kind != GEMM_I16)
        sum_columns(&q, (uint32_t *)(void *)((char *)to + gemm_ready_bytes(&g)));
}

static uint64_t qmatmul_scratch(const struct cpu_call *c)
{
    return scratch_on(c, false);
}

static void qmatmul(const struct cpu_call *c)
{
    run_on(c, false);
}

static struct cpu_pack qmatmul_pack_size(const struct cpu_call *c, int32_t i)
{
    return pack_size_on(c, i, false);
}

static void qmatmul_pack(const struct cpu_call *c, int32_t i, void *to)
{
    (void)i;
    pack_on(c, to, false);
}

#ifdef GEMM_AMX
static uint64_t qmatmul_scratch_amx(const struct cpu_call *c)
{
    return scratch_on(c, true);
}

static void qmatmul_amx(const struct cpu_call *c)
{
    run_on(c, true);
}

static struct cpu_pack qmatmul_pack_size_amx(const struct cpu_call *c, int32_t i)
{
    return pack_size_on(c, i, true);
}

static void qmatmul_pack_amx(const struct cpu_call *c, int32_t i, void *to)
{
    (void)i;
    pack_on(c, to, true);
}

extern const struct cpu_kernel cpu_qmatmul_amx;
const struct cpu_kernel cpu_qmatmul_amx = {.run = qmatmul_amx,
                                           .scratch = qmatmul_scratch_amx,
                                           .pack_size = qmatmul_pack_size_amx,
                                           .pack = qmatmul_pack_amx};
#endif

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
const struct cpu_kernel CPU_NAME(cpu_qmatmul) = {.run = qmatmul,
                                                 .scratch = qmatmul_scratch,
                                                 .pack_size = qmatmul_pack_size,
                                                 .pack = qmatmul_pack};
const struct cpu_kernel CPU_NAME(cpu_qconv_2d) = {.run = qconv_2d, .scratch = qconv_2d_scratch};
