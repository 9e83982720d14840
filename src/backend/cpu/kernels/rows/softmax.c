/* softmax.c: e^(x - max) / its sum along an axis.
 *
 * Along the last axis each row is read for its maximum, then for the sum, then scaled, all while it
 * is in the cache; the row after it is fetched meanwhile. f16 and bf16 rows are f32 in between, in
 * a row of the worker's own. Rows too long for a cache are cut into blocks: maximum and sum of
 * each, joined in order, and then the results, so that memory is read twice and written once. Other
 * axes are done by tiles of neighbouring columns. */
#include "backend/cpu/kernels/rows/softmax.h"
#include "backend/cpu/kernels/vec_math.h"

/* Elements of a row that one worker does alone, of a row where there are few, and of a block
 * otherwise. */
enum { ROW_MOST = 262144, ROW_FEW = 32768, BLOCK = 16384, FEW = 8 };
enum { AHEAD = 8 }; /* rows of columns that are fetched before they are read */

struct block_sum {
    double top, sum;
};

struct softmax_job {
    const struct cpu_tensor *x, *y;
    int64_t n, inner;      /* the axis, the elements after it */
    int64_t width, tiles;  /* columns of a tile, tiles of those elements */
    int64_t rows, blocks;  /* blocks of a row */
    struct block_sum *sum; /* of every block of the row at hand */
    struct block_sum all;  /* of that row */
    int64_t at;            /* its first element */
    float *row;            /* one per worker; not for f64 */
    bool streams;          /* results go past the caches, f64 excepted */
};
/* ---- f64 rows ------------------------------------------------------------------------------ */

static double row_top_f64(const double *x, int64_t n)
{
    double top = reduce_row_max_f64(x, n);
    return top == -(double)INFINITY ? 0 : top;
}

/* The sum of e^(x[i] - shift), which go to e[i] unless e is NULL. */
static double row_sum_f64(const double *x, int64_t n, double shift, double *e)
{
    CPU_TILE_OF(double, tile);
    double sum = 0;

    for (int64_t i = 0; i < n; i += CPU_TILE) {
        int64_t part = cpu_min_i64(n - i, CPU_TILE);
        double *to = e ? e + i : tile;
        softmax_exp_f64(x + i, shift, 1, to, part);
        sum += reduce_row_sum_f64(to, part);
    }
    return sum;
}

/* ---- columns of any type ------------------------------------------------------------------- */

#define SOFTMAX_FUNCTIONS(T, name, as_native, native)                                              \
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
        for (int64_t k = 0; k < n; k++) {                                                          \
            if (k + AHEAD < n)                                                                     \
                cpu_prefetch(x + (k + AHEAD) * step, part * (int64_t)cpu_size(d));                 \
            reduce_onto_top_##name(top, as_native(d, x + k * step, buffer, part), part);           \
        }                                                                                          \
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

/* ---- f32 rows, and halves a tile at a time ------------------------------------------------- */

enum { STEP = 4 * VEC_F32 }; /* elements of a turn: four chains of operations side by side */

/* The largest of a row, or 0 if that is -Inf. A NaN may be passed over: it comes back in the sum.
 */
static float row_largest(const float *x, int64_t n)
{
    vec_f32 top[4] = {vec_all(-INFINITY), vec_all(-INFINITY), vec_all(-INFINITY),
                      vec_all(-INFINITY)};
    int64_t i = 0;

    for (; i + STEP <= n; i += STEP) {
        GEMM_UNROLL
        for (int k = 0; k < 4; k++)
            top[k] = vec_max(vec_load(x + i + k * VEC_F32), top[k]);
    }
    float most = vec_largest(vec_max(vec_max(top[0], top[1]), vec_max(top[2], top[3])));
    for (; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

/* What a row is shifted by, from its largest element. */
static float shift_of(float top)
{
    return top == -INFINITY ? 0 : top;
}

/* The sum of e^(x[i] - shift), which go to e[i] unless e is NULL. next: `size` bytes for each
 * element, to be fetched meanwhile, or NULL. */
static double exp_row(const float *x, float *e, int64_t n, float shift, const char *next,
                      int64_t size)
{
    enum { PART = 64 * STEP }; /* up to here f32 is good enough to sum in */
    double sum = 0;
    int64_t i = 0;

    while (i + STEP <= n) {
        vec_f32 part[4] = {vec_all(0), vec_all(0), vec_all(0), vec_all(0)};
        int64_t end = cpu_min_i64(n, i + PART);
        for (; i + STEP <= end; i += STEP) {
            if (next)
                cpu_prefetch(next + i * size, STEP * size);
            GEMM_UNROLL
            for (int k = 0; k < 4; k++) {
                vec_f32 v = vec_exp(vec_load(x + i + k * VEC_F32) - shift);
                if (e)
                    vec_store(e + i + k * VEC_F32, v);
                part[k] += v;
            }
        }
        sum += vec_sum((part[0] + part[1]) + (part[2] + part[3]));
    }
    for (; i < n; i++) {
        float v = math_exp(x[i] - shift);
        if (e)
            e[i] = v;
        sum += (double)v;
    }
    return sum;
}

static double sum_of_halves(rlx_dtype d, const uint16_t *x, int64_t n, float *top)
{
    CPU_TILE_OF(float, tile);
    double sum = 0;

    *top = -INFINITY;
    for (int64_t i = 0; i < n; i += CPU_TILE) {
        int64_t part = cpu_min_i64(n - i, CPU_TILE);
        cpu_load_f32(d, x + i, tile, part);
        float here = row_largest(tile, part);
        *top = here > *top ? here : *top;
    }
    *top = shift_of(*top);
    for (int64_t i = 0; i < n; i += CPU_TILE) {
        int64_t part = cpu_min_i64(n - i, CPU_TILE);
        cpu_load_f32(d, x + i, tile, part);
        sum += exp_row(tile, NULL, part, *top, NULL, 0);
    }
    return sum;
}

double softmax_row_sum(rlx_dtype d, const void *x, int64_t n, double *shift)
{
    float top;
    double sum;

    if (d == RLX_DTYPE_f64) {
        *shift = row_top_f64(x, n);
        return row_sum_f64(x, n, *shift, NULL);
    }
    if (d == RLX_DTYPE_f32) {
        top = shift_of(row_largest(x, n));
        sum = exp_row(x, NULL, n, top, NULL, 0);
    } else {
        sum = sum_of_halves(d, x, n, &top);
    }
    *shift = (double)top;
    return sum;
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* n <= CPU_TILE results, as elements of y. */
static void store_tile(const struct softmax_job *j, char *y, const float *e, int64_t n)
{
    CPU_TILE_OF(uint16_t, half);
    rlx_dtype d = j->y->dtype;
    const void *result = e;

    if (!j->streams) {
        cpu_store_f32(d, e, y, n);
        return;
    }
    if (d != RLX_DTYPE_f32) {
        cpu_store_f32(d, e, half, n);
        result = half;
    }
    cpu_stream_out(y, result, n * (int64_t)cpu_size(d));
}

/* e times the scale as elements of y. */
static void scale_row(const struct softmax_job *j, char *y, const float *e, float scale)
{
    rlx_dtype d = j->y->dtype;
    int64_t size = (int64_t)cpu_size(d);

    if (j->streams && d == RLX_DTYPE_f32 && vec_streams_to(y, j->n)) {
        for (int64_t i = 0; i < j->n; i += VEC_F32)
            vec_stream((float *)(void *)y + i, vec_load(e + i) * scale);
        return;
    }
    for (int64_t i = 0; i < j->n; i += CPU_TILE) {
        int64_t part = cpu_min_i64(j->n - i, CPU_TILE);
        CPU_TILE_OF(float, result);
        float *to = d == RLX_DTYPE_f32 && !j->streams ? (float *)(y + i * size) : result;
        for (int64_t k = 0; k < part; k++)
            to[k] = e[i + k] * scale;
        if (to == result)
            store_tile(j, y + i * size, result, part);
    }
}

/* One row; next: where the one after it is, or NULL. e: a row of the worker's own. */
static void softmax_row(const struct softmax_job *j, const char *x, char *y, const char *next,
                        float *e)
{
    rlx_dtype d = j->x->dtype;
    int64_t size = (int64_t)cpu_size(d);
    const float *from = cpu_as_f32(d, x, e, j->n);
    float top = shift_of(row_largest(from, j->n));

    scale_row(j, y, e, (float)softmax_scale(exp_row(from, e, j->n, top, next, size)));
}

static void softmax_row_f64(const double *x, double *y, int64_t n)
{
    double shift = row_top_f64(x, n);
    double scale = softmax_scale(row_sum_f64(x, n, shift, y));

    for (int64_t i = 0; i < n; i++)
        y[i] *= scale;
}

static void softmax_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct softmax_job *j = ctx;
    rlx_dtype d = j->x->dtype;

    for (int64_t r = begin; r < end; r++) {
        const char *x = cpu_at(j->x, r * j->n);
        char *y = cpu_at(j->y, r * j->n);
        if (d == RLX_DTYPE_f64)
            softmax_row_f64(cpu_at(j->x, r * j->n), cpu_at(j->y, r * j->n), j->n);
        else
            softmax_row(j, x, y, r + 1 < end ? cpu_at(j->x, (r + 1) * j->n) : NULL,
                        j->row + worker * j->n);
    }
    if (j->streams)
        cpu_stream_end();
}

/* ---- long rows ----------------------------------------------------------------------------- */

/* One row: its blocks' maxima and sums. */
static void block_sums(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct softmax_job *j = ctx;

    (void)worker;
    for (int64_t b = begin; b < end; b++) {
        int64_t at = b * BLOCK, n = cpu_min_i64(BLOCK, j->n - at);
        j->sum[b].sum = softmax_row_sum(j->x->dtype, cpu_at(j->x, j->at + at), n, &j->sum[b].top);
    }
}

/* Of a whole row. A block of -Inf has the sum 0, and its top says nothing. */
static struct block_sum join(const struct block_sum *b, int64_t count)
{
    struct block_sum all = {-(double)INFINITY, 0};

    for (int64_t i = 0; i < count; i++)
        all.top = b[i].sum == 0 ? all.top : REDUCE_MAX_F(all.top, b[i].top);
    for (int64_t i = 0; i < count; i++)
        all.sum += b[i].sum == 0 ? 0 : b[i].sum * exp(b[i].top - all.top);
    all.top = all.top == -(double)INFINITY ? 0 : all.top;
    return all;
}

/* n elements from `at` on. */
static void write_results(const struct softmax_job *j, int64_t at, int64_t n)
{
    rlx_dtype d = j->x->dtype;
    double scale = softmax_scale(j->all.sum);

    for (int64_t i = 0; i < n; i += CPU_TILE) {
        CPU_TILE_OF(float, e);
        int64_t part = cpu_min_i64(n - i, CPU_TILE);
        const void *x = cpu_at(j->x, at + i);
        void *y = cpu_at(j->y, at + i);
        if (d == RLX_DTYPE_f64) {
            softmax_exp_f64(x, j->all.top, scale, y, part);
            continue;
        }
        float *to = d == RLX_DTYPE_f32 && !j->streams ? y : e;
        softmax_exp_f32(cpu_as_f32(d, x, e, part), (float)j->all.top, (float)scale, to, part);
        if (to == e)
            store_tile(j, y, e, part);
    }
}

/* The row's results, last block first: that is what the caches still have. */
static void block_results(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct softmax_job *j = ctx;

    (void)worker;
    for (int64_t u = begin; u < end; u++) {
        int64_t at = (j->blocks - 1 - u) * BLOCK;
        write_results(j, j->at + at, cpu_min_i64(BLOCK, j->n - at));
    }
    if (j->streams)
        cpu_stream_end();
}

static void run_long(const struct cpu_call *c, struct softmax_job *j)
{
    for (int64_t r = 0; r < j->rows; r++) {
        j->at = r * j->n;
        cpu_for(c->pool, j->blocks, 1, block_sums, j);
        j->all = join(j->sum, j->blocks);
        cpu_for(c->pool, j->blocks, 1, block_results, j);
    }
}

/* ---- columns ------------------------------------------------------------------------------- */

static void softmax_column_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct softmax_job *j = ctx;
    rlx_dtype d = j->x->dtype;
    int64_t step = j->inner * (int64_t)cpu_size(d);

    (void)worker;
    for (int64_t u = begin; u < end; u++) {
        int64_t column = u % j->tiles * j->width, part = cpu_min_i64(j->inner - column, j->width);
        int64_t at = u / j->tiles * j->n * j->inner + column;
        if (d == RLX_DTYPE_f64)
            softmax_columns_f64(d, cpu_at(j->x, at), cpu_at(j->y, at), j->n, step, part);
        else
            softmax_columns_f32(d, cpu_at(j->x, at), cpu_at(j->y, at), j->n, step, part);
    }
}

/* ---- the kernel ---------------------------------------------------------------------------- */

static void describe(const struct cpu_call *c, struct softmax_job *j)
{
    const struct cpu_tensor *x = &c->in[0];
    int64_t axis = c->attr->softmax.axis;

    *j = (struct softmax_job){.x = x, .y = c->out, .n = x->dim[axis], .blocks = 1};
    j->inner = cpu_product(x, axis + 1, x->rank);
    j->width = cpu_min_i64(CPU_TILE, cpu_max_i64(64, 131072 / j->n / 64 * 64));
    j->tiles = (j->inner + j->width - 1) / j->width;
    j->rows = x->count / j->n / j->inner;
    if (j->inner == 1 && j->n > (j->rows < FEW ? ROW_FEW : ROW_MOST))
        j->blocks = (j->n + BLOCK - 1) / BLOCK;
}

static int workers(const struct cpu_call *c)
{
    return c->pool ? pool_threads(c->pool) : 1;
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct softmax_job j;

    if (c->in[0].count == 0)
        return 0;
    describe(c, &j);
    if (j.blocks > 1)
        return (uint64_t)j.blocks * sizeof(struct block_sum);
    if (j.inner == 1 && j.x->dtype != RLX_DTYPE_f64)
        return (uint64_t)(j.n * workers(c)) * sizeof(float);
    return 0;
}

static void run(const struct cpu_call *c)
{
    struct softmax_job j;

    if (c->in[0].count == 0)
        return;
    describe(c, &j);
    j.streams = cpu_streams(c);
    int64_t block = cpu_stream_block(j.x->count);
    if (j.blocks > 1) {
        j.sum = c->scratch;
        run_long(c, &j);
    } else if (j.inner == 1) {
        j.row = c->scratch;
        cpu_for(c->pool, j.rows, cpu_grain(block, j.n), softmax_rows, &j);
    } else {
        cpu_for(c->pool, j.rows * j.tiles, cpu_grain(block, j.n * cpu_min_i64(j.inner, j.width)),
                softmax_column_tiles, &j);
    }
}

extern const struct cpu_kernel CPU_NAME(cpu_softmax);
const struct cpu_kernel CPU_NAME(cpu_softmax) = {.run = run, .scratch = scratch, .in_place = 1};
