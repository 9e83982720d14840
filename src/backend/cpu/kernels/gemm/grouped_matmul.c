/* grouped_matmul.c: each row times its expert's matrix (ops-core.md 10.4).
 *
 *     x [m, k], w [experts, k, n], expert [m]  ->  [m, n]
 *
 * Rows are sorted by expert, so that those of one expert, a group, are one product. Groups of a few
 * rows read their matrix in place, unless w is a weight whose panels were made beforehand; all
 * others are items of one gemm. */
#include "backend/cpu/kernels/gemm/experts.h"
#include "backend/cpu/kernels/gemm/gemm.h"

struct grouped {
    const struct cpu_tensor *x, *w, *out;
    int64_t m, n, k;
    int64_t per;         /* f32 per element: 2 for c64, otherwise 1 */
    int64_t cols;        /* of one part of a group of few rows */
    struct experts e;    /* rows by expert */
    int64_t ready_bytes; /* of one expert's panels */
};

static void describe(const struct cpu_call *c, struct grouped *g)
{
    *g = (struct grouped){.x = &c->in[0], .w = &c->in[1], .out = c->out};
    g->m = g->x->dim[0];
    g->k = g->x->dim[1];
    g->n = g->w->dim[2];
    g->per = g->out->dtype == RLX_DTYPE_c64 ? 2 : 1;
}

/* ---- products ------------------------------------------------------------------------------ */

static struct gemm_view matrix(const struct grouped *g, int64_t expert)
{
    return (struct gemm_view){
        .data = cpu_at(g->w, expert * g->k * g->n), .dtype = g->w->dtype, .line = 1, .k = g->n};
}

static void size_of(const void *ctx, int64_t item, int64_t *m, int64_t *n, int64_t *k)
{
    const struct grouped *g = ctx;

    *m = g->e.many[item].rows;
    *n = g->n * g->per;
    *k = g->k * g->per;
}

/* Rows may be anywhere, so each is written to its lane separately. */
static void pack_a(const void *ctx, const struct gemm_part *p)
{
    const struct grouped *g = ctx;
    const int32_t *row = g->e.row + g->e.many[p->item].first + p->line;
    int64_t size = g->out->dtype == RLX_DTYPE_f64 || g->out->dtype == RLX_DTYPE_i64 ? 8 : 4;
    int64_t lanes = gemm_up(p->lines, p->width);
    char *panel = p->panel;

    for (int64_t l = 0; l < lanes; l++) {
        CPU_TILE_OF(double, line);
        int64_t ks = p->ks; /* not more than a tile */
        char *to = panel + (l / p->width * p->ks * p->width + l % p->width) * size;
        const void *from = line;
        if (l >= p->lines)
            memset(line, 0, (size_t)(ks * size));
        else if (cpu_is_half(g->x->dtype))
            cpu_load_f32(g->x->dtype, cpu_at(g->x, row[l] * g->k + p->k), (float *)(void *)line,
                         ks);
        else
            from = (const char *)cpu_at(g->x, row[l] * g->k) + p->k * size;
        if (size == 8)
            for (int64_t j = 0; j < ks; j++)
                memcpy(to + j * p->width * 8, (const char *)from + j * 8, 8);
        else
            for (int64_t j = 0; j < ks; j++)
                memcpy(to + j * p->width * 4, (const char *)from + j * 4, 4);
    }
}

static void pack_b(const void *ctx, const struct gemm_part *p)
{
    const struct grouped *g = ctx;
    struct gemm_view v = matrix(g, g->e.many[p->item].expert);

    if (v.dtype == RLX_DTYPE_c64)
        gemm_pack_c64_b(&v, p);
    else
        gemm_pack_view(&v, p);
}

/* Sums of one row, to element `col` of an output row on. */
static void store_row(const struct grouped *g, int64_t row, int64_t col, const void *sum, int64_t n)
{
    char *to = cpu_at(g->out, row * g->n + col);

    if (cpu_is_half(g->out->dtype))
        cpu_store_f32(g->out->dtype, sum, to, n);
    else
        memcpy(to, sum, (size_t)n * cpu_size(g->out->dtype));
}

static void store(const void *ctx, const struct gemm_block *b)
{
    const struct grouped *g = ctx;
    const int32_t *row = g->e.row + g->e.many[b->item].first + b->row;
    int64_t size = gemm_kind_of(g->out->dtype) == GEMM_F32 ? 4 : (int64_t)cpu_size(g->out->dtype);

    for (int64_t r = 0; r < b->rows; r++)
        store_row(g, row[r], b->col / g->per, (const char *)b->sum + r * b->ld * size,
                  b->cols / g->per);
}

/* One task: some columns of one group of few rows. */
static void run_few(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct grouped *g = ctx;
    _Alignas(64) unsigned char sum[GEMM_FEW_SUMS * sizeof(double)];
    int64_t parts = (g->n + g->cols - 1) / g->cols;
    int64_t size = g->out->dtype == RLX_DTYPE_f64 ? 8 : 4;

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        const struct expert_group *group = &g->e.few[t / parts];
        const int32_t *row = g->e.row + group->first;
        int64_t col = t % parts * g->cols;
        struct gemm_few f = {.a_dtype = g->x->dtype,
                             .a_k = 1,
                             .rows = group->rows,
                             .b = matrix(g, group->expert),
                             .cols = cpu_min_i64(g->cols, g->n - col),
                             .k = g->k};
        for (int64_t r = 0; r < f.rows; r++)
            f.row[r] = cpu_at(g->x, row[r] * g->k);
        f.b.data = (const char *)f.b.data + col * (int64_t)cpu_size(f.b.dtype);
        gemm_few_run(&f, sum);
        for (int64_t r = 0; r < f.rows; r++)
            store_row(g, row[r], col, sum + r * f.cols * size, f.cols);
    }
}

/* ---- weights ------------------------------------------------------------------------------- */

static const void *ready_b(const void *ctx, int64_t item)
{
    const struct grouped *g = ctx;
    return (const char *)g->w->packed + g->e.many[item].expert * g->ready_bytes;
}

static void pack_expert(const void *ctx, const struct gemm_part *p)
{
    const struct grouped *g = ctx;
    struct gemm_view v = matrix(g, p->item);

    if (cpu_is_half(v.dtype))
        gemm_pack_half(&v, p);
    else
        gemm_pack_view(&v, p);
}

/* ---- the kernel ---------------------------------------------------------------------------- */

static void describe_gemm(struct grouped *g, int64_t items, struct gemm *out)
{
    *out = (struct gemm){.kind = gemm_kind_of(g->out->dtype),
                         .items = items,
                         .m = g->m,
                         .n = g->n * g->per,
                         .k = g->k * g->per,
                         .size = size_of,
                         .pack_a = pack_a,
                         .pack_b = pack_b,
                         .in_scratch = true,
                         .store = store,
                         .ready_dtype = g->w->dtype,
                         .ctx = g};
    g->ready_bytes = (int64_t)gemm_ready_bytes(out);
    if (g->w->packed)
        out->ready_b = ready_b;
}

/* Every expert's panels, one after the other. */
static struct cpu_pack pack_size(const struct cpu_call *c, int32_t i)
{
    const uint64_t layout = (uint64_t)0x67726d6d << 32; /* unlike other kernels' */
    struct grouped g;
    struct gemm gemm;

    if (i != 1 || c->in[1].count == 0 || !cpu_is_float(c->in[1].dtype) ||
        c->in[1].dim[2] <= GEMM_READY_COLUMNS)
        return (struct cpu_pack){0};
    describe(c, &g);
    describe_gemm(&g, 1, &gemm);
    return (struct cpu_pack){.bytes = (uint64_t)(g.w->dim[0] * g.ready_bytes), .layout = layout};
}

static void pack(const struct cpu_call *c, int32_t i, void *to)
{
    struct grouped g;
    struct gemm gemm;

    (void)i;
    describe(c, &g);
    describe_gemm(&g, 1, &gemm);
    gemm.pack_b = pack_expert;
    for (int64_t expert = 0; expert < g.w->dim[0]; expert++)
        gemm_make_ready(&gemm, expert, c->pool, (char *)to + expert * g.ready_bytes);
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct grouped g;
    struct gemm gemm;

    if (c->out->count == 0)
        return 0;
    describe(c, &g);
    describe_gemm(&g, cpu_min_i64(g.m, g.w->dim[0]), &gemm);
    return (uint64_t)experts_scratch(g.m, g.w->dim[0]) + gemm_scratch(&gemm, c->pool);
}

static void run(const struct cpu_call *c)
{
    struct grouped g;
    struct gemm gemm;

    if (c->out->count == 0)
        return;
    describe(c, &g);
    bool direct = cpu_is_float(g.out->dtype) && g.k > 0 && !g.w->packed;
    experts_sort(c, g.w->dim[0], direct ? GEMM_FEW : 0, c->scratch, &g.e);
    g.cols = gemm_few_cols(GEMM_FEW, g.n);
    cpu_for(c->pool, g.e.few_count * ((g.n + g.cols - 1) / g.cols), 1, run_few, &g);
    describe_gemm(&g, g.e.many_count, &gemm);
    gemm_run(&gemm, c->pool, (char *)c->scratch + experts_scratch(g.m, g.w->dim[0]));
}

extern const struct cpu_kernel CPU_NAME(cpu_grouped_matmul);
const struct cpu_kernel CPU_NAME(cpu_grouped_matmul) = {
    .run = run, .scratch = scratch, .pack_size = pack_size, .pack = pack};
