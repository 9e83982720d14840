/* fake_quantize.c: quantise and dequantise in one step, and its gradients (ops-core.md 19.2).
 *
 *     y = clamp(round(x / s), -q, q) s        q = 127, 7 or 1; s per tensor or per channel
 *
 * The scales become a row of doubles in scratch first, wherever they come from:
 *
 *     per_batch    the largest |x| of the channel / q
 *     ema          the state, moved towards that and written back
 *     fixed        the second operand; the learned scale of lsq likewise
 *
 *     scratch      [scales of the channels][partial results of a reduction] */
#include "backend/cpu/kernels/dequant/quant_tile.h"
#include "backend/cpu/kernels/rows/channel.h"

struct fake {
    const struct cpu_call *c;
    const struct cpu_tensor *x, *dy; /* dy: of the gradients */
    struct cpu_channels g;
    double most;
    double *scale;   /* [channels], in scratch */
    double *partial; /* after it */
    struct cpu_view scales;
    int32_t ste;
};

static void fake_init(struct fake *f, const struct cpu_call *c, int64_t bits, int64_t axis)
{
    *f = (struct fake){.c = c, .x = &c->in[0], .most = quant_most(bits)};
    f->g = cpu_channels_of(f->x, axis);
    f->scale = c->scratch;
    f->partial = f->scale ? f->scale + f->g.count : NULL;
}

static uint64_t scratch_bytes(const struct cpu_call *c, int64_t axis)
{
    struct cpu_channels g = cpu_channels_of(&c->in[0], axis);
    return ((uint64_t)g.count + cpu_channel_scratch(&g)) * sizeof(double);
}

/* ---- scales -------------------------------------------------------------------------------- */

static void magnitudes(void *ctx, int64_t pos, int64_t n, double *out)
{
    const struct fake *f = ctx;

    cpu_load_f64(f->x->dtype, cpu_at(f->x, pos), out, n);
    for (int64_t i = 0; i < n; i++)
        out[i] = fabs(out[i]);
}

static void scales_of_batch(struct fake *f)
{
    cpu_channel_reduce(f->c->pool, &f->g, CHANNEL_MAX, magnitudes, f, f->partial, f->scale);
    for (int64_t i = 0; i < f->g.count; i++)
        f->scale[i] /= f->most;
    quant_floor(f->scale, f->g.count);
}

/* The state is written in its own type, and what was written is the scale. */
static void scales_of_state(struct fake *f, const struct cpu_tensor *state, float decay)
{
    double keep = (double)decay;

    for (int64_t i = 0; i < f->g.count; i++) {
        double old = cpu_get_f64(state->dtype, state->data, i);
        double now = old <= 0 ? f->scale[i] : keep * old + (1.0 - keep) * f->scale[i];
        cpu_set_f64(state->dtype, state->data, i, now);
        f->scale[i] = cpu_get_f64(state->dtype, state->data, i);
    }
    quant_floor(f->scale, f->g.count);
}

static void scales_given(struct fake *f, const struct cpu_tensor *s)
{
    cpu_load_f64(s->dtype, s->data, f->scale, f->g.count);
    quant_floor(f->scale, f->g.count);
}

/* ---- walking ------------------------------------------------------------------------------- */

/* What becomes of elements pos .. pos+n-1, n <= CPU_TILE: x, then dy if there is one, in tiles. */
typedef void (*fake_fn)(const struct fake *f, const double *x, const double *dy, const double *s,
                        double *out, int64_t n);

struct fake_walk {
    const struct fake *f;
    fake_fn fn;
};

static void walk_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct fake_walk *w = ctx;
    const struct fake *f = w->f;
    CPU_TILE_OF(double, x);
    CPU_TILE_OF(double, dy);
    CPU_TILE_OF(double, s);

    (void)worker;
    for (int64_t pos = begin; pos < end; pos += CPU_TILE) {
        int64_t n = cpu_min_i64(end - pos, CPU_TILE);
        cpu_load_f64(f->x->dtype, cpu_at(f->x, pos), x, n);
        if (f->dy)
            cpu_load_f64(f->dy->dtype, cpu_at(f->dy, pos), dy, n);
        quant_read(&f->scales, RLX_DTYPE_f64, pos, n, s);
        w->fn(f, x, dy, s, x, n);
        cpu_store_f64(f->c->out->dtype, x, cpu_at(f->c->out, pos), n);
    }
}

static void walk(struct fake *f, fake_fn fn)
{
    struct fake_walk w = {f, fn};

    cpu_channels_view(&f->scales, &f->g, f->scale, RLX_DTYPE_f64);
    cpu_for(f->c->pool, f->x->count, QUANT_GRAIN, walk_range, &w);
}

/* ---- forward ------------------------------------------------------------------------------- */

static void fake_part(const struct fake *f, const double *x, const double *dy, const double *s,
                      double *out, int64_t n)
{
    double most = f->most;

    (void)dy;
    for (int64_t i = 0; i < n; i++) {
        double q = quant_round(x[i] / s[i]);
        q = q < -most ? -most : q;
        q = q > most ? most : q;
        out[i] = q * s[i];
    }
}

static void run_fake(const struct cpu_call *c)
{
    const struct attr_fake_quantize *a = &c->attr->fake_quantize;
    struct fake f;

    if (c->out->count == 0)
        return;
    fake_init(&f, c, a->bits, a->axis);
    if (a->scale_mode == RLX_SCALE_MODE_fixed)
        scales_given(&f, &c->in[1]);
    else
        scales_of_batch(&f);
    if (a->scale_mode == RLX_SCALE_MODE_ema)
        scales_of_state(&f, &c->in[1], a->decay);
    walk(&f, fake_part);
}

static uint64_t scratch_fake(const struct cpu_call *c)
{
    return scratch_bytes(c, c->attr->fake_quantize.axis);
}

static void run_lsq(const struct cpu_call *c)
{
    const struct attr_fake_quantize_lsq *a = &c->attr->fake_quantize_lsq;
    struct fake f;

    if (c->out->count == 0)
        return;
    fake_init(&f, c, a->bits, a->axis);
    scales_given(&f, &c->in[1]);
    walk(&f, fake_part);
}

static uint64_t scratch_lsq(const struct cpu_call *c)
{
    return scratch_bytes(c, c->attr->fake_quantize_lsq.axis);
}

/* ---- gradients ----------------------------------------------------------------------------- */

/* How much of the gradient passes at x. */
static double pass_through(int32_t ste, double x, double s, double most)
{
    switch (ste) {
    case RLX_STE_KIND_clipped: return fabs(x) <= most * s ? 1.0 : 0.0;
    case RLX_STE_KIND_tanh: {
        double t = tanh(x / s);
        return 1.0 - t * t;
    }
    case RLX_STE_KIND_hard_tanh: return cpu_max_f64(1.0 - fabs(x / (most * s)), 0.0);
    default: return 1.0;
    }
}

static void backward_part(const struct fake *f, const double *x, const double *dy, const double *s,
                          double *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = dy[i] * pass_through(f->ste, x[i], s[i], f->most);
}

static void run_backward(const struct cpu_call *c)
{
    const struct attr_fake_quantize_backward *a = &c->attr->fake_quantize_backward;
    bool own = a->scale_mode == RLX_SCALE_MODE_per_batch;
    struct fake f;

    if (c->out->count == 0)
        return;
    fake_init(&f, c, a->bits, a->axis);
    f.dy = &c->in[own ? 1 : 2];
    f.ste = a->ste;
    if (own)
        scales_of_batch(&f);
    else
        scales_given(&f, &c->in[1]);
    walk(&f, backward_part);
}

static uint64_t scratch_backward(const struct cpu_call *c)
{
    return scratch_bytes(c, c->attr->fake_quantize_backward.axis);
}

static void lsq_x_part(const struct fake *f, const double *x, const double *dy, const double *s,
                       double *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = dy[i] * (fabs(x[i] / s[i]) <= f->most ? 1.0 : 0.0);
}

/* dy times round(z) - z inside the range, +-q outside; z = x / s. NaN stays. */
static void lsq_terms(void *ctx, int64_t pos, int64_t n, double *out)
{
    const struct fake *f = ctx;
    CPU_TILE_OF(double, dy);
    CPU_TILE_OF(double, s);

    cpu_load_f64(f->x->dtype, cpu_at(f->x, pos), out, n);
    cpu_load_f64(f->dy->dtype, cpu_at(f->dy, pos), dy, n);
    quant_read(&f->scales, RLX_DTYPE_f64, pos, n, s);
    for (int64_t i = 0; i < n; i++) {
        double z = out[i] / s[i];
        double slope = quant_round(z) - z;
        slope = z > f->most ? f->most : slope;
        slope = z < -f->most ? -f->most : slope;
        out[i] = dy[i] * slope;
    }
}

static void run_lsq_backward(const struct cpu_call *c)
{
    const struct attr_fake_quantize_lsq_backward *a = &c->attr->fake_quantize_lsq_backward;
    struct fake f;

    if (c->out->count == 0)
        return;
    fake_init(&f, c, a->bits, a->axis);
    f.dy = &c->in[2];
    scales_given(&f, &c->in[1]);
    if (c->op == RLX_OP_fake_quantize_lsq_backward_x) {
        walk(&f, lsq_x_part);
        return;
    }
    cpu_channels_view(&f.scales, &f.g, f.scale, RLX_DTYPE_f64);
    double *sum = f.partial + cpu_channel_scratch(&f.g);
    cpu_channel_reduce(c->pool, &f.g, CHANNEL_SUM, lsq_terms, &f, f.partial, sum);
    cpu_store_f64(c->out->dtype, sum, c->out->data, f.g.count);
}

static uint64_t scratch_lsq_backward(const struct cpu_call *c)
{
    int64_t axis = c->attr->fake_quantize_lsq_backward.axis;
    struct cpu_channels g = cpu_channels_of(&c->in[0], axis);
    return scratch_bytes(c, axis) + (uint64_t)g.count * sizeof(double); /* the sums */
}

extern const struct cpu_kernel CPU_NAME(cpu_fake_quantize);
const struct cpu_kernel CPU_NAME(cpu_fake_quantize) = {.run = run_fake, .scratch = scratch_fake};

extern const struct cpu_kernel CPU_NAME(cpu_fake_quantize_lsq);
const struct cpu_kernel CPU_NAME(cpu_fake_quantize_lsq) = {.run = run_lsq, .scratch = scratch_lsq};

extern const struct cpu_kernel CPU_NAME(cpu_fake_quantize_backward);
const struct cpu_kernel CPU_NAME(cpu_fake_quantize_backward) = {.run = run_backward,
                                                                .scratch = scratch_backward};

extern const struct cpu_kernel CPU_NAME(cpu_fake_quantize_lsq_backward);
const struct cpu_kernel CPU_NAME(cpu_fake_quantize_lsq_backward) = {
    .run = run_lsq_backward, .scratch = scratch_lsq_backward};
