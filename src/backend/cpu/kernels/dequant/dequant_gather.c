/* dequant_gather.c: packed rows as f32: those that indices name (dequant_gather), and all of them,
 * turned around (dequant_moe_weights) (ops-special.md 1.6). */
#include "backend/cpu/kernels/dequant/quant_rows.h"
#include "backend/cpu/kernels/move/index.h"

/* ---- dequant_gather: [v, row], indices -> [.., k] ------------------------------------------ */

/* Long rows are cut, so that a few of them still make work for everyone. */
enum { CUT = 16 * QUANT_ROWS_BLOCK };

struct gather {
    const struct cpu_tensor *indices;
    struct quant_rows table;
    int64_t entries, k, cuts;
    float *out;
};

static void gather_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct gather *g = ctx;

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        int64_t i = t / g->cuts, k = t % g->cuts * CUT;
        int64_t row = cpu_index_clamp(cpu_index(g->indices, i), g->entries);
        quant_rows_read(&g->table, row, k, cpu_min_i64(CUT, g->k - k), g->out + i * g->k + k);
    }
}

static void run_gather(const struct cpu_call *c)
{
    const struct attr_dequant_gather *attr = &c->attr->dequant_gather;
    const struct cpu_tensor *table = &c->in[0], *indices = &c->in[1];
    struct gather g = {.indices = indices, .entries = table->dim[0], .k = attr->k};

    if (c->out->count == 0)
        return;
    g.table = quant_rows_of(attr->scheme, table->data, g.k);
    g.cuts = (g.k + CUT - 1) / CUT;
    g.out = c->out->data;
    index_check(c, indices, &g.entries, 1);
    cpu_for(c->pool, indices->count * g.cuts, cpu_max_i64(1, 8192 / cpu_min_i64(g.k, CUT)),
            gather_range, &g);
}

/* ---- dequant_moe_weights: [e, n, row] -> [e, k, n] ----------------------------------------- */

/* Packed rows side by side over some of k, turned around piece by piece. */
enum { TILE_ROWS = 32, TILE_K = QUANT_ROWS_BLOCK };

struct turned {
    struct quant_rows w;
    int64_t k, n, parts, cuts; /* parts of n, cuts of k */
    float *out;
};

static void turn_tile(const struct turned *t, int64_t expert, int64_t n, int64_t k)
{
    _Alignas(64) float tile[TILE_ROWS][TILE_K];
    int64_t ns = cpu_min_i64(TILE_ROWS, t->n - n), ks = cpu_min_i64(TILE_K, t->k - k);
    float *out = t->out + (expert * t->k + k) * t->n + n;

    for (int64_t i = 0; i < ns; i++)
        quant_rows_read(&t->w, expert * t->n + n + i, k, ks, tile[i]);
    for (int64_t j = 0; j < ks; j++, out += t->n)
        for (int64_t i = 0; i < ns; i++)
            out[i] = tile[i][j];
}

static void turn_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct turned *t = ctx;

    (void)worker;
    for (int64_t at = begin; at < end; at++)
        turn_tile(t, at / t->cuts / t->parts, at % t->parts * TILE_ROWS,
                  at / t->parts % t->cuts * TILE_K);
}

static void run_moe(const struct cpu_call *c)
{
    const struct attr_dequant_moe_weights *attr = &c->attr->dequant_moe_weights;
    struct turned t = {.k = attr->k, .n = c->in[0].dim[1], .out = c->out->data};

    if (c->out->count == 0)
        return;
    t.w = quant_rows_of(attr->scheme, c->in[0].data, t.k);
    t.parts = (t.n + TILE_ROWS - 1) / TILE_ROWS;
    t.cuts = (t.k + TILE_K - 1) / TILE_K;
    cpu_for(c->pool, c->in[0].dim[0] * t.parts * t.cuts, 1, turn_range, &t);
}

extern const struct cpu_kernel CPU_NAME(cpu_dequant_gather), CPU_NAME(cpu_dequant_moe_weights);
const struct cpu_kernel CPU_NAME(cpu_dequant_gather) = {.run = run_gather};
const struct cpu_kernel CPU_NAME(cpu_dequant_moe_weights) = {.run = run_moe};
