/* grouped_matmul_backward.c: the gradient of a grouped product for its matrices (ops-core.md 10.4).
 *
 *     x [m, k], dy [m, n], expert [m]  ->  [experts, k, n],   dw[e] = sum of x[i]^T dy[i]
 *
 * Rows are sorted by expert; each expert is one item of a gemm that sums over its rows, in their
 * order. An expert without rows is an item without terms: zeros. */
#include "backend/cpu/kernels/gemm/gemm.h"

struct grouped {
    const struct cpu_tensor *x, *dy, *out;
    int64_t m, n, k, experts;
    const int32_t *row;   /* those with an expert, in the sorted order */
    const int32_t *first; /* by expert: its first place in row; one more at the end */
};

/* Scratch: both arrays, then gemm's. */
static int64_t row_bytes(const struct grouped *g)
{
    return gemm_up(g->m * (int64_t)sizeof(int32_t), 64);
}

static int64_t first_bytes(const struct grouped *g)
{
    return gemm_up((g->experts + 2) * (int64_t)sizeof(int32_t), 64);
}

/* Rows by expert, equal ones in their order. first[e + 2] counts, then says where e + 1 begins;
 * placing the rows moves it to where that one ends, so that first[e] is where e begins. */
static void sort_rows(const struct cpu_call *c, struct grouped *g, char *scratch)
{
    int32_t *first = (int32_t *)(void *)scratch;
    int32_t *row = (int32_t *)(void *)(scratch + first_bytes(g));

    memset(first, 0, (size_t)(g->experts + 2) * sizeof *first);
    for (int64_t i = 0; i < g->m; i++) {
        int64_t e = cpu_index(&c->in[2], i);
        if (cpu_index_valid(e, g->experts))
            first[e + 2]++;
    }
    for (int64_t e = 0; e < g->experts; e++)
        first[e + 2] += first[e + 1];
    for (int64_t i = 0; i < g->m; i++) {
        int64_t e = cpu_index(&c->in[2], i);
        if (cpu_index_valid(e, g->experts))
            row[first[e + 1]++] = (int32_t)i;
    }
    g->row = row;
    g->first = first;
}

/* Lines of a panel are neighbours in a row, and its k are rows. */
static void pack(const struct grouped *g, const struct cpu_tensor *t, const struct gemm_part *p)
{
    const int32_t *row = g->row + g->first[p->item] + p->k;
    int64_t size = t->dtype == RLX_DTYPE_f64 ? 8 : 4, lanes = gemm_up(p->lines, p->width);
    int64_t columns = t->dim[1];

    for (int64_t j = 0; j < p->ks; j++) {
        const char *from = cpu_at(t, row[j] * columns + p->line);
        for (int64_t l = 0; l < lanes; l += p->width) {
            char *to = (char *)p->panel + (l * p->ks + j * p->width) * size;
            int64_t n = cpu_min_i64(p->width, p->lines - l);
            if (cpu_is_half(t->dtype))
                cpu_load_f32(t->dtype, from + l * 2, (float *)(void *)to, n);
            else
                memcpy(to, from + l * size, (size_t)(n * size));
            memset(to + n * size, 0, (size_t)((p->width - n) * size));
        }
    }
}

static void pack_a(const void *ctx, const struct gemm_part *p)
{
    const struct grouped *g = ctx;
    pack(g, g->x, p);
}

static void pack_b(const void *ctx, const struct gemm_part *p)
{
    const struct grouped *g = ctx;
    pack(g, g->dy, p);
}

static void size_of(const void *ctx, int64_t item, int64_t *m, int64_t *n, int64_t *k)
{
    const struct grouped *g = ctx;

    *m = g->k;
    *n = g->n;
    *k = g->first[item + 1] - g->first[item];
}

static void store(const void *ctx, const struct gemm_block *b)
{
    const struct grouped *g = ctx;
    int64_t size = g->out->dtype == RLX_DTYPE_f64 ? 8 : 4;

    for (int64_t r = 0; r < b->rows; r++) {
        const char *sum = (const char *)b->sum + r * b->ld * size;
        char *to = cpu_at(g->out, (b->item * g->k + b->row + r) * g->n + b->col);
        if (cpu_is_half(g->out->dtype))
            cpu_store_f32(g->out->dtype, (const float *)(const void *)sum, to, b->cols);
        else
            memcpy(to, sum, (size_t)(b->cols * size));
    }
}

static void describe(const struct cpu_call *c, struct grouped *g, struct gemm *out)
{
    *g = (struct grouped){.x = &c->in[0], .dy = &c->in[1], .out = c->out};
    g->m = g->x->dim[0];
    g->k = g->x->dim[1];
    g->n = g->dy->dim[1];
    g->experts = g->out->dim[0];
    *out = (struct gemm){.kind = gemm_kind_of(g->out->dtype),
                         .items = g->experts,
                         .m = g->k,
                         .n = g->n,
                         .k = g->m,
                         .size = size_of,
                         .pack_a = pack_a,
                         .pack_b = pack_b,
                         .in_scratch = true,
                         .store = store,
                         .ctx = g};
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct grouped g;
    struct gemm gemm;

    if (c->out->count == 0)
        return 0;
    describe(c, &g, &gemm);
    return (uint64_t)(first_bytes(&g) + row_bytes(&g)) + gemm_scratch(&gemm, c->pool);
}

static void run(const struct cpu_call *c)
{
    struct grouped g;
    struct gemm gemm;

    if (c->out->count == 0)
        return;
    describe(c, &g, &gemm);
    sort_rows(c, &g, c->scratch);
    gemm_run(&gemm, c->pool, (char *)c->scratch + first_bytes(&g) + row_bytes(&g));
}

extern const struct cpu_kernel CPU_NAME(cpu_grouped_matmul_backward_weight);
const struct cpu_kernel CPU_NAME(cpu_grouped_matmul_backward_weight) = {.run = run,
                                                                        .scratch = scratch};
