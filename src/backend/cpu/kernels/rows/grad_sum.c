/* grad_sum.c: sums of terms over some axes of a tensor (grad_sum.h). All sums are f64, in an order
 * that the shapes alone decide. */
#include "backend/cpu/kernels/rows/grad_sum.h"

/* ---- plan ---------------------------------------------------------------------------------- */

enum { CHUNK = 32768, MANY = 64, LANES = 8 };

static void push(struct grad_axes *a, int64_t dim, int64_t stride)
{
    a->dim[a->rank] = dim;
    a->stride[a->rank++] = stride;
    a->count *= dim;
}

static int64_t offset_of(const struct grad_axes *a, int64_t k)
{
    int64_t at = 0;

    for (int32_t i = a->rank - 1; i >= 0; i--) {
        at += k % a->dim[i] * a->stride[i];
        k /= a->dim[i];
    }
    return at;
}

/* Few sums of many terms: share the terms. */
static void choose_chunks(struct grad_sum *g)
{
    int64_t units = g->columns ? g->kept.count * g->tiles : g->outputs;
    int64_t width = g->columns ? cpu_min_i64(g->inner, CPU_TILE) : 1;
    int64_t least = cpu_max_i64(1, CHUNK / cpu_max_i64(width, 1));

    g->chunk = g->set;
    g->chunks = 1;
    if (g->empty || units >= MANY || g->set <= least)
        return;
    int64_t most = MANY / units + 1;
    g->chunk = cpu_max_i64(least, (g->set + most - 1) / most);
    g->chunks = (g->set + g->chunk - 1) / g->chunk;
}

/* stays[a]: axis a of t is one of the sums' axes. */
static void plan(struct grad_sum *g, const struct cpu_tensor *t, const bool *stays)
{
    int64_t dim[RLX_MAX_RANK], stride[RLX_MAX_RANK];
    bool kept[RLX_MAX_RANK];
    int32_t n = 0;

    *g = (struct grad_sum){.kept = {.count = 1},
                           .gone = {.count = 1},
                           .inner = 1,
                           .columns = true,
                           .outputs = 1,
                           .empty = t->count == 0};
    for (int32_t a = 0; a < t->rank; a++) {
        if (stays[a])
            g->outputs *= t->dim[a];
        if (t->dim[a] == 1)
            continue;
        if (n > 0 && kept[n - 1] == stays[a]) {
            dim[n - 1] *= t->dim[a];
            continue;
        }
        dim[n] = t->dim[a];
        kept[n++] = stays[a];
    }
    for (int32_t a = n - 1; a >= 0; a--)
        stride[a] = a == n - 1 ? 1 : stride[a + 1] * dim[a + 1];
    if (n > 0) {
        g->inner = dim[n - 1];
        g->columns = kept[n - 1];
    }
    for (int32_t a = 0; a < n - 1; a++)
        push(kept[a] ? &g->kept : &g->gone, dim[a], stride[a]);
    g->set = g->gone.count * (g->columns ? 1 : g->inner);
    g->tiles = (g->inner + CPU_TILE - 1) / CPU_TILE;
    choose_chunks(g);
}

void grad_sum_like(struct grad_sum *g, const struct cpu_tensor *t, const struct cpu_tensor *like)
{
    bool stays[RLX_MAX_RANK] = {false};

    for (int32_t a = 1; a <= like->rank; a++)
        stays[t->rank - a] = like->dim[like->rank - a] == t->dim[t->rank - a];
    plan(g, t, stays);
}

void grad_sum_axis(struct grad_sum *g, const struct cpu_tensor *t, int64_t axis)
{
    bool stays[RLX_MAX_RANK] = {false};

    stays[axis] = true;
    plan(g, t, stays);
}

uint64_t grad_sum_scratch(const struct grad_sum *g)
{
    return g->chunks > 1 ? (uint64_t)(g->outputs * g->chunks) : 0;
}

/* ---- sums ---------------------------------------------------------------------------------- */

struct job {
    const struct grad_sum *g;
    grad_term_fn term;
    const void *ctx;
    double *part; /* [chunks, outputs] */
    rlx_dtype to;
    char *dst;
};

/* Sums at .. at+n-1 of one chunk: results already, or to be added to the others'. */
static void put(const struct job *j, const double *v, int64_t chunk, int64_t at, int64_t n)
{
    if (j->g->chunks == 1)
        cpu_store_f64(j->to, v, j->dst + at * (int64_t)cpu_size(j->to), n);
    else
        memcpy(j->part + chunk * j->g->outputs + at, v, (size_t)n * sizeof *v);
}

static void add_row(double *restrict sum, const double *restrict v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += v[i];
}

/* Rows [from, to) of the set, n columns from base on. Short rows that lie side by side are taken
 * together; sum then has several values per column, which are added at the end. */
static void sum_columns(const struct job *j, int64_t base, int64_t n, int64_t from, int64_t to,
                        double *sum)
{
    const struct grad_sum *g = j->g;
    int64_t rows = g->gone.rank ? g->gone.dim[g->gone.rank - 1] : 1; /* side by side */
    int64_t together = n <= CPU_TILE / 2 && n == g->inner ? CPU_TILE / n : 1;
    CPU_TILE_OF(double, v);

    memset(sum, 0, CPU_TILE * sizeof *sum);
    while (from < to) {
        int64_t run = cpu_min_i64(cpu_min_i64(to - from, rows - from % rows), together);
        j->term(j->ctx, base + offset_of(&g->gone, from), run * n, v);
        add_row(sum, v, run * n);
        from += run;
    }
    for (int64_t k = 1; k < together; k++)
        add_row(sum, sum + k * n, n);
}

/* A unit is a tile of sums and a chunk of their rows. */
static void column_units(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    const struct grad_sum *g = j->g;
    int64_t per_chunk = g->kept.count * g->tiles;
    CPU_TILE_OF(double, sum);

    (void)worker;
    for (int64_t u = begin; u < end; u++) {
        int64_t chunk = u / per_chunk, outer = u % per_chunk / g->tiles;
        int64_t column = u % g->tiles * CPU_TILE, n = cpu_min_i64(g->inner - column, CPU_TILE);
        int64_t from = chunk * g->chunk, to = cpu_min_i64(from + g->chunk, g->set);
        sum_columns(j, offset_of(&g->kept, outer) + column, n, from, to, sum);
        put(j, sum, chunk, outer * g->inner + column, n);
    }
}

static double add_up(const double *v, int64_t n)
{
    double lane[LANES] = {0}, sum = 0;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += v[i + l];
    for (; i < n; i++)
        sum += v[i];
    for (int l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

/* Terms [from, to) of one sum. */
static double sum_terms(const struct job *j, int64_t output, int64_t from, int64_t to)
{
    const struct grad_sum *g = j->g;
    int64_t base = offset_of(&g->kept, output);
    CPU_TILE_OF(double, v);
    double sum = 0;

    while (from < to) {
        int64_t i = from % g->inner;
        int64_t n = cpu_min_i64(cpu_min_i64(to - from, g->inner - i), CPU_TILE);
        j->term(j->ctx, base + offset_of(&g->gone, from / g->inner) + i, n, v);
        sum += add_up(v, n);
        from += n;
    }
    return sum;
}

/* A unit is a sum and a chunk of its terms. */
static void row_units(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    const struct grad_sum *g = j->g;

    (void)worker;
    for (int64_t u = begin; u < end; u++) {
        int64_t chunk = u / g->outputs, output = u % g->outputs, from = chunk * g->chunk;
        double sum = sum_terms(j, output, from, cpu_min_i64(from + g->chunk, g->set));
        put(j, &sum, chunk, output, 1);
    }
}

/* Chunks in their order; no terms at all make zeros. */
static void add_chunks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    CPU_TILE_OF(double, sum);

    (void)worker;
    for (int64_t at = begin; at < end; at += CPU_TILE) {
        int64_t n = cpu_min_i64(end - at, CPU_TILE);
        memset(sum, 0, (size_t)n * sizeof *sum);
        for (int64_t k = 0; k < j->g->chunks && !j->g->empty; k++)
            add_row(sum, j->part + k * j->g->outputs + at, n);
        cpu_store_f64(j->to, sum, j->dst + at * (int64_t)cpu_size(j->to), n);
    }
}

void grad_sum_run(const struct grad_sum *g, struct pool *pool, grad_term_fn term, const void *ctx,
                  double *scratch, rlx_dtype to, void *dst)
{
    struct job j = {.g = g, .term = term, .ctx = ctx, .part = scratch, .to = to, .dst = dst};

    if (g->outputs == 0)
        return;
    if (!g->empty) {
        int64_t units = (g->columns ? g->kept.count * g->tiles : g->outputs) * g->chunks;
        int64_t width = g->columns ? cpu_min_i64(g->inner, CPU_TILE) : 1;
        int64_t grain = cpu_max_i64(1, CHUNK / cpu_max_i64(1, g->chunk * width));
        cpu_for(pool, units, grain, g->columns ? column_units : row_units, &j);
    }
    if (g->empty || g->chunks > 1)
        cpu_for(pool, g->outputs, CHUNK, add_chunks, &j);
}
