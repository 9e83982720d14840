/* residual_norm.c: fused_residual_ln and fused_residual_rms_norm (ops-core.md 15), and norms that
 * come with the sum that they are of (lower/joint.h).
 *
 *     norm(x + residual + bias, gamma, beta) over the last axis
 *
 * A row's sum is made once, in a row of the worker's own, and normalised from there. Where the sum
 * is a result too, what is normalised is what was stored. */
#include "backend/cpu/kernels/rows/norm.h"

struct residual {
    const struct cpu_call *c;
    struct norm n;
    int32_t gamma_at, beta_at;       /* numbers of operands; beta -1: none */
    const void *bias, *gamma, *beta; /* in the wide type */
    char *row;                       /* a row per worker */
    uint64_t row_bytes;
    bool streams; /* results go past the caches */
};

static void describe(const struct cpu_call *c, struct residual *r)
{
    const struct cpu_tensor *x = &c->in[0];

    *r = (struct residual){.c = c, .gamma_at = c->in_count - 2, .beta_at = c->in_count - 1};
    switch (c->op) {
    case RLX_OP_layer_norm: norm_along(&r->n, x, x->rank - 1, true, c->attr->layer_norm.eps); break;
    case RLX_OP_rms_norm:
        norm_along(&r->n, x, x->rank - 1, false, c->attr->rms_norm.eps);
        r->gamma_at = 2;
        r->beta_at = c->in_count > 3 ? 3 : -1;
        break;
    default:
        norm_along(&r->n, x, x->rank - 1, c->op == RLX_OP_fused_residual_ln,
                   c->attr->fused_residual_norm.eps);
    }
    r->n.block = r->n.size; /* a row is one worker's */
    r->n.blocks = 1;
    r->row_bytes = ((uint64_t)r->n.size * cpu_size(norm_wide(x->dtype)) + 63) / 64 * 64;
}

static int workers(const struct cpu_call *c)
{
    return c->pool ? pool_threads(c->pool) : 1;
}

/* Scratch: bias, gamma and beta, then a row per worker. */
static uint64_t scratch(const struct cpu_call *c)
{
    struct residual r;

    if (c->out->count == 0)
        return 0;
    describe(c, &r);
    return (3 + (uint64_t)workers(c)) * r.row_bytes;
}

#define SUM(T)                                          \
    do {                                                \
        const T *a_ = x, *b_ = residual, *bias_ = bias; \
        T *to_ = row;                                   \
        if (bias_)                                      \
            for (int64_t i = 0; i < n; i++)             \
                to_[i] = (a_[i] + b_[i]) + bias_[i];    \
        else                                            \
            for (int64_t i = 0; i < n; i++)             \
                to_[i] = a_[i] + b_[i];                 \
    } while (0)

static void sum_row(rlx_dtype dtype, const void *x, const void *residual, const void *bias,
                    void *row, int64_t n)
{
    if (dtype == RLX_DTYPE_f64)
        SUM(double);
    else
        SUM(float);
}

static void sum_halves(rlx_dtype dtype, const uint16_t *a, const uint16_t *b, const float *bias,
                       float *row, int64_t n)
{
    CPU_TILE_OF(float, wide);

    cpu_load_f32(dtype, a, row, n);
    for (int64_t at = 0; at < n; at += CPU_TILE) {
        int64_t part = cpu_min_i64(CPU_TILE, n - at);
        cpu_load_f32(dtype, b + at, wide, part);
        sum_row(RLX_DTYPE_f32, row + at, wide, bias ? bias + at : NULL, row + at, part);
    }
}

/* `part` elements of a row straight past the caches, where that is possible. */
static bool stream_piece(const struct residual *r, const char *row, int64_t at, int64_t part,
                         struct norm_stat s, char *y)
{
    const float *gamma = r->gamma, *beta = r->beta, *x = (const float *)(const void *)row;

    return r->c->out->dtype == RLX_DTYPE_f32 &&
           norm_stream(x + at, (float *)(void *)y, part, s, gamma + at, beta + at);
}

/* The result of row k. more: the next row is wanted too, and may be fetched meanwhile. */
static void write_row(const struct residual *r, int64_t k, const char *row, struct norm_stat s,
                      bool more)
{
    enum { PIECE = CPU_TILE };
    const struct cpu_tensor *in = r->c->in, *out = r->c->out;
    int64_t n = r->n.size, size = (int64_t)cpu_size(out->dtype);
    rlx_dtype wide = norm_wide(out->dtype);
    int64_t wide_size = (int64_t)cpu_size(wide);
    CPU_TILE_ANY(result);

    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t part = cpu_min_i64(PIECE, n - at);
        if (more) {
            cpu_prefetch(cpu_at(&in[0], (k + 1) * n + at), part * size);
            cpu_prefetch(cpu_at(&in[1], (k + 1) * n + at), part * size);
        }
        char *y = cpu_at(out, k * n + at);
        if (r->streams && stream_piece(r, row, at, part, s, y))
            continue;
        norm_apply(wide, row + at * wide_size, out->dtype, r->streams ? (char *)result : y, part, s,
                   (const char *)r->gamma + at * wide_size, (const char *)r->beta + at * wide_size,
                   1);
        if (r->streams)
            cpu_stream_out(y, result, part * size);
    }
}

/* The sum of row k: where it is a result, or in `own`; of halves there too, once it is stored. */
static const void *make_sum(const struct residual *r, int64_t k, void *own)
{
    const struct cpu_tensor *in = r->c->in, *sum = r->c->also;
    rlx_dtype dtype = r->c->out->dtype;
    int64_t n = r->n.size;
    const void *x = cpu_at(&in[0], k * n), *residual = cpu_at(&in[1], k * n);

    if (!cpu_is_half(dtype)) {
        void *to = sum ? cpu_at(sum, k * n) : own;
        sum_row(dtype, x, residual, r->bias, to, n);
        return to;
    }
    sum_halves(dtype, x, residual, r->bias, own, n);
    if (sum) {
        cpu_store_f32(dtype, own, cpu_at(sum, k * n), n);
        cpu_load_f32(dtype, cpu_at(sum, k * n), own, n);
    }
    return own;
}

static void rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct residual *r = ctx;
    void *own = r->row + (uint64_t)worker * r->row_bytes;
    int64_t n = r->n.size;
    rlx_dtype wide = norm_wide(r->c->out->dtype);

    for (int64_t k = begin; k < end; k++) {
        const void *row = make_sum(r, k, own);
        struct norm_moments m = norm_moments_of(wide, row, n, r->n.centred);
        write_row(r, k, row, norm_stat_of(&r->n, &m), k + 1 < end);
    }
    if (r->streams)
        cpu_stream_end();
}

static void run(const struct cpu_call *c)
{
    struct residual r;

    if (c->out->count == 0)
        return;
    describe(c, &r);
    r.streams = cpu_streams(c);
    char *room = c->scratch;
    rlx_dtype dtype = c->out->dtype;
    if (!c->also && c->attr->fused_residual_norm.has_bias)
        r.bias = norm_widen(&c->in[2], dtype, r.n.size, room);
    r.gamma = norm_widen(&c->in[r.gamma_at], dtype, r.n.size, room + r.row_bytes);
    r.beta = norm_widen(r.beta_at >= 0 ? &c->in[r.beta_at] : NULL, dtype, r.n.size,
                        room + 2 * r.row_bytes);
    r.row = room + 3 * r.row_bytes;
    cpu_for(c->pool, r.n.outer, cpu_max_i64(1, cpu_stream_block(c->out->count) / r.n.size), rows,
            &r);
}

/* A row of x and of the residual has been read when its result is written. */
extern const struct cpu_kernel CPU_NAME(cpu_fused_residual_norm);
const struct cpu_kernel CPU_NAME(cpu_fused_residual_norm) = {
    .run = run, .scratch = scratch, .in_place = 3};
