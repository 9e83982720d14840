/* dequant_q8.c: how a product with act=q8 is divided among workers, and results that are not finite
 * (dequant_q8.h).
 *
 * Rows of one expert are a group; dequant_matmul has one group. A group of few rows reads its
 * packed rows in place. A larger one cuts them into panels of codes, which serve all of its
 * rows. */
#include "backend/cpu/kernels/dequant/dequant_q8.h"

#include "backend/cpu/kernels/gemm/experts.h"
#ifdef GEMM_AMX
#include "backend/cpu/kernels/dequant/dequant_q8_transpose.h"
#endif
#include "ir/quant/quant_decode.h"
#include "ir/quant/quant_encode.h"
#include "ir/quant/quant_scheme.h"

enum {
    PANEL_BYTES = 512 << 10, /* of the panels that a thread makes at a time */
    PANELS_MOST = 4,
    ROWS_AT_ONCE = 512, /* that they are made for */
    CODE_PARTS = 8      /* tasks that code the rows of a group of few */
};

#ifdef GEMM_AMX
/* Of a task in tiles: rows, panels of w, and a thread's bytes, for either size of blocks. */
enum {
    AMX_ROWS = 256,
    AMX_PANELS = 8,
    AMX_W_BYTES = Q8_AMX_GROUPS * Q8_AMX_STEP,
    AMX_BYTES = AMX_PANELS * (AMX_W_BYTES + AMX_ROWS * Q8_LINES * 4)
};
_Static_assert((int)Q8_WIDE_W <= (int)AMX_W_BYTES, "a block of 256 has room");
#endif

struct q8_job {
    const struct cpu_call *call;
    struct q8_weight w; /* of expert 0 */
    int64_t m, experts;
    bool grouped, amx;
    struct experts by;       /* rows and groups */
    struct expert_group all; /* the one group of dequant_matmul */
    int64_t few_bytes;       /* of a row as codes */
    int64_t panel_bytes;     /* of 16 rows as codes */
    int64_t cols;            /* of a part of a group of few rows */
    int64_t panels, w_bytes; /* panels of w that a thread makes, bytes of one */
    char *x;                 /* codes: a place for each group */
    uint8_t *kind;           /* enum q8_row_kind, of rows in the sorted order */
    char *w_panels;          /* one thread's after the other's */
};

/* ---- sizes --------------------------------------------------------------------------------- */

static void describe(const struct cpu_call *c, struct q8_job *j)
{
    const struct cpu_tensor *w = &c->in[1];
    const struct quant_scheme *s;
    int32_t scheme;

    *j = (struct q8_job){.call = c, .grouped = c->op == RLX_OP_dequant_grouped_matmul};
    scheme = j->grouped ? c->attr->dequant_grouped_matmul.scheme : c->attr->dequant_matmul.scheme;
    s = quant_scheme(scheme);
    j->w = (struct q8_weight){.scheme = scheme,
                              .block_elems = s->block_elems,
                              .block_bytes = s->block_bytes,
                              .group = q8_group_of(scheme),
                              .data = w->data};
    j->w.k = j->grouped ? c->attr->dequant_grouped_matmul.k : c->attr->dequant_matmul.k;
    j->w.n = w->dim[w->rank - 2];
    j->w.blocks = j->w.k / j->w.block_elems;
    j->w.row_bytes = j->w.blocks * j->w.block_bytes;
    j->experts = j->grouped ? w->dim[0] : 1;
    j->m = j->w.n ? c->out->count / j->w.n : 0;
    j->few_bytes = q8_form_bytes(&j->w);
    j->panel_bytes = j->w.k / j->w.group * q8_x_step(j->w.group);
#ifdef GEMM_AMX
    if (j->w.block_elems == 32)
        j->panel_bytes =
            cpu_max_i64(j->panel_bytes, gemm_up(j->w.blocks, Q8_AMX_BATCH) * Q8_AMX_STEP);
#endif
    j->w_bytes = j->w.k / j->w.group * q8_w_step(j->w.group);
    j->panels = cpu_max_i64(1, cpu_min_i64(PANELS_MOST, PANEL_BYTES / (j->w_bytes + 1)));
    j->cols = gemm_up(cpu_max_i64(16, cpu_min_i64(256, j->w.n / 32)), 16);
}

/* Rows of x up to which w is read in place. Panels of blocks of 256 take longer to make. */
static int64_t few_rows(const struct q8_job *j)
{
#ifdef Q8_VNNI
    return j->w.block_elems == 256 ? 16 : 8;
#else
    (void)j;
    return INT32_MAX; /* there are no panels */
#endif
}

static bool has_panels(const struct q8_job *j)
{
    return few_rows(j) < INT32_MAX;
}

/* Of x as codes. A group's rows lie at its first row's place: so many bytes for each row that any
 * number above eight has room for its panels of sixteen. */
static int64_t row_place(const struct q8_job *j)
{
    return gemm_up(cpu_max_i64(j->few_bytes, has_panels(j) ? (j->panel_bytes + 7) / 8 : 0), 64);
}

static int64_t x_bytes(const struct q8_job *j)
{
    int64_t few = cpu_min_i64(j->m, few_rows(j)) * j->few_bytes;
    int64_t many = (j->m + Q8_LINES - 1) / Q8_LINES * j->panel_bytes;

    if (j->grouped)
        return j->m * row_place(j);
    return has_panels(j) ? cpu_max_i64(few, many) : few;
}

/* Never less for a longer k, though fewer panels. */
static int64_t w_panels_bytes(const struct q8_job *j)
{
    int64_t most = cpu_min_i64(PANELS_MOST * j->w_bytes, PANEL_BYTES);

    most = cpu_max_i64(most, j->w_bytes);
#ifdef GEMM_AMX
    most = cpu_max_i64(most, AMX_BYTES);
#endif
    return has_panels(j) ? gemm_up(most, 64) : 0;
}

uint64_t dequant_q8_scratch(const struct cpu_call *c)
{
    struct q8_job j;

    if (c->out->count == 0)
        return 0;
    describe(c, &j);
    return (uint64_t)(gemm_up(x_bytes(&j), 64) + gemm_up(j.m, 64) +
                      gemm_workers(c->pool) * w_panels_bytes(&j) +
                      (j.grouped ? experts_scratch(j.m, j.experts) : 0));
}

/* ---- rows of x ----------------------------------------------------------------------------- */

static int64_t row_at(const struct q8_job *j, int64_t i)
{
    return j->grouped ? j->by.row[i] : i;
}

static const float *x_row(const struct q8_job *j, int64_t i)
{
    return (const float *)j->call->in[0].data + row_at(j, i) * j->w.k;
}

static float *out_row(const struct q8_job *j, int64_t i)
{
    return (float *)j->call->out->data + row_at(j, i) * j->w.n;
}

static struct q8_weight weight_of(const struct q8_job *j, const struct expert_group *g)
{
    struct q8_weight w = j->w;

    w.data += g->expert * w.n * w.row_bytes;
    return w;
}

/* Codes of the group's row `i`, or of the panel that begins with it. */
static char *coded(const struct q8_job *j, const struct expert_group *g, int64_t i)
{
    char *at = j->x + (j->grouped ? g->first * row_place(j) : 0);
    return g->rows <= few_rows(j) ? at + i * j->few_bytes : at + i / Q8_LINES * j->panel_bytes;
}

/* ---- results that are not finite ----------------------------------------------------------- */

/* One result straight from the definition. Where scales are infinite or NaN, or too small or too
 * large to be multiplied, the sum of products does not follow from the sums of codes. */
static float by_definition(const struct q8_weight *w, const float *x, int64_t col)
{
    float a[QUANT_BLOCK_ELEMS], b[QUANT_BLOCK_ELEMS];
    uint8_t block[QUANT_BLOCK_BYTES];
    const uint8_t *at = q8_row(w, col);
    int64_t run = q8_run_of(w->block_elems);
    bool large = run == QUANT_BLOCK_ELEMS;
    double sum = 0;

    for (int64_t i = 0; i < w->k; i += run) {
        if (!(large ? quant_encode_q8_k(x + i, block) : quant_encode_q8_0(x + i, block)))
            return NAN;
        quant_decode_block(large ? RLX_QUANT_SCHEME_q8_k : RLX_QUANT_SCHEME_q8_0, block, a);
        if (i % w->block_elems == 0) {
            quant_decode_block(w->scheme, at, b);
            at += w->block_bytes;
        }
        for (int64_t k = 0; k < run; k++)
            sum += (double)a[k] * (double)b[i % w->block_elems + k];
    }
    return (float)sum;
}

static bool all_finite(const float *v, int64_t n)
{
    uint32_t most = 0;

    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = half_f32_bits(v[i]) & 0x7fffffffu;
        most = bits > most ? bits : most;
    }
    return most < 0x7f800000u;
}

/* Columns [begin, end) of the sorted row i. */
static void repair(const struct q8_job *j, const struct q8_weight *w, int64_t i, int64_t begin,
                   int64_t end)
{
    enum q8_row_kind kind = (enum q8_row_kind)j->kind[i];
    float *out = out_row(j, i);

    if (kind == Q8_ROW_PLAIN && all_finite(out + begin, end - begin))
        return;
    for (int64_t n = begin; n < end; n++) {
        if (kind == Q8_ROW_NAN)
            out[n] = NAN;
        else if (kind == Q8_ROW_TINY || !isfinite(out[n]))
            out[n] = by_definition(w, x_row(j, i), n);
    }
}

/* ---- few rows ------------------------------------------------------------------------------ */

/* One task: some columns of one group. */
static void run_few(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct q8_job *j = ctx;
    int64_t parts = (j->w.n + j->cols - 1) / j->cols;

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        const struct expert_group *g = &j->by.few[t / parts];
        struct q8_weight w = weight_of(j, g);
        int64_t col = t % parts * j->cols, last = cpu_min_i64(col + j->cols, w.n);
        for (int64_t r = 0; r < g->rows; r += Q8_FEW) {
            struct q8_few f = {.w = &w, .rows = cpu_min_i64(Q8_FEW, g->rows - r)};
            for (int64_t i = 0; i < f.rows; i++) {
                f.x[i] = coded(j, g, r + i);
                f.out[i] = out_row(j, g->first + r + i);
            }
            q8_few_run(&f, col, last);
            for (int64_t i = 0; i < f.rows; i++)
                repair(j, &w, g->first + r + i, col, last);
        }
    }
}

/* One task: some of a group's rows. */
static void code_few(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct q8_job *j = ctx;

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        const struct expert_group *g = &j->by.few[t / CODE_PARTS];
        int64_t part = t % CODE_PARTS, last = g->rows * (part + 1) / CODE_PARTS;
        for (int64_t i = g->rows * part / CODE_PARTS; i < last; i++)
            j->kind[g->first + i] =
                (uint8_t)q8_encode_row(&j->w, x_row(j, g->first + i), coded(j, g, i));
    }
}

/* ---- many rows ----------------------------------------------------------------------------- */

#ifdef Q8_VNNI

/* A group of many rows, and the rows and columns of a task. */
struct many {
    const struct q8_job *job;
    const struct expert_group *group;
    int64_t rows, cols;
};

#ifdef GEMM_AMX
static bool is_wide(const struct q8_job *j)
{
    return j->amx && j->w.block_elems == 256;
}

/* Of x, as blocks of 256 are multiplied, or of the other kind; neither takes more room. */
static int64_t x_panel_bytes(const struct q8_job *j)
{
    return is_wide(j) ? j->w.blocks * Q8_WIDE_X : j->panel_bytes;
}
#endif

/* The panel that begins with the group's row `i`. */
static char *x_panel(const struct q8_job *j, const struct expert_group *g, int64_t i)
{
#ifdef GEMM_AMX
    return coded(j, g, 0) + i / Q8_LINES * x_panel_bytes(j);
#else
    return coded(j, g, i);
#endif
}

static void code_many(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct many *m = ctx;
    const struct q8_job *j = m->job;
    const struct expert_group *g = m->group;

    (void)worker;
    for (int64_t p = begin; p < end; p++) {
        const float *row[Q8_LINES];
        int64_t first = p * Q8_LINES, rows = cpu_min_i64(Q8_LINES, g->rows - first);
        char *panel = x_panel(j, g, first);
        uint8_t *kind = j->kind + g->first + first;
        for (int64_t i = 0; i < rows; i++)
            row[i] = x_row(j, g->first + first + i);
#ifdef GEMM_AMX
        if (is_wide(j)) {
            q8_wide_pack_x(&j->w, row, rows, panel, kind);
            continue;
        }
        if (j->amx) {
            q8_amx_pack_x(&j->w, row, rows, panel, kind);
            continue;
        }
#endif
        q8_pack_x(&j->w, row, rows, panel, kind);
    }
}

/* Sums of 16 columns from `col` on, [16 rows][16]. */
static void store(const struct q8_job *j, const struct q8_weight *w, const float *sum, int64_t row,
                  int64_t rows, int64_t col)
{
    int64_t cols = cpu_min_i64(Q8_LINES, w->n - col);
    bool finite = all_finite(sum, rows * Q8_LINES);

    for (int64_t r = 0; r < rows; r++) {
        memcpy(out_row(j, row + r) + col, sum + r * Q8_LINES, (size_t)cols * sizeof *sum);
        if (!finite || j->kind[row + r] != Q8_ROW_PLAIN)
            repair(j, w, row + r, col, col + cols);
    }
}

/* Panels of w from `col` on, for rows [begin, end) of the group. */
static void multiply(const struct many *m, const struct q8_weight *w, int64_t col, int64_t begin,
                     int64_t end, char *panel)
{
    const struct q8_job *j = m->job;
    _Alignas(64) float sum[Q8_LINES * Q8_LINES];
    int64_t last = cpu_min_i64(col + j->panels * Q8_LINES, w->n);
    struct q8_tile t = {.group = w->group,
                        .groups = w->k / w->group,
                        .with_min = q8_has_min(w->scheme),
                        .sum = sum};

    for (int64_t n = col; n < last; n += Q8_LINES)
        q8_pack_w(w, n, cpu_min_i64(Q8_LINES, last - n), panel + (n - col) / Q8_LINES * j->w_bytes);
    for (int64_t r = begin; r < end; r += Q8_LINES) {
        t.x = coded(j, m->group, r);
        for (int64_t n = col; n < last; n += Q8_LINES) {
            t.w = panel + (n - col) / Q8_LINES * j->w_bytes;
            q8_tile_run(&t);
            store(j, w, sum, m->group->first + r, cpu_min_i64(Q8_LINES, end - r), n);
        }
    }
}

#ifdef GEMM_AMX
/* Blocks [first, last) of one panel. */
static void pack_part(const struct q8_weight *w, int64_t col, int64_t first, int64_t last, char *to)
{
    int64_t cols = cpu_min_i64(Q8_LINES, w->n - col);

    if (w->block_elems == 256)
        q8_wide_pack_w(w, col, cols, first, to);
    else
        q8_amx_pack_w(w, col, cols, first, last, to);
}

/* Asks for what pack_part will read. */
static void expect_part(const struct q8_weight *w, int64_t col, int64_t first, int64_t last)
{
    int64_t cols = cpu_min_i64(Q8_LINES, w->n - col);

    for (int64_t i = 0; i < cols && first < last; i++) {
        const uint8_t *row = q8_row(w, col + i), *end = row + last * w->block_bytes - 1;
        for (const uint8_t *at = row + first * w->block_bytes; at < end; at += 64)
            __asm__ volatile("prefetcht1 %0" ::"m"(*at));
        __asm__ volatile("prefetcht1 %0" ::"m"(*end));
    }
}

/* By rows of y: adjacent pieces of it are written together. */
static void store_sums(const struct many *m, const struct q8_weight *w, const struct q8_part *t,
                       int64_t row, int64_t rows, int64_t col)
{
    enum { TILE = Q8_LINES * Q8_LINES };
    _Alignas(64) float out[AMX_PANELS * TILE];
    int64_t cols = cpu_min_i64(t->w_panels * Q8_LINES, w->n - col);

    for (int64_t r = 0; r < rows; r++) {
        int64_t i = r % Q8_LINES, at = m->group->first + row + r;
        float *to = out_row(m->job, at) + col;
        for (int64_t n = 0; n < t->w_panels && i == 0; n++)
            put_tile(t->sum + (n * t->x_panels + r / Q8_LINES) * TILE, 64,
                     (char *)(out + n * TILE));
        for (int64_t n = 0; n < cols; n += Q8_LINES) {
            __mmask16 some = (__mmask16)((1u << cpu_min_i64(Q8_LINES, cols - n)) - 1);
            _mm512_mask_storeu_ps(to + n, some, _mm512_load_ps(out + (n + i) * Q8_LINES));
        }
        repair(m->job, w, at, col, col + cols);
    }
}

/* The same in tiles, one part of k of all columns after the other: its panels, its codes of x and
 * the sums are in the cache then. */
static void multiply_amx(const struct many *m, const struct q8_weight *w, int64_t col, int64_t row,
                         int64_t rows, char *scratch)
{
    const struct q8_job *j = m->job;
    int64_t blocks = is_wide(j) ? 1 : Q8_AMX_GROUPS;
    int64_t x_bytes = is_wide(j) ? Q8_WIDE_X : AMX_W_BYTES;
    int64_t cols = cpu_min_i64(AMX_PANELS * Q8_LINES, w->n - col);
    struct q8_part t = {.x = x_panel(j, m->group, row),
                        .w = scratch,
                        .x_panels = (rows + Q8_LINES - 1) / Q8_LINES,
                        .w_panels = (cols + Q8_LINES - 1) / Q8_LINES,
                        .x_apart = x_panel_bytes(j),
                        .w_apart = is_wide(j) ? Q8_WIDE_W : AMX_W_BYTES,
                        .sum = (float *)(void *)(scratch + AMX_PANELS * AMX_W_BYTES)};

    memset(t.sum, 0, (size_t)(t.x_panels * t.w_panels * Q8_LINES * Q8_LINES) * sizeof *t.sum);
    for (int64_t b = 0; b < w->blocks; b += blocks, t.x += x_bytes) {
        int64_t last = cpu_min_i64(b + blocks, w->blocks);
        for (int64_t n = 0; n < t.w_panels; n++) {
            pack_part(w, col + n * Q8_LINES, b, last, scratch + n * t.w_apart);
            expect_part(w, col + n * Q8_LINES, last, cpu_min_i64(last + blocks, w->blocks));
        }
        t.groups = gemm_up(last - b, Q8_AMX_BATCH);
        if (is_wide(j))
            q8_wide_run(w, &t);
        else
            q8_amx_run(w, &t);
    }
    store_sums(m, w, &t, row, rows, col);
}
#endif

/* One task: some columns and some rows of the group. */
static void run_many(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct many *m = ctx;
    const struct q8_job *j = m->job;
    struct q8_weight w = weight_of(j, m->group);
    int64_t parts = (w.n + m->cols - 1) / m->cols;

#ifdef GEMM_AMX
    if (is_wide(j))
        amx_enter();
    else if (j->amx)
        q8_amx_enter();
#endif
    for (int64_t t = begin; t < end; t++) {
        char *panel = j->w_panels + worker * w_panels_bytes(j);
        int64_t row = t / parts * m->rows, col = t % parts * m->cols;
        int64_t rows = cpu_min_i64(m->rows, m->group->rows - row);
#ifdef GEMM_AMX
        if (j->amx) {
            multiply_amx(m, &w, col, row, rows, panel);
            continue;
        }
#endif
        multiply(m, &w, col, row, row + rows, panel);
    }
#ifdef GEMM_AMX
    if (j->amx)
        amx_leave();
#endif
}

static void run_group(const struct q8_job *j, const struct expert_group *g)
{
    struct many m = {j, g, ROWS_AT_ONCE, j->panels * Q8_LINES};

#ifdef GEMM_AMX
    if (j->amx) {
        m.rows = AMX_ROWS;
        m.cols = AMX_PANELS * Q8_LINES;
    }
#endif
    cpu_for(j->call->pool, (g->rows + Q8_LINES - 1) / Q8_LINES, 1, code_many, &m);
    cpu_for(j->call->pool, (j->w.n + m.cols - 1) / m.cols * ((g->rows + m.rows - 1) / m.rows), 1,
            run_many, &m);
}

#endif

/* ---- the kernel ---------------------------------------------------------------------------- */

static void run_on(const struct cpu_call *c, bool amx)
{
    struct q8_job j;
    char *at = c->scratch;

    if (c->out->count == 0)
        return;
    describe(c, &j);
    /* For some there are no tiles. */
    j.amx = amx && q8_form_of(j.w.scheme, j.w.block_elems) != Q8_LINEAR;
    j.x = at;
    at += gemm_up(x_bytes(&j), 64);
    j.kind = (uint8_t *)at;
    at += gemm_up(j.m, 64);
    j.w_panels = at;
    at += gemm_workers(c->pool) * w_panels_bytes(&j);
    if (j.grouped) {
        experts_sort(c, j.experts, few_rows(&j), at, &j.by);
    } else {
        j.all = (struct expert_group){.rows = (int32_t)j.m};
        bool few = j.m <= few_rows(&j);
        j.by =
            (struct experts){.few = &j.all, .many = &j.all, .few_count = few, .many_count = !few};
    }
    cpu_for(c->pool, j.by.few_count * CODE_PARTS, CODE_PARTS / 4, code_few, &j);
    cpu_for(c->pool, j.by.few_count * ((j.w.n + j.cols - 1) / j.cols), 1, run_few, &j);
#ifdef Q8_VNNI
    for (int64_t i = 0; i < j.by.many_count; i++)
        run_group(&j, &j.by.many[i]);
#endif
}

void dequant_q8_run(const struct cpu_call *c)
{
    run_on(c, false);
}

#ifdef GEMM_AMX
void dequant_q8_run_amx(const struct cpu_call *c)
{
    run_on(c, true);
}
#endif
