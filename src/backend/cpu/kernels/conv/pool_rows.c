/* pool_rows.c: pooling of f32, f16 and bf16 with windows of an ordinary size, a row of outputs at a
 * time (pool_core.h).
 *
 *     the rows of x that the windows see, joined into one      x x x x x x x
 *     every s-th element of it apart, for stride s             even: x x x x   odd: x x x
 *     those of each tap, joined                                out: x x x
 *
 * so that all loops run over neighbours. What is outside is the identity of the joining. Windows
 * that are whole planes are runs of neighbours themselves. */
#include "backend/cpu/kernels/conv/pool_core.h"
#include "backend/cpu/kernels/rows/reduce.h"

enum {
    ROW = 2048,       /* elements of x that a piece of a row of outputs reads, at most */
    STRIDE_MOST = 8,  /* along the rows */
    KERNEL_MOST = 64, /* the same */
    SUM_MOST = 64,    /* elements of a window that f32 sums well enough */
};

struct rows {
    struct pool_windows w;
    const struct cpu_tensor *x, *y;
    int32_t kind;
    bool count_pad;
};

#define EACH(value)                       \
    do {                                  \
        CPU_INDEPENDENT                   \
        for (int64_t i = 0; i < n; i++) { \
            float a = to[i], b = from[i]; \
            to[i] = (value);              \
        }                                 \
    } while (0)

/* to[i] = to[i] joined with from[i]. */
static void join(int32_t kind, float *restrict to, const float *restrict from, int64_t n)
{
    switch (kind) {
    case RLX_POOL_KIND_max: EACH(cpu_max_f32(a, b)); break;
    case RLX_POOL_KIND_min: EACH(cpu_min_f32(a, b)); break;
    default: EACH(a + b); break;
    }
}

static float identity(int32_t kind)
{
    return kind == RLX_POOL_KIND_max ? -INFINITY : kind == RLX_POOL_KIND_min ? INFINITY : 0;
}

static bool is_sum(int32_t kind)
{
    return kind == RLX_POOL_KIND_sum || kind == RLX_POOL_KIND_mean;
}

/* Part of a row of outputs, and where its windows are. */
struct part {
    int64_t plane;
    int64_t first[2], count[2]; /* rows of x */
    int64_t pos, n;             /* outputs */
};

/* The rows of x joined, from the first window's first element on. Answers how many there are. */
static int64_t join_rows(const struct rows *r, const struct part *p, float *row)
{
    const struct pool_windows *w = &r->w;
    int64_t len = (p->n - 1) * w->stride[2] + w->kernel[2];
    int64_t start = p->pos * w->stride[2] - w->pad[2], lo, hi;
    bool first = true;
    float buffer[ROW];

    windows_inside(start, 1, w->in[2], len, &lo, &hi);
    for (int64_t i = 0; i < lo; i++)
        row[i] = identity(r->kind);
    for (int64_t i = hi; i < len; i++)
        row[i] = identity(r->kind);
    for (int64_t i0 = 0; i0 < p->count[0]; i0++) {
        for (int64_t i1 = 0; i1 < p->count[1]; i1++, first = false) {
            int64_t at = (p->plane * w->in[0] + p->first[0] + i0) * w->in[1] + p->first[1] + i1;
            const void *x = cpu_at(r->x, at * w->in[2] + start + lo);
            if (first)
                cpu_load_f32(r->x->dtype, x, row + lo, hi - lo);
            else
                join(r->kind, row + lo, cpu_as_f32(r->x->dtype, x, buffer, hi - lo), hi - lo);
        }
    }
    return len;
}

/* out[j] = row[j * stride + t] joined over all taps t. */
static void join_taps(const struct rows *r, const float *row, int64_t len, float *out, int64_t n)
{
    int64_t s = r->w.stride[2], k = r->w.kernel[2];
    float apart[ROW];

    for (int64_t phase = 0; phase < s && phase < k; phase++) {
        const float *from = row;
        int64_t m = (len - phase + s - 1) / s;
        if (s == 2) {
            for (int64_t j = 0; j < m; j++)
                apart[j] = row[2 * j + phase];
            from = apart;
        } else if (s > 1) {
            for (int64_t j = 0; j < m; j++)
                apart[j] = row[j * s + phase];
            from = apart;
        }
        if (phase == 0)
            memcpy(out, from, (size_t)n * sizeof *out);
        for (int64_t t = phase == 0 ? s : phase; t < k; t += s)
            join(r->kind, out, from + t / s, n);
    }
}

/* Sums that left f32 on the way may not have to, and are made again. */
static bool any_special(const float *x, int64_t n)
{
    int special = 0;

    for (int64_t i = 0; i < n; i++)
        special |= !(fabsf(x[i]) <= 0x1.fffffep127f);
    return special != 0;
}

static void sum_again(const struct rows *r, const struct part *p, float *out)
{
    const struct pool_windows *w = &r->w;

    for (int64_t j = 0; j < p->n; j++) {
        int64_t first, along = pool_inside(w, 2, p->pos + j, &first);
        int64_t rows = p->count[0] * p->count[1];
        double sum = 0;
        for (int64_t i = 0; i < rows * along; i++) {
            int64_t i0 = p->first[0] + i / along / p->count[1];
            int64_t i1 = p->first[1] + i / along % p->count[1];
            int64_t at = ((p->plane * w->in[0] + i0) * w->in[1] + i1) * w->in[2] + first;
            sum += cpu_get_f64(r->x->dtype, r->x->data, at + i % along);
        }
        if (r->kind == RLX_POOL_KIND_mean)
            sum /= (double)(r->count_pad ? windows_volume(w->kernel) : rows * along);
        out[j] = (float)sum;
    }
}

static void divide(const struct rows *r, const struct part *p, float *out)
{
    if (r->count_pad) {
        float count = (float)windows_volume(r->w.kernel);
        for (int64_t j = 0; j < p->n; j++)
            out[j] /= count;
        return;
    }
    for (int64_t j = 0; j < p->n; j++) {
        int64_t first, along = pool_inside(&r->w, 2, p->pos + j, &first);
        out[j] /= (float)(p->count[0] * p->count[1] * along);
    }
}

static void run_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct rows *r = ctx;
    const struct pool_windows *w = &r->w;
    int64_t most = (ROW - w->kernel[2]) / w->stride[2] + 1;

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        struct part p = {.plane = t / (w->pos[0] * w->pos[1])};
        p.count[0] = pool_inside(w, 0, t / w->pos[1] % w->pos[0], &p.first[0]);
        p.count[1] = pool_inside(w, 1, t % w->pos[1], &p.first[1]);
        for (p.pos = 0; p.pos < w->pos[2]; p.pos += p.n) {
            float row[ROW], out[ROW];
            p.n = cpu_min_i64(most, w->pos[2] - p.pos);
            join_taps(r, row, join_rows(r, &p, row), out, p.n);
            if (is_sum(r->kind) && any_special(out, p.n))
                sum_again(r, &p, out);
            else if (r->kind == RLX_POOL_KIND_mean)
                divide(r, &p, out);
            cpu_store_f32(r->y->dtype, out, cpu_at(r->y, t * w->pos[2] + p.pos), p.n);
        }
    }
}

/* ---- whole planes -------------------------------------------------------------------------- */

static double reduce_run(int32_t kind, const float *x, int64_t n)
{
    switch (kind) {
    case RLX_POOL_KIND_max: return (double)reduce_row_top_f32(x, n);
    case RLX_POOL_KIND_min: return (double)reduce_row_low_f32(x, n);
    default: return reduce_row_sum_f32(x, n);
    }
}

static double reduce_plane(const struct rows *r, int64_t plane, int64_t n)
{
    CPU_TILE_OF(float, tile);
    double all = (double)identity(r->kind);

    if (r->x->dtype == RLX_DTYPE_f32)
        return reduce_run(r->kind, cpu_at(r->x, plane * n), n);
    for (int64_t i = 0; i < n; i += CPU_TILE) {
        int64_t part = cpu_min_i64(CPU_TILE, n - i);
        cpu_load_f32(r->x->dtype, cpu_at(r->x, plane * n + i), tile, part);
        double here = reduce_run(r->kind, tile, part);
        all = r->kind == RLX_POOL_KIND_max   ? cpu_max_f64(all, here)
              : r->kind == RLX_POOL_KIND_min ? cpu_min_f64(all, here)
                                             : all + here;
    }
    return all;
}

static void run_planes(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct rows *r = ctx;
    int64_t n = windows_volume(r->w.in);

    (void)worker;
    for (int64_t t = begin; t < end; t += CPU_TILE) {
        CPU_TILE_OF(double, out);
        int64_t part = cpu_min_i64(CPU_TILE, end - t);
        for (int64_t i = 0; i < part; i++) {
            out[i] = reduce_plane(r, t + i, n);
            if (r->kind == RLX_POOL_KIND_mean)
                out[i] /= (double)n;
        }
        cpu_store_f64(r->y->dtype, out, cpu_at(r->y, t), part);
    }
}

/* ---- the choice ---------------------------------------------------------------------------- */

static bool is_whole(const struct pool_windows *w)
{
    for (int i = 0; i < 3; i++)
        if (w->kernel[i] != w->in[i] || w->pad[i] != 0)
            return false;
    return true;
}

bool pool_rows_run(const struct cpu_call *c, const struct pool_windows *w)
{
    const struct attr_pool *a = &c->attr->pool;
    rlx_dtype d = c->out->dtype;
    struct rows r = {
        .w = *w, .x = &c->in[0], .y = c->out, .kind = a->kind, .count_pad = a->count_include_pad};

    if ((d != RLX_DTYPE_f32 && !cpu_is_half(d)) || a->kind == RLX_POOL_KIND_prod)
        return false;
    int64_t volume = windows_volume(w->kernel);
    if (is_whole(w)) {
        cpu_for(c->pool, w->planes, cpu_max_i64(1, 65536 / volume), run_planes, &r);
        return true;
    }
    if (w->stride[2] > STRIDE_MOST || w->kernel[2] > KERNEL_MOST ||
        (is_sum(a->kind) && volume > SUM_MOST))
        return false;
    int64_t work = w->in[2] * w->kernel[0] * w->kernel[1]; /* of a row */
    cpu_for(c->pool, w->planes * w->pos[0] * w->pos[1], cpu_max_i64(1, 32768 / (work + 1)),
            run_rows, &r);
    return true;
}
