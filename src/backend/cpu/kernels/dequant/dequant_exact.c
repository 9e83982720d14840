/* dequant_exact.c: products with packed rows in f32 (dequant_exact.h, ops-special.md 1.6).
 *
 *     y[m, n] = sum over k of x[m, k] * B[n, k]
 *
 * Packed rows are decoded a tile at a time, into the cache, and the matrix as f32 is never in
 * memory. A few rows of x: each tile is some packed rows over a stretch of k, and is multiplied
 * with all of them. More rows: gemm, whose panels are decoded as it asks for them. */
#include "backend/cpu/kernels/dequant/dequant_exact.h"
#include "backend/cpu/kernels/gemm/gemm.h"
#include "backend/cpu/kernels/gemm/gemm_vec.h"

enum {
    FEW_ROWS = 16, /* of x, up to which panels would cost more than they save */
    TILE_ROWS = 8,
    TILE_K = 2 * QUANT_ROWS_BLOCK,
    PANEL_LINES = 32, /* at least the widest panel of gemm, in f32 */
    PANEL_K = QUANT_ROWS_BLOCK
};

struct job {
    struct dequant d;
    const float *x;
    float *out;
    struct experts e;         /* of the grouped op */
    struct expert_group only; /* otherwise: all rows, in their order, and e.row is NULL */
};

static int64_t row_of(const struct job *j, const struct expert_group *g, int64_t i)
{
    return j->e.row ? j->e.row[g->first + i] : g->first + i;
}

/* Elements k .. k+n-1 of a packed row, and the bytes `ahead` of them on their way: rows are read in
 * pieces, which the hardware does not see coming. */
static void read_ahead(const struct quant_rows *w, int64_t row, int64_t k, int64_t n, int64_t ahead,
                       float *out)
{
    const uint8_t *at = w->data + row * w->row + k / w->elems * w->bytes;

    cpu_prefetch(at + ahead, n / w->elems * w->bytes);
    quant_rows_read(w, row, k, n, out);
}

/* ---- few rows ------------------------------------------------------------------------------ */

typedef vec_f32 loose_f32 __attribute__((aligned(4), may_alias));
enum { LANES = GEMM_VEC / 4 };

/* Sums of `rows` rows of x with `cols` decoded rows: a vector of parts each, added up at the end.
 * ks: whole vectors. */
static inline __attribute__((always_inline)) void dots(const float *const *x, const float *tile,
                                                       int64_t ks, int rows, int cols,
                                                       vec_f32 (*part)[TILE_ROWS])
{
    vec_f32 s[4][TILE_ROWS];

    GEMM_UNROLL
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            s[r][c] = part[r][c];
    for (int64_t k = 0; k < ks; k += LANES) {
        GEMM_UNROLL
        for (int c = 0; c < cols; c++) {
            vec_f32 w = *(const loose_f32 *)(tile + c * TILE_K + k);
            GEMM_UNROLL
            for (int r = 0; r < rows; r++)
                s[r][c] = F32_MADD(*(const loose_f32 *)(x[r] + k), w, s[r][c]);
        }
    }
    GEMM_UNROLL
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            part[r][c] = s[r][c];
}

/* As many sums at a time as registers hold. */
static void all_dots(const float *const *x, int64_t rows, const float *tile, int64_t ks,
                     vec_f32 (*part)[TILE_ROWS])
{
    const float *second = tile + 4 * TILE_K;
    int64_t r = 0;

    for (; r + 2 <= rows; r += 2) {
        dots(x + r, tile, ks, 2, 4, part + r);
        dots(x + r, second, ks, 2, 4, (vec_f32(*)[TILE_ROWS])(void *)&part[r][4]);
    }
    if (r < rows)
        dots(x + r, tile, ks, 1, TILE_ROWS, part + r);
}

static float add_lanes(vec_f32 v)
{
    float lane[LANES];

    memcpy(lane, &v, sizeof lane);
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            lane[i] += lane[i + n];
    return lane[0];
}

/* One task: packed rows n .. n+ns-1 of a group's expert, times the group's rows. */
static void few_tile(const struct job *j, const struct expert_group *g, int64_t n, int64_t ns)
{
    const struct dequant *d = &j->d;
    _Alignas(64) float tile[TILE_ROWS * TILE_K];
    vec_f32 part[FEW_ROWS][TILE_ROWS] = {{{0}}};
    const float *x[FEW_ROWS];

    if (ns < TILE_ROWS)
        memset(tile, 0, sizeof tile);
    for (int64_t k = 0; k < d->k; k += TILE_K) {
        int64_t ks = cpu_min_i64(TILE_K, d->k - k);
        for (int64_t i = 0; i < ns; i++)
            read_ahead(&d->w, g->expert * d->n + n + i, k, ks, TILE_ROWS * d->w.row,
                       tile + i * TILE_K);
        for (int64_t i = 0; i < g->rows; i++)
            x[i] = j->x + row_of(j, g, i) * d->k + k;
        all_dots(x, g->rows, tile, ks, part);
    }
    for (int64_t i = 0; i < g->rows; i++)
        for (int64_t c = 0; c < ns; c++)
            j->out[row_of(j, g, i) * d->n + n + c] = add_lanes(part[i][c]);
}

static void few_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    int64_t parts = (j->d.n + TILE_ROWS - 1) / TILE_ROWS;

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        int64_t n = t % parts * TILE_ROWS;
        few_tile(j, &j->e.few[t / parts], n, cpu_min_i64(TILE_ROWS, j->d.n - n));
    }
}

static void run_few(const struct job *j, struct pool *pool)
{
    int64_t parts = (j->d.n + TILE_ROWS - 1) / TILE_ROWS;
    int64_t grain = cpu_max_i64(1, 32768 / (TILE_ROWS * (j->d.k + 1)));

    cpu_for(pool, j->e.few_count * parts, grain, few_range, (void *)(uintptr_t)j);
}

/* ---- many rows ----------------------------------------------------------------------------- */

static void size_of(const void *ctx, int64_t item, int64_t *m, int64_t *n, int64_t *k)
{
    const struct job *j = ctx;

    *m = j->e.many[item].rows;
    *n = j->d.n;
    *k = j->d.k;
}

/* Rows may be anywhere, so each is written to its lane separately. */
static void pack_sorted(const struct job *j, const struct gemm_part *p)
{
    const struct expert_group *g = &j->e.many[p->item];
    float *panel = p->panel;

    for (int64_t l = 0; l < gemm_up(p->lines, p->width); l++) {
        float *to = panel + l / p->width * p->ks * p->width + l % p->width;
        const float *from = l < p->lines ? j->x + row_of(j, g, p->line + l) * j->d.k + p->k : NULL;
        for (int64_t i = 0; i < p->ks; i++)
            to[i * p->width] = from ? from[i] : 0;
    }
}

static void pack_a(const void *ctx, const struct gemm_part *p)
{
    const struct job *j = ctx;
    struct gemm_view v = {j->x, RLX_DTYPE_f32, j->d.k, 1};

    if (j->e.row)
        pack_sorted(j, p);
    else
        gemm_pack_view(&v, p);
}

/* Packed rows as columns: decoded side by side, then turned around. */
static void pack_b(const void *ctx, const struct gemm_part *p)
{
    const struct job *j = ctx;
    const struct dequant *d = &j->d;
    _Alignas(64) float tile[PANEL_LINES * PANEL_K];
    int64_t first = j->e.many[p->item].expert * d->n + p->line;
    struct gemm_view v = {tile, RLX_DTYPE_f32, PANEL_K, 1};
    struct gemm_part panel = *p;

    for (int64_t l = 0; l < p->lines; l += p->width) {
        panel.lines = cpu_min_i64(p->width, p->lines - l);
        panel.panel = (float *)p->panel + l * p->ks;
        for (int64_t k = 0; k < p->ks; k += PANEL_K) {
            int64_t ks = cpu_min_i64(PANEL_K, p->ks - k);
            for (int64_t i = 0; i < panel.lines; i++)
                read_ahead(&d->w, first + l + i, p->k + k, ks, ks / d->w.elems * d->w.bytes,
                           tile + i * PANEL_K);
            gemm_pack_run(&v, &panel, k, ks);
        }
    }
}

static void store(const void *ctx, const struct gemm_block *b)
{
    const struct job *j = ctx;
    const struct expert_group *g = &j->e.many[b->item];

    for (int64_t r = 0; r < b->rows; r++)
        memcpy(j->out + row_of(j, g, b->row + r) * j->d.n + b->col,
               (const float *)b->sum + r * b->ld, (size_t)b->cols * sizeof(float));
}

static struct gemm gemm_for(const struct job *j, int64_t items)
{
    struct gemm g = {.kind = GEMM_F32,
                     .items = items,
                     .m = j->d.m,
                     .n = j->d.n,
                     .k = j->d.k,
                     .pack_a = pack_a,
                     .pack_b = pack_b,
                     .c = j->out,
                     .ctx = j};

    if (j->d.grouped) {
        g.size = size_of;
        g.in_scratch = true;
        g.c = NULL;
        g.store = store;
    }
    return g;
}

/* ---- both ---------------------------------------------------------------------------------- */

uint64_t dequant_exact_scratch(const struct cpu_call *c)
{
    struct job j = {.d = dequant_of(c)};
    struct gemm g = gemm_for(&j, cpu_min_i64(j.d.m, j.d.experts));
    uint64_t sorted = j.d.grouped ? (uint64_t)experts_scratch(j.d.m, j.d.experts) : 0;

    return c->out->count == 0 || j.d.m <= FEW_ROWS ? sorted : sorted + gemm_scratch(&g, c->pool);
}

void dequant_exact_run(const struct cpu_call *c, const float *x, void *scratch)
{
    struct job j = {.d = dequant_of(c), .x = x, .out = c->out->data};
    char *room = scratch;

    if (c->out->count == 0)
        return;
    if (j.d.grouped) {
        experts_sort(c, j.d.experts, FEW_ROWS, scratch, &j.e);
        room += experts_scratch(j.d.m, j.d.experts);
    } else {
        j.only.rows = (int32_t)cpu_min_i64(j.d.m, INT32_MAX); /* read where they are few */
        j.e.few = j.e.many = &j.only;
        j.e.few_count = j.d.m <= FEW_ROWS;
        j.e.many_count = j.d.m > FEW_ROWS;
    }
    run_few(&j, c->pool);
    struct gemm g = gemm_for(&j, j.e.many_count);
    gemm_run(&g, c->pool, room);
}
