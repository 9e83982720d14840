/* norm.c: statistics of normalised sets, and rows normalised with them (norm.h). */
#include "backend/cpu/kernels/rows/norm.h"
#include "backend/cpu/kernels/vec_math.h"

/* ---- sets ---------------------------------------------------------------------------------- */

enum { BLOCK = 16384, BLOCKS_MOST = 64 };

static void cut(struct norm *n)
{
    int64_t size = cpu_max_i64(n->size, 1), least = (size + BLOCKS_MOST - 1) / BLOCKS_MOST;

    n->block = cpu_max_i64(BLOCK, least);
    n->blocks = (size + n->block - 1) / n->block;
}

void norm_along(struct norm *n, const struct cpu_tensor *x, int64_t axis, bool centred, float eps)
{
    *n = (struct norm){.x = x,
                       .outer = 1,
                       .size = x->dim[axis],
                       .inner = 1,
                       .centred = centred,
                       .eps = (double)eps};
    for (int32_t a = 0; a < x->rank; a++) {
        if (a < axis)
            n->outer *= x->dim[a];
        else if (a > axis)
            n->inner *= x->dim[a];
    }
    cut(n);
}

void norm_groups(struct norm *n, const struct cpu_tensor *x, int64_t groups, float eps)
{
    int64_t places = 1;

    for (int32_t a = 2; a < x->rank; a++)
        places *= x->dim[a];
    *n = (struct norm){.x = x,
                       .outer = x->dim[0] * groups,
                       .size = x->dim[1] / groups * places,
                       .inner = 1,
                       .centred = true,
                       .eps = (double)eps};
    cut(n);
}

/* ---- statistics ----------------------------------------------------------------------------- */

static struct norm_stat finish(const struct norm *n, double mean, double squares)
{
    return (struct norm_stat){mean, 1.0 / sqrt(squares / (double)n->size + n->eps)};
}

/* Elements of block b. */
static int64_t block_len(const struct norm *n, int64_t b)
{
    return cpu_min_i64(n->block, n->size - b * n->block);
}

struct norm_stat norm_stat_of(const struct norm *n, const struct norm_moments *blocks)
{
    double first = blocks[0].mean, shift = 0, squares = 0;

    if (n->blocks == 1)
        return finish(n, first, blocks[0].squares);
    for (int64_t b = 0; b < n->blocks; b++)
        shift += (blocks[b].mean - first) * (double)block_len(n, b);
    double mean = first + shift / (double)n->size;
    for (int64_t b = 0; b < n->blocks; b++) {
        double off = blocks[b].mean - mean;
        squares += blocks[b].squares + off * off * (double)block_len(n, b);
    }
    return finish(n, mean, squares);
}

/* ---- sets side by side --------------------------------------------------------------------- */

void norm_columns(const struct norm *n, int64_t outer, int64_t column, int64_t width, double *mean,
                  double *factor)
{
    CPU_TILE_OF(double, x);
    CPU_TILE_OF(double, sum);
    int64_t first = outer * n->size * n->inner + column;

    for (int64_t i = 0; i < width; i++)
        mean[i] = sum[i] = 0;
    if (n->centred) {
        CPU_TILE_OF(double, from);
        cpu_load_f64(n->x->dtype, cpu_at(n->x, first), from, width);
        for (int64_t k = 0; k < n->size; k++) {
            cpu_load_f64(n->x->dtype, cpu_at(n->x, first + k * n->inner), x, width);
            for (int64_t i = 0; i < width; i++)
                sum[i] += x[i] - from[i];
        }
        for (int64_t i = 0; i < width; i++) {
            mean[i] = from[i] + sum[i] / (double)n->size;
            sum[i] = 0;
        }
    }
    for (int64_t k = 0; k < n->size; k++) {
        cpu_load_f64(n->x->dtype, cpu_at(n->x, first + k * n->inner), x, width);
        for (int64_t i = 0; i < width; i++) {
            double d = x[i] - mean[i];
            sum[i] += d * d;
        }
    }
    for (int64_t i = 0; i < width; i++)
        factor[i] = 1.0 / sqrt(sum[i] / (double)n->size + n->eps);
}

/* ---- all sets ------------------------------------------------------------------------------ */

struct all_job {
    const struct norm *n;
    int64_t width, parts; /* of columns */
    struct norm_moments *moments;
    double *mean, *factor;
};

static void all_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct all_job *j = ctx;
    const struct norm *n = j->n;

    (void)worker;
    for (int64_t u = begin; u < end; u++) {
        int64_t set = u / n->blocks, b = u % n->blocks;
        const void *x = cpu_at(n->x, set * n->size + b * n->block);
        j->moments[u] = norm_moments_of(n->x->dtype, x, block_len(n, b), n->centred);
        if (n->blocks > 1)
            continue;
        struct norm_stat s = norm_stat_of(n, &j->moments[u]);
        j->mean[set] = s.mean;
        j->factor[set] = s.factor;
    }
}

static void all_columns(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct all_job *j = ctx;
    const struct norm *n = j->n;

    (void)worker;
    for (int64_t u = begin; u < end; u++) {
        int64_t outer = u / j->parts, column = u % j->parts * j->width;
        int64_t set = outer * n->inner + column;
        norm_columns(n, outer, column, cpu_min_i64(j->width, n->inner - column), j->mean + set,
                     j->factor + set);
    }
}

void norm_all(const struct norm *n, struct pool *pool, struct norm_moments *moments, double *mean,
              double *factor)
{
    struct all_job j = {.n = n, .moments = moments, .mean = mean, .factor = factor};

    if (n->x->count == 0)
        return;
    if (n->inner > 1) {
        j.width = norm_columns_width(n);
        j.parts = (n->inner + j.width - 1) / j.width;
        cpu_for(pool, n->outer * j.parts, norm_grain(n->size * j.width), all_columns, &j);
        return;
    }
    cpu_for(pool, n->outer * n->blocks, norm_grain(cpu_min_i64(n->size, n->block)), all_blocks, &j);
    for (int64_t set = 0; n->blocks > 1 && set < n->outer; set++) {
        struct norm_stat s = norm_stat_of(n, moments + set * n->blocks);
        mean[set] = s.mean;
        factor[set] = s.factor;
    }
}

/* ---- normalised rows ----------------------------------------------------------------------- */

#define APPLY(T, x_, value)               \
    do {                                  \
        CPU_INDEPENDENT                   \
        for (int64_t i = 0; i < n; i++) { \
            T v = (x_)[i];                \
            y[i] = (value);               \
        }                                 \
    } while (0)

static void apply_f64(const double *x, double *y, int64_t n, struct norm_stat s, const double *g,
                      const double *b, int step)
{
    if (step)
        APPLY(double, x, (v - s.mean) * s.factor * g[i] + b[i]);
    else
        APPLY(double, x, (v - s.mean) * s.factor * g[0] + b[0]);
}

static bool f32_holds(struct norm_stat s)
{
    return s.factor > 1e-30 && s.factor < 1e30 && fabs(s.mean) < 1e30;
}

/* Statistics that f32 cannot hold: rare, and slow. */
static void apply_extreme(const float *x, float *y, int64_t n, struct norm_stat s, const float *g,
                          const float *b, int step)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t k = step ? i : 0;
        y[i] = (float)(((double)x[i] - s.mean) * s.factor * (double)g[k] + (double)b[k]);
    }
}

/* The mean is taken away in two parts, so that x - mean is as good as x. */
static void apply_f32(const float *x, float *y, int64_t n, struct norm_stat s, const float *g,
                      const float *b, int step)
{
    if (!f32_holds(s)) {
        apply_extreme(x, y, n, s, g, b, step);
        return;
    }
    float high = (float)s.mean, low = (float)(s.mean - (double)high), factor = (float)s.factor;
    if (step) {
        APPLY(float, x, ((v - high) - low) * factor * g[i] + b[i]);
    } else {
        float g0 = g[0], b0 = b[0];
        APPLY(float, x, ((v - high) - low) * factor * g0 + b0);
    }
}

bool norm_stream(const float *x, float *y, int64_t n, struct norm_stat s, const float *g,
                 const float *b)
{
    if (!vec_streams_to(y, n) || !f32_holds(s))
        return false;
    float high = (float)s.mean, low = (float)(s.mean - (double)high), factor = (float)s.factor;
    for (int64_t i = 0; i < n; i += VEC_F32) {
        vec_f32 v = (vec_load(x + i) - high) - low;
        vec_stream(y + i, v * factor * vec_load(g + i) + vec_load(b + i));
    }
    return true;
}

void norm_apply(rlx_dtype x_type, const void *x, rlx_dtype y_type, void *y, int64_t n,
                struct norm_stat s, const void *gamma, const void *beta, int step)
{
    CPU_TILE_OF(float, tile);

    if (x_type == RLX_DTYPE_f64) {
        apply_f64(x, y, n, s, gamma, beta, step);
        return;
    }
    if (x_type == RLX_DTYPE_f32 && y_type == RLX_DTYPE_f32) {
        apply_f32(x, y, n, s, gamma, beta, step);
        return;
    }
    for (int64_t at = 0; at < n; at += CPU_TILE) {
        int64_t part = cpu_min_i64(CPU_TILE, n - at), k = step ? at : 0;
        const void *from = (const char *)x + at * (int64_t)cpu_size(x_type);
        const float *row = cpu_as_f32(x_type, from, tile, part);
        apply_f32(row, tile, part, s, (const float *)gamma + k, (const float *)beta + k, step);
        cpu_store_f32(y_type, tile, (char *)y + at * (int64_t)cpu_size(y_type), part);
    }
}

const void *norm_widen(const struct cpu_tensor *t, rlx_dtype x_type, int64_t count, void *room)
{
    rlx_dtype wide = norm_wide(x_type);

    if (!t)
        memset(room, 0, (size_t)count * cpu_size(wide));
    else if (t->dtype == wide)
        return t->data;
    else
        cpu_load_f32(t->dtype, t->data, room, count); /* a half; f64 goes with f64 only */
    return room;
}
