/* norm_forward.c: layer_norm, rms_norm and group_norm (ops-core.md 11).
 *
 * Sets that lie together are done one by one, statistics and result while the set is in the cache,
 * and the next one is fetched meanwhile. Sets too large for that, and too few for all threads, are
 * shared: moments of all blocks, then results. Sets of an axis other than the last are done some
 * columns at a time. Every element is read for the last time where
 * its result is written, so all of it works in place. */
#include "backend/cpu/kernels/rows/norm.h"

struct forward {
    const struct cpu_call *c;
    struct norm n;
    int64_t groups;               /* sets that differ in gamma and beta, one after another */
    int64_t run;                  /* neighbouring elements of a set with the same gamma and beta */
    int64_t channels;             /* gammas in all */
    const void *gamma, *beta;     /* as norm_apply wants them */
    struct norm_moments *moments; /* of one set's blocks, for every worker */
    char *rows;                   /* a row for every worker; NULL: sets are read where they are */
    int64_t set;                  /* that is shared, and its statistics */
    struct norm_stat stat;
    bool streams;         /* results go past the caches */
    int64_t width, parts; /* of columns */
};

/* ---- what is asked for --------------------------------------------------------------------- */

static void describe(const struct cpu_call *c, struct forward *f)
{
    const struct cpu_tensor *x = &c->in[0];

    *f = (struct forward){.c = c, .groups = 1, .run = 1};
    if (c->op == RLX_OP_group_norm) {
        f->groups = c->attr->group_norm.num_groups;
        norm_groups(&f->n, x, f->groups, c->attr->group_norm.eps);
        f->channels = x->dim[1];
        f->run = f->n.size / (f->channels / f->groups);
    } else {
        bool layer = c->op == RLX_OP_layer_norm;
        int64_t axis = layer ? c->attr->layer_norm.axis : c->attr->rms_norm.axis;
        norm_along(&f->n, x, axis, layer, layer ? c->attr->layer_norm.eps : c->attr->rms_norm.eps);
        f->channels = f->n.size;
    }
    if (f->n.inner > 1) {
        f->width = norm_columns_width(&f->n);
        f->parts = (f->n.inner + f->width - 1) / f->width;
    }
}

/* Scratch: gamma, beta, moments, rows. */
static uint64_t wide_bytes(const struct forward *f)
{
    uint64_t size = cpu_size(norm_wide(f->c->out->dtype));
    return ((uint64_t)f->channels * size + 63) / 64 * 64;
}

static uint64_t workers(const struct cpu_call *c)
{
    return c->pool ? (uint64_t)pool_threads(c->pool) : 1;
}

static uint64_t moments_bytes(const struct forward *f)
{
    uint64_t count = f->n.inner == 1 ? (uint64_t)f->n.blocks * workers(f->c) : 0;
    return (count * sizeof(struct norm_moments) + 63) / 64 * 64;
}

/* Whether threads share the inside of a set. */
static bool shares_sets(const struct norm *n)
{
    enum { FEW = 16, LARGE = 131072 };
    return n->blocks > 1 && (n->outer < FEW || n->size > LARGE);
}

/* f16 and bf16 sets that one worker does alone are converted to f32 in a separate row. */
static uint64_t row_bytes(const struct forward *f)
{
    bool rows = f->n.inner == 1 && !shares_sets(&f->n) && cpu_is_half(f->n.x->dtype);
    return rows ? ((uint64_t)f->n.size * sizeof(float) + 63) / 64 * 64 : 0;
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct forward f;

    if (c->out->count == 0)
        return 0;
    describe(c, &f);
    return 2 * wide_bytes(&f) + moments_bytes(&f) + workers(c) * row_bytes(&f);
}

/* ---- contiguous sets ----------------------------------------------------------------------- */

/* Where a set is, or a copy of it. */
struct set {
    int64_t number;
    const char *x;
    rlx_dtype dtype;
};

static struct set set_of(const struct forward *f, int64_t number)
{
    return (struct set){number, cpu_at(f->n.x, number * f->n.size), f->n.x->dtype};
}

/* Elements [from, to) of a set, to y. */
static void write_part(const struct forward *f, const struct set *set, int64_t from, int64_t to,
                       struct norm_stat s, char *y)
{
    rlx_dtype dtype = f->c->out->dtype;
    int64_t size = (int64_t)cpu_size(norm_wide(dtype));
    int64_t channel = set->number % f->groups * (f->channels / f->groups);

    while (from < to) {
        int64_t n = f->run == 1 ? to - from : cpu_min_i64(to - from, f->run - from % f->run);
        int64_t affine = (channel + from / f->run) * size;
        norm_apply(set->dtype, set->x + from * (int64_t)cpu_size(set->dtype), dtype, y, n, s,
                   (const char *)f->gamma + affine, (const char *)f->beta + affine, f->run == 1);
        from += n;
        y += n * (int64_t)cpu_size(dtype);
    }
}

/* n elements from `from` on straight past the caches, where that is possible. */
static bool stream_part(const struct forward *f, const struct set *set, int64_t from, int64_t n,
                        struct norm_stat s, char *y)
{
    bool plain = set->dtype == RLX_DTYPE_f32 && f->c->out->dtype == RLX_DTYPE_f32;
    const float *x = (const float *)(const void *)set->x, *gamma = f->gamma, *beta = f->beta;

    return plain && f->run == 1 && f->groups == 1 &&
           norm_stream(x + from, (float *)(void *)y, n, s, gamma + from, beta + from);
}

/* The same, a piece at a time: through the caches or past them, while elements from `next` on, if
 * there are any, are fetched. */
static void write_pieces(const struct forward *f, const struct set *set, int64_t from, int64_t to,
                         struct norm_stat s, const char *next)
{
    enum { PIECE = CPU_TILE };
    int64_t size = (int64_t)cpu_size(f->c->out->dtype);
    CPU_TILE_ANY(result);

    for (int64_t n; from < to; from += n) {
        char *y = cpu_at(f->c->out, set->number * f->n.size + from);
        n = cpu_min_i64(PIECE, to - from);
        if (next) {
            cpu_prefetch(next, n * size);
            next += n * size;
        }
        if (f->streams && stream_part(f, set, from, n, s, y))
            continue;
        write_part(f, set, from, from + n, s, f->streams ? (char *)result : y);
        if (f->streams)
            cpu_stream_out(y, result, n * size);
    }
}

static void whole_sets(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct forward *f = ctx;
    const struct norm *n = &f->n;
    struct norm_moments *m = f->moments + worker * n->blocks;
    float *row = f->rows ? (float *)(f->rows + (uint64_t)worker * row_bytes(f)) : NULL;
    int64_t bytes = n->size * (int64_t)cpu_size(n->x->dtype);

    for (int64_t k = begin; k < end; k++) {
        struct set set = set_of(f, k);
        const char *next = k + 1 < end ? set.x + bytes : NULL;
        if (row) {
            cpu_load_f32(set.dtype, set.x, row, n->size);
            set = (struct set){k, (const char *)row, RLX_DTYPE_f32};
        }
        for (int64_t b = 0; b < n->blocks; b++)
            m[b] = norm_moments_of(set.dtype, set.x + b * n->block * (int64_t)cpu_size(set.dtype),
                                   cpu_min_i64(n->block, n->size - b * n->block), n->centred);
        write_pieces(f, &set, 0, n->size, norm_stat_of(n, m), next);
    }
    if (f->streams)
        cpu_stream_end();
}

static void block_moments(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct forward *f = ctx;
    const struct norm *n = &f->n;

    (void)worker;
    for (int64_t b = begin; b < end; b++) {
        int64_t from = b * n->block, to = cpu_min_i64(from + n->block, n->size);
        const void *x = cpu_at(n->x, f->set * n->size + from);
        f->moments[b] = norm_moments_of(n->x->dtype, x, to - from, n->centred);
    }
}

/* Last block first: that is what the caches still have. */
static void block_results(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct forward *f = ctx;
    const struct norm *n = &f->n;
    struct set set = set_of(f, f->set);

    (void)worker;
    for (int64_t u = begin; u < end; u++) {
        int64_t from = (n->blocks - 1 - u) * n->block;
        write_pieces(f, &set, from, cpu_min_i64(from + n->block, n->size), f->stat, NULL);
    }
    if (f->streams)
        cpu_stream_end();
}

static void shared_sets(struct forward *f)
{
    const struct norm *n = &f->n;

    for (f->set = 0; f->set < n->outer; f->set++) {
        cpu_for(f->c->pool, n->blocks, 1, block_moments, f);
        f->stat = norm_stat_of(n, f->moments);
        cpu_for(f->c->pool, n->blocks, 1, block_results, f);
    }
}

/* ---- sets side by side --------------------------------------------------------------------- */

static void columns(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct forward *f = ctx;
    const struct norm *n = &f->n;
    const struct cpu_tensor *x = n->x, *y = f->c->out;
    rlx_dtype wide = norm_wide(y->dtype);
    CPU_TILE_OF(double, mean);
    CPU_TILE_OF(double, factor);
    CPU_TILE_OF(double, row);

    (void)worker;
    for (int64_t u = begin; u < end; u++) {
        int64_t outer = u / f->parts, column = u % f->parts * f->width;
        int64_t width = cpu_min_i64(f->width, n->inner - column);
        norm_columns(n, outer, column, width, mean, factor);
        for (int64_t k = 0; k < n->size; k++) {
            int64_t at = (outer * n->size + k) * n->inner + column;
            double g = cpu_get_f64(wide, f->gamma, k), b = cpu_get_f64(wide, f->beta, k);
            cpu_load_f64(x->dtype, cpu_at(x, at), row, width);
            for (int64_t i = 0; i < width; i++)
                row[i] = (row[i] - mean[i]) * factor[i] * g + b;
            cpu_store_f64(y->dtype, row, cpu_at(y, at), width);
        }
    }
}

/* ---- the kernels --------------------------------------------------------------------------- */

static void run(const struct cpu_call *c)
{
    struct forward f;

    if (c->out->count == 0)
        return;
    describe(c, &f);
    f.streams = cpu_streams(c);
    char *room = c->scratch;
    uint64_t bytes = wide_bytes(&f);
    f.gamma = norm_widen(&c->in[1], c->out->dtype, f.channels, room);
    f.beta =
        norm_widen(c->in_count > 2 ? &c->in[2] : NULL, c->out->dtype, f.channels, room + bytes);
    f.moments = (struct norm_moments *)(void *)(room + 2 * bytes);
    f.rows = row_bytes(&f) > 0 ? room + 2 * bytes + moments_bytes(&f) : NULL;

    const struct norm *n = &f.n;
    if (n->inner > 1) {
        cpu_for(c->pool, n->outer * f.parts, norm_grain(n->size * f.width), columns, &f);
    } else if (shares_sets(n)) {
        shared_sets(&f);
    } else {
        int64_t block = cpu_stream_block(c->out->count);
        cpu_for(c->pool, n->outer, cpu_max_i64(1, block / n->size), whole_sets, &f);
    }
}

extern const struct cpu_kernel CPU_NAME(cpu_layer_norm);
extern const struct cpu_kernel CPU_NAME(cpu_rms_norm);
extern const struct cpu_kernel CPU_NAME(cpu_group_norm);
const struct cpu_kernel CPU_NAME(cpu_layer_norm) = {.run = run, .scratch = scratch, .in_place = 1};
const struct cpu_kernel CPU_NAME(cpu_rms_norm) = {.run = run, .scratch = scratch, .in_place = 1};
const struct cpu_kernel CPU_NAME(cpu_group_norm) = {.run = run, .scratch = scratch, .in_place = 1};
