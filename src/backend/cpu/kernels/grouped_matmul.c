/* grouped_matmul.c: each row times its expert's matrix (ops-core 10.4).
 *
 *     x [m, k], w [experts, k, n], expert [m]  ->  [m, n]
 *
 * Rows are sorted by expert, so that those of one expert, a group, are one product. Groups of a few
 * rows read their matrix where it lies, unless w is a weight whose panels were made beforehand; all
 * others are items of one gemm. */
#include "backend/cpu/kernels/gemm.h"

struct group {
    int32_t expert;
    int32_t first, rows; /* in the sorted order */
};

struct grouped {
    const struct cpu_tensor *x, *w, *out;
    int64_t m, n, k;
    int64_t per;         /* f32 per element: 2 for c64, else 1 */
    int64_t cols;        /* of one part of a group of few rows */
    const int32_t *row;  /* rows in the sorted order, those with an expert */
    struct group *few;   /* groups of few rows */
    struct group *many;  /* the others */
    int64_t ready_bytes; /* of one expert's panels */
};

/* Scratch: three arrays of m numbers, the groups, then gemm's. */
static int64_t numbers_bytes(const struct grouped *g)
{
    return gemm_up(g->m * (int64_t)sizeof(int32_t), 64);
}

static int64_t groups_bytes(const struct grouped *g)
{
    int64_t most = cpu_min_i64(g->m, g->w->dim[0]);
    return gemm_up(most * (int64_t)sizeof(struct group), 64);
}

static void describe(const struct cpu_call *c, struct grouped *g)
{
    *g = (struct grouped){.x = &c->in[0], .w = &c->in[1], .out = c->out};
    g->m = g->x->dim[0];
    g->k = g->x->dim[1];
    g->n = g->w->dim[2];
    g->per = g->out->dtype == RLX_DTYPE_c64 ? 2 : 1;
}

/* ---- sorting ------------------------------------------------------------------------------- */

/* Ids in range, and their rows, in the order of rows. The other rows become zeros. */
static int64_t read_ids(const struct cpu_call *c, const struct grouped *g, int32_t *id,
                        int32_t *row)
{
    size_t row_bytes = (size_t)g->n * cpu_size(g->out->dtype);
    int64_t found = 0;

    for (int64_t i = 0; i < g->m; i++) {
        int64_t e = cpu_index(&c->in[2], i);
        if (cpu_index_valid(e, g->w->dim[0])) {
            id[found] = (int32_t)e; /* fewer than 2^24 experts */
            row[found++] = (int32_t)i;
        } else {
            memset(cpu_at(g->out, i * g->n), 0, row_bytes);
            cpu_report_index(c, i, e);
        }
    }
    return found;
}

/* Sort rows by one byte of their ids, and keep the order of equal ones. */
static void sort_by_byte(const int32_t *id, const int32_t *row, int32_t *to, int64_t n, int shift)
{
    int64_t start[257] = {0};

    for (int64_t i = 0; i < n; i++)
        start[((id[row[i]] >> shift) & 255) + 1]++;
    for (int b = 0; b < 256; b++)
        start[b + 1] += start[b];
    for (int64_t i = 0; i < n; i++)
        to[start[(id[row[i]] >> shift) & 255]++] = row[i];
}

/* Sort, and cut into groups: few ones from the front of `group`, the others from its end. Returns
 * how many of the few; *many_count of the others. */
static int64_t make_groups(const struct cpu_call *c, struct grouped *g, char *scratch,
                           int64_t *many_count)
{
    int32_t *id = (int32_t *)(void *)scratch;
    int32_t *a = (int32_t *)(void *)(scratch + numbers_bytes(g));
    int32_t *b = (int32_t *)(void *)(scratch + 2 * numbers_bytes(g));
    struct group *group = (struct group *)(void *)(scratch + 3 * numbers_bytes(g));
    int64_t most = cpu_min_i64(g->m, g->w->dim[0]), few = 0, many = most;
    int64_t n = read_ids(c, g, b, a); /* b: ids of the rows in a */

    for (int64_t i = 0; i < n; i++)
        id[a[i]] = b[i];
    for (int shift = 0; shift < 24 && (g->w->dim[0] - 1) >> shift > 0; shift += 8) {
        int32_t *sorted = b;
        sort_by_byte(id, a, sorted, n, shift);
        b = a;
        a = sorted;
    }
    bool direct = cpu_is_float(g->out->dtype) && g->k > 0 && !g->w->packed;
    for (int64_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && id[a[next]] == id[a[i]];)
            next++;
        struct group one = {id[a[i]], (int32_t)i, (int32_t)(next - i)};
        if (direct && one.rows <= GEMM_FEW)
            group[few++] = one;
        else
            group[--many] = one;
    }
    g->row = a;
    g->few = group;
    g->many = group + many;
    *many_count = most - many;
    return few;
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

    *m = g->many[item].rows;
    *n = g->n * g->per;
    *k = g->k * g->per;
}

/* Rows lie anywhere, so each is written to its lane by itself. */
static void pack_a(const void *ctx, const struct gemm_part *p)
{
    const struct grouped *g = ctx;
    const int32_t *row = g->row + g->many[p->item].first + p->line;
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
    struct gemm_view v = matrix(g, g->many[p->item].expert);

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
    const int32_t *row = g->row + g->many[b->item].first + b->row;
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
        const struct group *group = &g->few[t / parts];
        const int32_t *row = g->row + group->first;
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
    return (const char *)g->w->packed + g->many[item].expert * g->ready_bytes;
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
    const uint64_t layout = (uint64_t)0x67726d6d << 32; /* told from those of other kernels */
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
    return (uint64_t)(3 * numbers_bytes(&g) + groups_bytes(&g)) + gemm_scratch(&gemm, c->pool);
}

static void run(const struct cpu_call *c)
{
    struct grouped g;
    struct gemm gemm;
    int64_t few, many;

    if (c->out->count == 0)
        return;
    describe(c, &g);
    few = make_groups(c, &g, c->scratch, &many);
    g.cols = gemm_few_cols(GEMM_FEW, g.n);
    cpu_for(c->pool, few * ((g.n + g.cols - 1) / g.cols), 1, run_few, &g);
    describe_gemm(&g, many, &gemm);
    gemm_run(&gemm, c->pool, (char *)c->scratch + 3 * numbers_bytes(&g) + groups_bytes(&g));
}

extern const struct cpu_kernel CPU_NAME(cpu_grouped_matmul);
const struct cpu_kernel CPU_NAME(cpu_grouped_matmul) = {
    .run = run, .scratch = scratch, .pack_size = pack_size, .pack = pack};
