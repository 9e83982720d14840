/* softmax.c: e^(x - max) / its sum along an axis.
 *
 * Along the last axis each row is read for its maximum, then for the sum, then scaled. Other axes
 * are done by tiles of neighbouring columns in the same three steps. f32 and f64 keep e^x in the
 * output between the last two; f16 and bf16 compute it again, so that nothing is rounded twice. */
#include "backend/cpu/kernels/softmax.h"

struct softmax_job {
    const struct cpu_tensor *x, *y;
    int64_t n, inner, tiles; /* the axis, the elements behind it, tiles of those */
};

#define SOFTMAX_FUNCTIONS(T, name, as_native, native)                                              \
    static T row_top_##name(rlx_dtype d, const char *x, int64_t n)                                 \
    {                                                                                              \
        T top = -(T)INFINITY;                                                                      \
        CPU_TILE_OF(T, buffer);                                                                    \
                                                                                                   \
        for (int64_t i = 0; i < n; i += CPU_TILE) {                                                \
            int64_t part = cpu_min_i64(n - i, CPU_TILE);                                           \
            const T *v = as_native(d, x + i * (int64_t)cpu_size(d), buffer, part);                 \
            T here = (T)reduce_row_top_##name(v, part);                                            \
            top = REDUCE_MAX_F(top, here);                                                         \
        }                                                                                          \
        return top == -(T)INFINITY ? 0 : top;                                                      \
    }                                                                                              \
                                                                                                   \
    /* keep: where e^(x - shift) goes; NULL: nowhere. */                                           \
    static double row_sum_##name(rlx_dtype d, const char *x, int64_t n, T shift, T *keep)          \
    {                                                                                              \
        double sum = 0;                                                                            \
        CPU_TILE_OF(T, buffer);                                                                    \
                                                                                                   \
        for (int64_t i = 0; i < n; i += CPU_TILE) {                                                \
            int64_t part = cpu_min_i64(n - i, CPU_TILE);                                           \
            const T *v = as_native(d, x + i * (int64_t)cpu_size(d), buffer, part);                 \
            T *e = keep ? keep + i : buffer;                                                       \
            softmax_exp_##name(v, shift, 1, e, part);                                              \
            sum += reduce_row_sum_##name(e, part);                                                 \
        }                                                                                          \
        return sum;                                                                                \
    }                                                                                              \
                                                                                                   \
    static void softmax_row_##name(rlx_dtype d, const char *x, char *y, int64_t n)                 \
    {                                                                                              \
        T shift = row_top_##name(d, x, n), *e = (T *)y;                                            \
        T scale = (T)softmax_scale(row_sum_##name(d, x, n, shift, d == (native) ? e : NULL));      \
        int64_t size = (int64_t)cpu_size(d);                                                       \
        CPU_TILE_OF(T, buffer);                                                                    \
                                                                                                   \
        for (int64_t i = 0; d == (native) && i < n; i++)                                           \
            e[i] *= scale;                                                                         \
        for (int64_t i = 0; d != (native) && i < n; i += CPU_TILE) {                               \
            int64_t part = cpu_min_i64(n - i, CPU_TILE);                                           \
            const T *v = as_native(d, x + i * size, buffer, part);                                 \
            softmax_exp_##name(v, shift, scale, buffer, part);                                     \
            cpu_store_##name(d, buffer, y + i * size, part);                                       \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* e^(x - top) * scale of a row of `part` columns. */                                          \
    static void exp_columns_##name(const T *x, const T *top, const T *scale, T *e, int64_t part)   \
    {                                                                                              \
        CPU_INDEPENDENT                                                                            \
        for (int64_t i = 0; i < part; i++)                                                         \
            e[i] = softmax_one_##name(x[i] - top[i]) * scale[i];                                   \
    }                                                                                              \
                                                                                                   \
    /* n rows of `part` columns, `step` bytes apart. */                                            \
    static void softmax_columns_##name(rlx_dtype d, const char *x, char *y, int64_t n,             \
                                       int64_t step, int64_t part)                                 \
    {                                                                                              \
        CPU_TILE_OF(T, buffer);                                                                    \
        CPU_TILE_OF(T, top);                                                                       \
        CPU_TILE_OF(T, scale);                                                                     \
        CPU_TILE_OF(double, sum);                                                                  \
                                                                                                   \
        for (int64_t i = 0; i < part; i++) {                                                       \
            top[i] = -(T)INFINITY;                                                                 \
            scale[i] = 1;                                                                          \
            sum[i] = 0;                                                                            \
        }                                                                                          \
        for (int64_t k = 0; k < n; k++)                                                            \
            reduce_onto_top_##name(top, as_native(d, x + k * step, buffer, part), part);           \
        for (int64_t i = 0; i < part; i++)                                                         \
            top[i] = top[i] == -(T)INFINITY ? 0 : top[i];                                          \
        for (int64_t k = 0; k < n; k++) {                                                          \
            T *e = d == (native) ? (T *)(y + k * step) : buffer;                                   \
            exp_columns_##name(as_native(d, x + k * step, buffer, part), top, scale, e, part);     \
            reduce_onto_sum_##name(sum, e, part);                                                  \
        }                                                                                          \
        for (int64_t i = 0; i < part; i++)                                                         \
            scale[i] = (T)softmax_scale(sum[i]);                                                   \
        for (int64_t k = 0; k < n; k++) {                                                          \
            T *e = d == (native) ? (T *)(y + k * step) : buffer;                                   \
            if (d != (native))                                                                     \
                exp_columns_##name(as_native(d, x + k * step, buffer, part), top, scale, e, part); \
            for (int64_t i = 0; d == (native) && i < part; i++)                                    \
                e[i] *= scale[i];                                                                  \
            if (d != (native))                                                                     \
                cpu_store_##name(d, buffer, y + k * step, part);                                   \
        }                                                                                          \
    }

#define softmax_one_f32 math_exp
#define softmax_one_f64 exp
#define reduce_row_top_f64 reduce_row_max_f64
#define reduce_onto_top_f64 reduce_onto_max_f64

SOFTMAX_FUNCTIONS(float, f32, cpu_as_f32, RLX_DTYPE_f32)
SOFTMAX_FUNCTIONS(double, f64, softmax_as_f64, RLX_DTYPE_f64)

double softmax_row_sum(rlx_dtype d, const void *x, int64_t n, double *shift)
{
    if (d == RLX_DTYPE_f64) {
        *shift = row_top_f64(d, x, n);
        return row_sum_f64(d, x, n, *shift, NULL);
    }
    float top = row_top_f32(d, x, n);
    *shift = (double)top;
    return row_sum_f32(d, x, n, top, NULL);
}

static void softmax_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct softmax_job *j = ctx;
    rlx_dtype d = j->x->dtype;

    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        const char *x = cpu_at(j->x, r * j->n);
        char *y = cpu_at(j->y, r * j->n);
        if (d == RLX_DTYPE_f64)
            softmax_row_f64(d, x, y, j->n);
        else
            softmax_row_f32(d, x, y, j->n);
    }
}

static void softmax_column_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct softmax_job *j = ctx;
    rlx_dtype d = j->x->dtype;
    int64_t step = j->inner * (int64_t)cpu_size(d);

    (void)worker;
    for (int64_t u = begin; u < end; u++) {
        int64_t column = u % j->tiles * CPU_TILE, part = cpu_min_i64(j->inner - column, CPU_TILE);
        int64_t at = u / j->tiles * j->n * j->inner + column;
        if (d == RLX_DTYPE_f64)
            softmax_columns_f64(d, cpu_at(j->x, at), cpu_at(j->y, at), j->n, step, part);
        else
            softmax_columns_f32(d, cpu_at(j->x, at), cpu_at(j->y, at), j->n, step, part);
    }
}

static void run(const struct cpu_call *c)
{
    const struct cpu_tensor *x = &c->in[0];
    int64_t axis = c->attr->softmax.axis;
    struct softmax_job j = {.x = x, .y = c->out};
    const int64_t block = 4096; /* elements; e^x is no copy */

    if (x->count == 0)
        return;
    j.n = x->dim[axis];
    j.inner = cpu_product(x, axis + 1, x->rank);
    j.tiles = (j.inner + CPU_TILE - 1) / CPU_TILE;
    int64_t outer = x->count / j.n / j.inner;
    if (j.inner == 1)
        cpu_for(c->pool, outer, cpu_grain(block, j.n), softmax_rows, &j);
    else
        cpu_for(c->pool, outer * j.tiles, cpu_grain(block, j.n * cpu_min_i64(j.inner, CPU_TILE)),
                softmax_column_tiles, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_softmax);
const struct cpu_kernel CPU_NAME(cpu_softmax) = {.run = run, .in_place = 1};
