/* dequant_side.c: products with a packed matrix W[k,n] whose scales lie beside it (dequant_side.h).
 *
 * As in dequant_exact.c: a few rows of x are multiplied with tiles of W that are decoded once for
 * all of them, more rows go through gemm, whose panels are decoded as it asks for them. */
#include "backend/cpu/kernels/dequant/dequant_side.h"
#include "backend/cpu/kernels/dequant/quant_rows.h"
#include "backend/cpu/kernels/gemm/gemm.h"

enum { TILE_COLS = 256, TILE_K = 32 };

struct job {
    struct quant_side w;
    int64_t m, k, cols; /* cols: of a task of few rows */
    const float *x;
    float *out;
};

static struct job describe(const struct cpu_call *c)
{
    const struct attr_dequant_matmul *attr = &c->attr->dequant_matmul;
    const struct quant_scheme *s = quant_scheme(attr->scheme);
    const struct cpu_tensor *scale = &c->in[2], *zero = &c->in[3], *out = c->out;
    struct job j = {.m = 1, .k = attr->k, .x = c->in[0].data, .out = out->data};

    for (int32_t i = 0; i < out->rank - 1; i++)
        j.m *= out->dim[i];
    j.w = (struct quant_side){.scheme = attr->scheme,
                              .n = out->dim[out->rank - 1],
                              .group = s->group ? s->group : attr->block_size,
                              .code = c->in[1].data,
                              .all = 1};
    j.cols =
        cpu_min_i64(TILE_COLS, gemm_few_cols(cpu_max_i64(1, cpu_min_i64(j.m, GEMM_FEW)), j.w.n));
    if (s->scale_is_fp8) {
        j.w.scale8 = scale->data;
        if (zero->data)
            j.w.all = *(const float *)zero->data;
    } else if (s->has_scale || scale->rank == 2) {
        j.w.scale = scale->count ? scale->data : NULL;
        j.w.zero = zero->data;
    } else if (scale->count && scale->data) {
        j.w.all = *(const float *)scale->data;
    }
    return j;
}

/* ---- few rows ------------------------------------------------------------------------------ */

/* Codes that will be read soon. They are in short pieces, one per row, which the hardware does not
 * prefetch. */
static void fetch_tile(const struct job *j, int64_t k, int64_t n, int64_t ns)
{
    int per = quant_scheme(j->w.scheme)->nibbles ? 2 : 1;

    for (int64_t i = k; i < cpu_min_i64(k + TILE_K, j->k); i++)
        cpu_prefetch(j->w.code + (i * j->w.n + n) / per, ns / per + 1);
}

static void few_tile(const struct job *j, int64_t n, int64_t ns)
{
    _Alignas(64) float tile[TILE_K * TILE_COLS];
    float sum[GEMM_FEW * TILE_COLS], part[GEMM_FEW * TILE_COLS];

    memset(sum, 0, (size_t)(j->m * ns) * sizeof *sum);
    for (int64_t k = 0; k < j->k; k += TILE_K) {
        struct gemm_few f = {.a_dtype = RLX_DTYPE_f32,
                             .a_k = 1,
                             .rows = j->m,
                             .b = {tile, RLX_DTYPE_f32, 1, TILE_COLS},
                             .cols = ns,
                             .k = cpu_min_i64(TILE_K, j->k - k)};
        fetch_tile(j, k + TILE_K, n, ns);
        quant_side_tile(&j->w, k, f.k, n, ns, tile, TILE_COLS);
        for (int64_t i = 0; i < j->m; i++)
            f.row[i] = j->x + i * j->k + k;
        gemm_few_run(&f, part);
        for (int64_t i = 0; i < j->m * ns; i++)
            sum[i] += part[i];
    }
    for (int64_t i = 0; i < j->m; i++)
        memcpy(j->out + i * j->w.n + n, sum + i * ns, (size_t)ns * sizeof *sum);
}

static void few_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;

    (void)worker;
    for (int64_t t = begin; t < end; t++)
        few_tile(j, t * j->cols, cpu_min_i64(j->cols, j->w.n - t * j->cols));
}

/* ---- many rows ----------------------------------------------------------------------------- */

static void pack_a(const void *ctx, const struct gemm_part *p)
{
    const struct job *j = ctx;
    struct gemm_view v = {j->x, RLX_DTYPE_f32, j->k, 1};

    gemm_pack_view(&v, p);
}

/* Rows of W are cut into those of panels. */
static void pack_b(const void *ctx, const struct gemm_part *p)
{
    const struct job *j = ctx;
    _Alignas(64) float row[TILE_COLS];
    int64_t step = TILE_COLS / p->width * p->width;

    for (int64_t l = 0; l < p->lines; l += step)
        for (int64_t k = 0; k < p->ks; k++) {
            int64_t lines = cpu_min_i64(step, p->lines - l), all = gemm_up(lines, p->width);
            quant_side_tile(&j->w, p->k + k, 1, p->line + l, lines, row, 0);
            memset(row + lines, 0, (size_t)(all - lines) * sizeof *row);
            for (int64_t i = 0; i < all; i += p->width)
                memcpy((float *)p->panel + (l + i) * p->ks + k * p->width, row + i,
                       (size_t)p->width * sizeof *row);
        }
}

static struct gemm gemm_for(const struct job *j)
{
    return (struct gemm){.kind = GEMM_F32,
                         .items = 1,
                         .m = j->m,
                         .n = j->w.n,
                         .k = j->k,
                         .pack_a = pack_a,
                         .pack_b = pack_b,
                         .c = j->out,
                         .ctx = j};
}

/* ---- both ---------------------------------------------------------------------------------- */

uint64_t dequant_side_scratch(const struct cpu_call *c)
{
    struct job j = describe(c);
    struct gemm g = gemm_for(&j);

    return c->out->count == 0 || j.m <= GEMM_FEW ? 0 : gemm_scratch(&g, c->pool);
}

void dequant_side_run(const struct cpu_call *c)
{
    struct job j = describe(c);

    if (c->out->count == 0)
        return;
    if (j.m <= GEMM_FEW) {
        int64_t grain = cpu_max_i64(1, 32768 / (j.cols * (j.k + 1)));
        cpu_for(c->pool, (j.w.n + j.cols - 1) / j.cols, grain, few_range, &j);
        return;
    }
    struct gemm g = gemm_for(&j);
    gemm_run(&g, c->pool, c->scratch);
}
