/* gemm.c: products of packed panels (gemm.h).
 *
 *     for each slab of rows and columns
 *         pack what more than one block reads
 *         for each block, in parallel
 *             for each stretch of k
 *                 pack the block's part of a, and of b, unless that has been done before
 *                 for each panel of b: for each panel of a: the inner loop (gemm_micro.h)
 *             hand the sums over
 *
 * A panel of b stays in the first-level cache while the panels of a, which stay in the second, pass
 * by. Where k is split, each part sums for itself, and the parts are added in their order. */
#include "backend/cpu/kernels/gemm/gemm.h"
#include "backend/cpu/kernels/gemm/gemm_blocks.h"

enum { PACK_PANELS = 4 }; /* panels of a stretch that are packed in one task */

/* All panels of some lines, in scratch. */
struct panels {
    char *at;
    int64_t first, lines; /* lines: whole panels */
};

struct job {
    const struct gemm *g;
    struct gemm_blocks b;
    struct gemm_room room;
    char *own_a, *own_b; /* scratch for panels, and for the rest */
    char *wide, *tile;

    /* The slab at hand, and its panels where they are packed as a whole. */
    int64_t row, rows, col, cols; /* blocks */
    struct panels whole_a, whole_b;
    bool pack_a, pack_b;
};

static char *panels_at(const struct job *job, const struct panels *p, int64_t item, int64_t line,
                       int64_t k)
{
    const struct gemm_loop *l = job->b.loop;

    return p->at + item * gemm_panels_bytes(l, p->lines, job->g->k) +
           gemm_panels_at(l, p->lines, job->g->k, line - p->first, k);
}

/* ---- packing ------------------------------------------------------------------------------- */

static void pack_a(const struct job *job, int64_t item, int64_t row, int64_t rows, int64_t k,
                   int64_t ks, void *to)
{
    struct gemm_part p = {.item = item,
                          .line = row,
                          .lines = rows,
                          .k = k,
                          .ks = ks,
                          .width = gemm_a_width(job->b.loop, job->g->m),
                          .panel = to};
    job->g->pack_a(job->g->ctx, &p);
}

static void pack_b(const struct job *job, int64_t item, int64_t col, int64_t cols, int64_t k,
                   int64_t ks, void *to)
{
    struct gemm_part p = {.item = item,
                          .line = col,
                          .lines = cols,
                          .k = k,
                          .ks = ks,
                          .width = job->b.loop->nr,
                          .panel = to};
    job->g->pack_b(job->g->ctx, &p);
}

/* Tasks of packing per stretch of an item. */
static int64_t pack_tasks(const struct panels *p, int64_t width)
{
    return (p->lines + PACK_PANELS * width - 1) / (PACK_PANELS * width);
}

static void pack_wholes(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *job = ctx;
    const struct gemm *g = job->g;
    const struct gemm_blocks *b = &job->b;
    int64_t mr = b->loop->mr, nr = b->loop->nr;
    int64_t a_tasks = job->pack_a ? pack_tasks(&job->whole_a, mr) : 0;
    int64_t tasks = a_tasks + (job->pack_b ? pack_tasks(&job->whole_b, nr) : 0);

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        int64_t number = t % tasks, item = t / tasks / b->stretches;
        int64_t k = t / tasks % b->stretches * b->stretch, ks = cpu_min_i64(b->stretch, g->k - k);
        if (number < a_tasks) {
            int64_t row = number * PACK_PANELS * mr, all = job->whole_a.lines;
            int64_t end_row = cpu_min_i64(g->m, job->whole_a.first + all);
            row += job->whole_a.first;
            pack_a(job, item, row, cpu_min_i64(PACK_PANELS * mr, end_row - row), k, ks,
                   panels_at(job, &job->whole_a, item, row, k));
        } else {
            int64_t col = (number - a_tasks) * PACK_PANELS * nr, all = job->whole_b.lines;
            int64_t end_col = cpu_min_i64(g->n, job->whole_b.first + all);
            col += job->whole_b.first;
            pack_b(job, item, col, cpu_min_i64(PACK_PANELS * nr, end_col - col), k, ks,
                   panels_at(job, &job->whole_b, item, col, k));
        }
    }
}

/* The panels of a block's rows for one stretch. */
static const char *block_a(const struct job *job, const struct gemm_block *at, int64_t k,
                           int64_t ks, int worker)
{
    char *own = job->own_a;

    if (job->b.a == GEMM_WHOLE)
        return panels_at(job, &job->whole_a, at->item, at->row, k);
    own += worker * gemm_up(job->b.mc * gemm_line_bytes(job->b.loop, job->b.stretch), 64);
    pack_a(job, at->item, at->row, at->rows, k, ks, own);
    return own;
}

static const char *block_b(const struct job *job, const struct gemm_block *at, int64_t k,
                           int64_t ks, int worker)
{
    char *own = job->own_b;

    if (job->b.b == GEMM_WHOLE)
        return panels_at(job, &job->whole_b, at->item, at->col, k);
    own += worker * gemm_up(job->b.nc * gemm_line_bytes(job->b.loop, job->b.stretch), 64);
    pack_b(job, at->item, at->col, at->cols, k, ks, own);
    return own;
}

/* ---- multiplying --------------------------------------------------------------------------- */

/* b's panels as the inner loop wants them. f16 and bf16 are widened a panel at a time, unless each
 * panel is read only once: then the inner loop does it. */
struct b_reader {
    gemm_micro_fn micro;
    int64_t panel; /* bytes of one */
    float *wide;   /* NULL: nothing is widened */
};

static struct b_reader b_reader(const struct job *job, int64_t rows, int64_t ks, int worker)
{
    const struct gemm_loop *l = job->b.loop;
    rlx_dtype dtype = job->g->ready_dtype;
    gemm_micro_fn direct = dtype == RLX_DTYPE_f16 ? l->with_f16 : l->with_bf16;

    if (job->b.b != GEMM_READY || !cpu_is_half(dtype))
        return (struct b_reader){l->micro, l->nr * gemm_line_bytes(l, ks), NULL};
    if (rows <= l->mr && direct)
        return (struct b_reader){direct, l->nr * ks * 2, NULL};
    return (struct b_reader){l->micro, l->nr * ks * 2,
                             (float *)(void *)(job->wide + worker * job->room.wide)};
}

/* All panels of a times all panels of b, over one stretch of k. */
static void multiply(const struct job *job, const char *a, const char *b, int64_t ks, bool add,
                     const struct gemm_block *to, int worker)
{
    const struct gemm_loop *l = job->b.loop;
    int64_t lanes = gemm_lanes(l, ks), line = gemm_line_bytes(l, ks);
    int64_t width = gemm_a_width(l, job->g->m);
    struct b_reader read = b_reader(job, to->rows, ks, worker);

    for (int64_t j = 0; j < to->cols; j += l->nr, b += read.panel) {
        const char *ap = a, *bp = b;
        if (read.wide) {
            cpu_load_f32(job->g->ready_dtype, b, read.wide, l->nr * ks);
            bp = (const char *)read.wide;
        }
        for (int64_t i = 0; i < to->rows; i += l->mr, ap += l->mr * line) {
            char *c = (char *)to->sum + (i * to->ld + j) * l->sum;
            read.micro(lanes, ap, width, bp, c, to->ld, add, cpu_min_i64(l->mr, to->rows - i),
                       cpu_min_i64(l->nr, to->cols - j));
        }
    }
}

static const char *ready_at(const struct job *job, const struct gemm_block *at, int64_t k)
{
    const struct gemm *g = job->g;
    const struct gemm_loop *l = job->b.loop;
    int64_t from = gemm_panels_at(l, gemm_up(g->n, l->nr), g->k, at->col, k);

    return (const char *)g->ready_b(g->ctx, at->item) +
           (cpu_is_half(g->ready_dtype) ? from / 2 : from);
}

static void sum_block(const struct job *job, const struct gemm_block *to, int64_t k, int64_t k_end,
                      int worker)
{
    static const char nothing[1]; /* where there is no k: not NULL, as panels are stepped through */
    const struct gemm_blocks *bl = &job->b;
    const char *a = nothing, *b = nothing;
    bool add = false;

    do { /* once even if there is no k: that makes zeros */
        int64_t ks = cpu_max_i64(0, cpu_min_i64(bl->stretch, k_end - k));
        if (ks > 0) {
            a = block_a(job, to, k, ks, worker);
            b = bl->b == GEMM_READY ? ready_at(job, to, k) : block_b(job, to, k, ks, worker);
        }
        multiply(job, a, b, ks, add, to, worker);
        add = true;
        k += ks;
    } while (k < k_end);
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* Block number `at` of the slab; false: the item has no such block. */
static bool find_block(const struct job *job, int64_t at, struct gemm_block *out, int64_t *k)
{
    const struct gemm *g = job->g;
    const struct gemm_blocks *b = &job->b;
    int64_t m = g->m, n = g->n;

    *k = g->k;
    out->col = (job->col + at % job->cols) * b->nc;
    out->row = (job->row + at / job->cols % job->rows) * b->mc;
    out->item = at / (job->cols * job->rows);
    if (g->size)
        g->size(g->ctx, out->item, &m, &n, k);
    out->rows = cpu_min_i64(b->mc, m - out->row);
    out->cols = cpu_min_i64(b->nc, n - out->col);
    return out->rows > 0 && out->cols > 0;
}

/* The place of a block's sums in c. */
static void *block_in_c(const struct job *job, const struct gemm_block *at)
{
    const struct gemm *g = job->g;
    int64_t first = (at->item * g->m + at->row) * g->n + at->col;
    return (char *)g->c + first * job->b.loop->sum;
}

/* One task: a block, or one part of k of a block. */
static void run_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *job = ctx;
    const struct gemm_blocks *b = &job->b;
    const struct gemm *g = job->g;

    if (b->loop->enter)
        b->loop->enter();
    for (int64_t t = begin; t < end; t++) {
        struct gemm_block block;
        int64_t from = t % b->splits * b->split_k, k;
        if (!find_block(job, t / b->splits, &block, &k))
            continue;
        if (job->room.tile) {
            block.sum = job->tile + (b->splits > 1 ? t : worker) * job->room.tile;
            block.ld = gemm_tile_ld(b->loop, b->nc);
        } else {
            block.sum = block_in_c(job, &block);
            block.ld = g->n;
        }
        sum_block(job, &block, from, cpu_min_i64(k, from + b->split_k), worker);
        if (b->splits == 1 && g->store)
            g->store(g->ctx, &block);
    }
    if (b->loop->leave)
        b->loop->leave();
}

#define ADD_ROW(T)                      \
    do {                                \
        T *to_ = to;                    \
        const T *from_ = from;          \
        for (int64_t i = 0; i < n; i++) \
            to_[i] += from_[i];         \
    } while (0)

static void add_row(enum gemm_kind kind, void *to, const void *from, int64_t n)
{
    switch (kind) {
    case GEMM_F32:
    case GEMM_BF16: ADD_ROW(float); break;
    case GEMM_F64: ADD_ROW(double); break;
    case GEMM_I64: ADD_ROW(uint64_t); break;
    default: ADD_ROW(uint32_t); break;
    }
}

/* Add up the parts of a block, in their order, and hand the sums over. */
static void join_splits(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *job = ctx;
    const struct gemm_blocks *b = &job->b;
    const struct gemm *g = job->g;
    int64_t size = b->loop->sum, ld = gemm_tile_ld(b->loop, b->nc);

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        struct gemm_block block;
        int64_t k;
        if (!find_block(job, t, &block, &k))
            continue;
        char *sum = job->tile + t * b->splits * job->room.tile;
        for (int64_t r = 0; r < block.rows; r++) {
            char *row = sum + r * ld * size;
            for (int64_t s = 1; s < b->splits; s++)
                add_row(g->kind, row, row + s * job->room.tile, block.cols);
            if (!g->in_scratch)
                memcpy((char *)block_in_c(job, &block) + r * g->n * size, row,
                       (size_t)(block.cols * size));
        }
        block.sum = g->in_scratch ? sum : block_in_c(job, &block);
        block.ld = g->in_scratch ? ld : g->n;
        if (g->store)
            g->store(g->ctx, &block);
    }
}

/* ---- slabs --------------------------------------------------------------------------------- */

/* The lines of a slab: from block `first` on, `count` blocks of `block` lines, of `total`. */
static struct panels slab_panels(char *at, int64_t first, int64_t count, int64_t block,
                                 int64_t total, int64_t width)
{
    int64_t line = first * block;
    int64_t lines = cpu_min_i64(count * block, total - line);
    return (struct panels){at, line, gemm_up(lines, width)};
}

static void run_slab(struct job *job, struct pool *pool)
{
    const struct gemm *g = job->g;
    const struct gemm_blocks *b = &job->b;
    int64_t tasks = (job->pack_a ? pack_tasks(&job->whole_a, b->loop->mr) : 0) +
                    (job->pack_b ? pack_tasks(&job->whole_b, b->loop->nr) : 0);

    cpu_for(pool, g->items * b->stretches * tasks, b->grain, pack_wholes, job);
    int64_t blocks = g->items * job->rows * job->cols;
    cpu_for(pool, blocks * b->splits, b->grain, run_blocks, job);
    if (b->splits > 1)
        cpu_for(pool, blocks, 1, join_splits, job);
}

void gemm_run(const struct gemm *g, struct pool *pool, void *scratch)
{
    struct job job = {.g = g};
    const struct gemm_blocks *b = &job.b;

    if (g->items <= 0 || g->m <= 0 || g->n <= 0)
        return;
    gemm_cut(g, &job.b);
    gemm_measure(g, b, gemm_workers(pool), &job.room);
    job.own_a = scratch;
    job.own_b = job.own_a + job.room.a;
    job.wide = job.own_b + job.room.b;
    job.tile = job.wide + gemm_workers(pool) * job.room.wide;

    for (job.col = 0; job.col < b->cols; job.col += b->slab_cols) {
        job.cols = cpu_min_i64(b->slab_cols, b->cols - job.col);
        job.whole_b = slab_panels(job.own_b, job.col, job.cols, b->nc, g->n, b->loop->nr);
        for (job.row = 0; job.row < b->rows; job.row += b->slab_rows) {
            job.rows = cpu_min_i64(b->slab_rows, b->rows - job.row);
            job.whole_a = slab_panels(job.own_a, job.row, job.rows, b->mc, g->m, b->loop->mr);
            job.pack_b = b->b == GEMM_WHOLE && job.row == 0;
            job.pack_a = b->a == GEMM_WHOLE && (job.col == 0 || b->slab_rows < b->rows);
            run_slab(&job, pool);
        }
    }
}
