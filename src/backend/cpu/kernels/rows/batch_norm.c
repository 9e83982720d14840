/* batch_norm.c: batch_norm_inference and its gradients (ops-core.md 11.3).
 *
 *     y = (x - mean) gamma / sqrt(var + eps) + beta       all of these one per channel
 *     dx = dy gamma / sqrt(var + eps)    dgamma = sum of dy (x - mean) / sqrt(var + eps)
 *     dbeta = sum of dy
 *
 * Channels come down to a shift, a factor and an offset each, f64 in scratch; elements are then
 * (x - shift) factor + offset. */
#include "backend/cpu/kernels/rows/grad_sum.h"

struct batch_norm {
    const struct cpu_call *c;
    const struct cpu_tensor *x, *dy;
    int64_t axis;
    int64_t channels, inner; /* x as [outer, channels, inner] */
    double eps;
    const struct cpu_tensor *source;         /* x, or dy where dx is wanted */
    double *shift, *factor, *offset;         /* [channels] */
    struct cpu_view shift_view, factor_view; /* in the shape of x */
};

static void describe(const struct cpu_call *c, struct batch_norm *b)
{
    const struct cpu_tensor *x = &c->in[0];
    bool forward = c->op == RLX_OP_batch_norm_inference;

    *b = (struct batch_norm){.c = c, .x = x, .dy = &c->in[c->in_count - 1], .inner = 1};
    b->axis =
        forward ? c->attr->batch_norm_inference.axis : c->attr->batch_norm_inference_backward.axis;
    b->eps = (double)(forward ? c->attr->batch_norm_inference.eps
                              : c->attr->batch_norm_inference_backward.eps);
    b->source = c->op == RLX_OP_batch_norm_inference_backward_input ? b->dy : x;
    b->channels = x->dim[b->axis];
    for (int64_t a = b->axis + 1; a < x->rank; a++)
        b->inner *= x->dim[a];
}

static void fill(double *row, int64_t n, double v)
{
    for (int64_t i = 0; i < n; i++)
        row[i] = v;
}

/* Scratch: shift, factor, offset, then what a sum needs. NULL: 0 (gamma: 1). */
static double *read_channels(struct batch_norm *b, const struct cpu_tensor *gamma,
                             const struct cpu_tensor *beta, const struct cpu_tensor *mean,
                             const struct cpu_tensor *var)
{
    int64_t n = b->channels;
    double *room = b->c->scratch;

    b->shift = room;
    b->factor = b->shift + n;
    b->offset = b->factor + n;
    fill(b->shift, n, 0);
    fill(b->offset, n, 0);
    if (mean)
        cpu_load_f64(mean->dtype, mean->data, b->shift, n);
    if (beta)
        cpu_load_f64(beta->dtype, beta->data, b->offset, n);
    if (var)
        cpu_load_f64(var->dtype, var->data, b->factor, n);
    for (int64_t i = 0; i < n; i++) {
        double g = gamma ? cpu_get_f64(gamma->dtype, gamma->data, i) : 1.0;
        b->factor[i] = g * (1.0 / sqrt(b->factor[i] + b->eps));
    }
    return room + 3 * n;
}

/* ---- elements ------------------------------------------------------------------------------ */

/* n elements that share a channel (step 0), or have one each. */
#define SCALE(T)                                                                 \
    do {                                                                         \
        const T *x_ = x;                                                         \
        T *y_ = y;                                                               \
        if (step) {                                                              \
            CPU_INDEPENDENT                                                      \
            for (int64_t i = 0; i < n; i++)                                      \
                y_[i] = (T)(((double)x_[i] - shift[i]) * factor[i] + offset[i]); \
        } else {                                                                 \
            double s_ = shift[0], f_ = factor[0], o_ = offset[0];                \
            CPU_INDEPENDENT                                                      \
            for (int64_t i = 0; i < n; i++)                                      \
                y_[i] = (T)(((double)x_[i] - s_) * f_ + o_);                     \
        }                                                                        \
    } while (0)

static void scale(rlx_dtype dtype, const void *x, void *y, int64_t n, const double *shift,
                  const double *factor, const double *offset, int step)
{
    if (dtype == RLX_DTYPE_f64)
        SCALE(double);
    else
        SCALE(float);
}

static void elements(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct batch_norm *b = ctx;
    rlx_dtype dtype = b->c->out->dtype;
    CPU_TILE_OF(float, tile);

    (void)worker;
    while (begin < end) {
        int64_t channel = begin / b->inner % b->channels;
        int64_t left = b->inner == 1 ? b->channels - channel : b->inner - begin % b->inner;
        int64_t n = cpu_min_i64(end - begin, left);
        const void *x = cpu_at(b->source, begin);
        void *y = cpu_at(b->c->out, begin);
        const double *s = b->shift + channel, *f = b->factor + channel, *o = b->offset + channel;
        if (cpu_is_half(dtype)) {
            n = cpu_min_i64(n, CPU_TILE);
            cpu_load_f32(dtype, x, tile, n);
            scale(RLX_DTYPE_f32, tile, tile, n, s, f, o, b->inner == 1);
            cpu_store_f32(dtype, tile, y, n);
        } else {
            scale(dtype, x, y, n, s, f, o, b->inner == 1);
        }
        begin += n;
    }
}

static uint64_t scratch(const struct cpu_call *c)
{
    return 3 * (uint64_t)c->in[1].count * sizeof(double);
}

static void run(const struct cpu_call *c)
{
    struct batch_norm b;

    if (c->out->count == 0)
        return;
    describe(c, &b);
    read_channels(&b, &c->in[1], &c->in[2], &c->in[3], &c->in[4]);
    cpu_for(c->pool, c->out->count, 32768, elements, &b);
}

/* ---- gradients ----------------------------------------------------------------------------- */

static void gamma_term(const void *ctx, int64_t pos, int64_t n, double *out)
{
    const struct batch_norm *b = ctx;
    CPU_TILE_OF(double, x);
    CPU_TILE_OF(double, shift_tile);
    CPU_TILE_OF(double, factor_tile);
    int shift_step, factor_step;
    const double *shift = cpu_view_read(&b->shift_view, pos, n, shift_tile, &shift_step);
    const double *factor = cpu_view_read(&b->factor_view, pos, n, factor_tile, &factor_step);

    cpu_load_f64(b->x->dtype, cpu_at(b->x, pos), x, n);
    cpu_load_f64(b->dy->dtype, cpu_at(b->dy, pos), out, n);
    for (int64_t i = 0; i < n; i++)
        out[i] *= (x[i] - shift[shift_step ? i : 0]) * factor[factor_step ? i : 0];
}

static void beta_term(const void *ctx, int64_t pos, int64_t n, double *out)
{
    const struct batch_norm *b = ctx;
    cpu_load_f64(b->dy->dtype, cpu_at(b->dy, pos), out, n);
}

static uint64_t backward_scratch(const struct cpu_call *c)
{
    struct batch_norm b;
    struct grad_sum sum;
    uint64_t doubles = 0;

    if (c->out->count == 0)
        return 0;
    describe(c, &b);
    if (c->op != RLX_OP_batch_norm_inference_backward_beta)
        doubles += 3 * (uint64_t)b.channels;
    if (c->op != RLX_OP_batch_norm_inference_backward_input) {
        grad_sum_axis(&sum, b.x, b.axis);
        doubles += grad_sum_scratch(&sum);
    }
    return doubles * sizeof(double);
}

static void view_channels(struct batch_norm *b)
{
    int64_t stride[RLX_MAX_RANK] = {0};

    if (b->x->count == 0)
        return;
    stride[b->axis] = 1;
    cpu_view_make(&b->shift_view, b->shift, RLX_DTYPE_f64, b->x->rank, b->x->dim, stride);
    cpu_view_make(&b->factor_view, b->factor, RLX_DTYPE_f64, b->x->rank, b->x->dim, stride);
}

static void run_backward(const struct cpu_call *c)
{
    struct batch_norm b;
    struct grad_sum sum;
    double *room = c->scratch;
    grad_term_fn term = beta_term;

    if (c->out->count == 0)
        return;
    describe(c, &b);
    if (c->op == RLX_OP_batch_norm_inference_backward_input) {
        read_channels(&b, &c->in[1], NULL, NULL, &c->in[3]);
        cpu_for(c->pool, c->out->count, 32768, elements, &b);
        return;
    }
    if (c->op == RLX_OP_batch_norm_inference_backward_gamma) {
        room = read_channels(&b, NULL, NULL, &c->in[1], &c->in[2]);
        view_channels(&b);
        term = gamma_term;
    }
    grad_sum_axis(&sum, b.x, b.axis);
    grad_sum_run(&sum, c->pool, term, &b, room, c->out->dtype, c->out->data);
}

extern const struct cpu_kernel CPU_NAME(cpu_batch_norm_inference);
extern const struct cpu_kernel CPU_NAME(cpu_batch_norm_inference_backward);
const struct cpu_kernel CPU_NAME(cpu_batch_norm_inference) = {
    .run = run, .scratch = scratch, .in_place = 1};
const struct cpu_kernel CPU_NAME(cpu_batch_norm_inference_backward) = {.run = run_backward,
                                                                       .scratch = backward_scratch};
