/* gemm.c: products of packed panels (gemm.h).
 *
 *     for each block of rows x columns of each item, in parallel
 *         for each stretch of k
 *             pack the block's part of a, and of b, unless that has been done before
 *             for each panel of b: for each panel of a: the inner loop (gemm_micro.h)
 *         hand the sums over
 *
 * A panel of b stays in the first-level cache while the panels of a, which stay in the second, pass
 * by. Where a long k meets few blocks, k is split as well: each part sums for itself, and the parts
 * are added in their order. */
#include "backend/cpu/kernels/gemm.h"
#include "backend/cpu/kernels/gemm_vec.h"

/* ---- the inner loops ----------------------------------------------------------------------- */

/* Each lane holds two int16_t: c + a0 * b0 + a1 * b1. */
static inline vec_u32 pair_madd(vec_u32 a, vec_u32 b, vec_u32 c)
{
#if defined(__AVX512VNNI__)
    return (vec_u32)_mm512_dpwssd_epi32((__m512i)c, (__m512i)a, (__m512i)b);
#elif defined(__AVX512BW__)
    return c + (vec_u32)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return c + (vec_u32)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return c + (vec_u32)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    typedef int32_t vec_i32 __attribute__((vector_size(GEMM_VEC)));
    vec_u32 a0 = (vec_u32)((vec_i32)(a << 16) >> 16), a1 = (vec_u32)((vec_i32)a >> 16);
    vec_u32 b0 = (vec_u32)((vec_i32)(b << 16) >> 16), b1 = (vec_u32)((vec_i32)b >> 16);
    return c + a0 * b0 + a1 * b1;
#endif
}

#define MICRO micro_f32
#define MICRO_T float
#define MICRO_V vec_f32
#define MICRO_MADD F32_MADD
#include "backend/cpu/kernels/gemm_micro.h"

#define MICRO micro_f64
#define MICRO_T double
#define MICRO_V vec_f64
#define MICRO_MADD F64_MADD
#include "backend/cpu/kernels/gemm_micro.h"

#define MICRO micro_i32
#define MICRO_T uint32_t
#define MICRO_V vec_u32
#define MICRO_MADD PLAIN_MADD
#include "backend/cpu/kernels/gemm_micro.h"

#define MICRO micro_i64
#define MICRO_T uint64_t
#define MICRO_V vec_u64
#define MICRO_MADD PLAIN_MADD
#include "backend/cpu/kernels/gemm_micro.h"

#define MICRO micro_i16
#define MICRO_T uint32_t
#define MICRO_V vec_u32
#define MICRO_MADD pair_madd
#include "backend/cpu/kernels/gemm_micro.h"

static const struct kind {
    void (*micro)(int64_t ks, const void *a, const void *b, void *c, int64_t ld, bool add,
                  int64_t m, int64_t n);
    int64_t size; /* of a sum, and of what a panel's lane holds */
    int64_t nr;
    int64_t step; /* k per lane */
} kinds[GEMM_KINDS] = {
    [GEMM_F32] = {micro_f32, 4, GEMM_ROW / 4, 1}, [GEMM_F64] = {micro_f64, 8, GEMM_ROW / 8, 1},
    [GEMM_I32] = {micro_i32, 4, GEMM_ROW / 4, 1}, [GEMM_I64] = {micro_i64, 8, GEMM_ROW / 8, 1},
    [GEMM_I16] = {micro_i16, 4, GEMM_ROW / 4, 2},
};

/* ---- blocks -------------------------------------------------------------------------------- */

enum {
    STRETCH = 256,       /* lanes of k between two additions to the sums in memory; even */
    ROW_PANELS = 16,     /* of a block, at most */
    COLUMNS = 512,       /* of a block, about */
    TASKS = 32,          /* blocks that keep a machine busy */
    TASK_WORK = 1 << 20, /* products that a block should not go below */
    GRAIN_WORK = 1 << 15 /* products that are worth handing to a thread */
};
static const int64_t whole_most = 16 << 20; /* bytes of an operand packed as a whole, at most */

struct blocks {
    const struct kind *kind;
    int64_t mc, nc;     /* rows and columns of a block, whole panels */
    int64_t rows, cols; /* blocks per item */
    int64_t stretch;    /* k that are packed together */
    int64_t lanes;      /* of a whole stretch */
    int64_t splits;     /* parts of k */
    int64_t split_k;    /* k per part, a multiple of the stretch */
    int64_t grain;      /* blocks per task */

    /* An operand of which blocks read the same part is packed before, once and as a whole, if it is
     * not too large; else each block packs its own part. Bytes: of the whole, or per worker. */
    bool a_whole, b_whole;
    int64_t a_bytes, b_bytes;

    /* Sums live in scratch: per worker, or per block and part of k. */
    bool tiles;
    int64_t tile_bytes;
};

/* As many equal blocks as there would be at most `limit` long ones. */
static int64_t even(int64_t total, int64_t limit, int64_t panel)
{
    int64_t count = (total + limit - 1) / limit;
    return gemm_up((total + count - 1) / count, panel);
}

static int64_t count_blocks(const struct gemm *g, struct blocks *b)
{
    b->rows = (g->m + b->mc - 1) / b->mc;
    b->cols = (g->n + b->nc - 1) / b->nc;
    return g->items > TASKS ? TASKS : g->items * b->rows * b->cols;
}

/* Few blocks and a long k: split k. */
static void split(const struct gemm *g, struct blocks *b, int64_t tasks)
{
    int64_t least = 4 * b->stretch; /* k that a part should have */

    if (g->size || tasks > TASKS / 8 || g->k < 2 * least)
        return;
    int64_t parts = cpu_min_i64(TASKS / tasks, g->k / least);
    b->split_k = gemm_up((g->k + parts - 1) / parts, b->stretch);
    b->splits = (g->k + b->split_k - 1) / b->split_k;
}

/* Halve blocks while there are few of them and each is a lot of work. */
static void cut(const struct gemm *g, struct blocks *b)
{
    int64_t nr = b->kind->nr, least = TASK_WORK / (b->split_k + 1);

    while (count_blocks(g, b) * b->splits < TASKS) {
        bool wide = b->nc > 2 * nr, tall = b->mc > 2 * GEMM_MR;
        if (!(wide || tall) || b->mc * b->nc / 2 < least)
            break;
        if (wide && (!tall || b->nc >= b->mc))
            b->nc = gemm_up(b->nc / 2, nr);
        else
            b->mc = gemm_up(b->mc / 2, GEMM_MR);
    }
}

/* Whether to pack an operand as a whole, and its bytes. own: lines of a block. */
static bool pack_whole_of(const struct gemm *g, const struct blocks *b, int64_t lines, int64_t own,
                          bool wanted, int64_t *bytes)
{
    int64_t stretches = (g->k + b->stretch - 1) / b->stretch, per = b->lanes * b->kind->size;
    double whole = (double)g->items * (double)stretches * (double)lines * (double)per;

    if (g->size || !wanted || whole > (double)whole_most) {
        *bytes = gemm_up(own * per, 64);
        return false;
    }
    *bytes = gemm_up(g->items * stretches * lines * per, 64);
    return true;
}

static void make_blocks(const struct gemm *g, struct blocks *b)
{
    *b = (struct blocks){.kind = &kinds[g->kind], .splits = 1, .split_k = g->k};
    b->stretch = cpu_min_i64(STRETCH * b->kind->step, gemm_up(cpu_max_i64(g->k, 1), b->kind->step));
    b->lanes = b->stretch / b->kind->step;
    b->mc = even(g->m, (int64_t)ROW_PANELS * GEMM_MR, GEMM_MR);
    b->nc = even(g->n, gemm_up(COLUMNS, b->kind->nr), b->kind->nr);
    split(g, b, count_blocks(g, b));
    cut(g, b);
    b->grain = cpu_max_i64(1, GRAIN_WORK / (b->mc * b->nc) / (g->k + 1));
    b->a_whole = pack_whole_of(g, b, b->rows * b->mc, b->mc, b->cols > 1, &b->a_bytes);
    b->b_whole = pack_whole_of(g, b, b->cols * b->nc, b->nc, b->rows > 1, &b->b_bytes);
    b->tiles = g->in_scratch || b->splits > 1;
    b->tile_bytes = b->tiles ? gemm_up(b->mc * b->nc * b->kind->size, 64) : 0;
}

static bool is_empty(const struct gemm *g)
{
    return g->items <= 0 || g->m <= 0 || g->n <= 0;
}

uint64_t gemm_scratch(const struct gemm *g, const struct pool *pool)
{
    struct blocks b;

    if (is_empty(g))
        return 0;
    make_blocks(g, &b);
    uint64_t workers = (uint64_t)gemm_workers(pool);
    uint64_t packed = (uint64_t)b.a_bytes * (b.a_whole ? 1 : workers) +
                      (uint64_t)b.b_bytes * (b.b_whole ? 1 : workers);
    uint64_t tiles = b.splits > 1 ? (uint64_t)(g->items * b.rows * b.cols * b.splits) : workers;
    return packed + tiles * (uint64_t)b.tile_bytes;
}

/* ---- running ------------------------------------------------------------------------------- */

struct job {
    const struct gemm *g;
    struct blocks b;
    char *packed_a, *packed_b, *tile;
};

/* Block number `at` of the job; false: the item has no such block. */
static bool find_block(const struct job *job, int64_t at, struct gemm_block *out, int64_t *k)
{
    const struct gemm *g = job->g;
    const struct blocks *b = &job->b;
    int64_t m = g->m, n = g->n;

    *k = g->k;
    out->col = at % b->cols * b->nc;
    out->row = at / b->cols % b->rows * b->mc;
    out->item = at / (b->cols * b->rows);
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
    return (char *)g->c + first * job->b.kind->size;
}

/* Where lines from `line` on of the stretch at k are, in an operand packed as a whole: stretches
 * one after another, each as long as a full one, the last one's panels close together. */
static char *whole_part(const struct job *job, char *packed, int64_t lines, int64_t item,
                        int64_t line, int64_t k)
{
    const struct blocks *b = &job->b;
    int64_t stretches = (job->g->k + b->stretch - 1) / b->stretch, at = k / b->stretch;
    int64_t ks = cpu_min_i64(b->stretch, job->g->k - k);
    int64_t lanes = (ks + b->kind->step - 1) / b->kind->step;

    return packed + ((item * stretches + at) * lines * b->lanes + line * lanes) * b->kind->size;
}

static char *whole_a(const struct job *job, int64_t item, int64_t row, int64_t k)
{
    return whole_part(job, job->packed_a, job->b.rows * job->b.mc, item, row, k);
}

static char *whole_b(const struct job *job, int64_t item, int64_t col, int64_t k)
{
    return whole_part(job, job->packed_b, job->b.cols * job->b.nc, item, col, k);
}

static void pack_a(const struct job *job, const struct gemm_block *at, int64_t k, int64_t ks,
                   void *to)
{
    struct gemm_part p = {.item = at->item,
                          .line = at->row,
                          .lines = at->rows,
                          .k = k,
                          .ks = ks,
                          .width = GEMM_MR,
                          .panel = to};
    job->g->pack_a(job->g->ctx, &p);
}

static void pack_b(const struct job *job, const struct gemm_block *at, int64_t k, int64_t ks,
                   void *to)
{
    struct gemm_part p = {.item = at->item,
                          .line = at->col,
                          .lines = at->cols,
                          .k = k,
                          .ks = ks,
                          .width = job->b.kind->nr,
                          .panel = to};
    job->g->pack_b(job->g->ctx, &p);
}

/* Tasks before the product: one stretch of one block's rows, or of its columns. */
static void pack_wholes(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *job = ctx;
    const struct gemm *g = job->g;
    const struct blocks *b = &job->b;
    int64_t stretches = (g->k + b->stretch - 1) / b->stretch;
    int64_t rows = b->a_whole ? b->rows : 0, lines = rows + (b->b_whole ? b->cols : 0);

    (void)worker;
    for (int64_t t = begin; t < end && lines > 0 && stretches > 0; t++) {
        int64_t number = t % lines, rest = t / lines;
        int64_t k = rest % stretches * b->stretch, ks = cpu_min_i64(b->stretch, g->k - k);
        struct gemm_block at = {.item = rest / stretches};
        if (number < rows) {
            at.row = number * b->mc;
            at.rows = cpu_min_i64(b->mc, g->m - at.row);
            pack_a(job, &at, k, ks, whole_a(job, at.item, at.row, k));
        } else {
            at.col = (number - rows) * b->nc;
            at.cols = cpu_min_i64(b->nc, g->n - at.col);
            pack_b(job, &at, k, ks, whole_b(job, at.item, at.col, k));
        }
    }
}

/* All panels of a times all panels of b, over one stretch of k. */
static void multiply(const struct kind *kind, const char *a, const char *b, int64_t lanes, bool add,
                     const struct gemm_block *to)
{
    int64_t nr = kind->nr, a_step = lanes * GEMM_MR * kind->size, b_step = lanes * nr * kind->size;

    for (int64_t j = 0; j < to->cols; j += nr, b += b_step) {
        const char *ap = a;
        for (int64_t i = 0; i < to->rows; i += GEMM_MR, ap += a_step) {
            char *c = (char *)to->sum + (i * to->ld + j) * kind->size;
            kind->micro(lanes, ap, b, c, to->ld, add, cpu_min_i64(GEMM_MR, to->rows - i),
                        cpu_min_i64(nr, to->cols - j));
        }
    }
}

static void sum_block(const struct job *job, const struct gemm_block *to, int64_t k, int64_t k_end,
                      int worker)
{
    const struct blocks *bl = &job->b;
    char *a = job->packed_a + (bl->a_whole ? 0 : worker * bl->a_bytes);
    char *b = job->packed_b + (bl->b_whole ? 0 : worker * bl->b_bytes);
    bool add = false;

    do { /* once even if there is no k: that makes zeros */
        int64_t ks = cpu_max_i64(0, cpu_min_i64(bl->stretch, k_end - k));
        if (ks > 0 && bl->a_whole)
            a = whole_a(job, to->item, to->row, k);
        else if (ks > 0)
            pack_a(job, to, k, ks, a);
        if (ks > 0 && bl->b_whole)
            b = whole_b(job, to->item, to->col, k);
        else if (ks > 0)
            pack_b(job, to, k, ks, b);
        multiply(bl->kind, a, b, (ks + bl->kind->step - 1) / bl->kind->step, add, to);
        add = true;
        k += ks;
    } while (k < k_end);
}

/* One task: a block, or one part of k of a block. */
static void run_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *job = ctx;
    const struct blocks *b = &job->b;
    const struct gemm *g = job->g;

    for (int64_t t = begin; t < end; t++) {
        struct gemm_block block;
        int64_t from = t % b->splits * b->split_k, k;
        if (!find_block(job, t / b->splits, &block, &k))
            continue;
        if (b->tiles) {
            block.sum = job->tile + (b->splits > 1 ? t : worker) * b->tile_bytes;
            block.ld = b->nc;
        } else {
            block.sum = block_in_c(job, &block);
            block.ld = g->n;
        }
        sum_block(job, &block, from, cpu_min_i64(k, from + b->split_k), worker);
        if (b->splits == 1 && g->store)
            g->store(g->ctx, &block);
    }
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
    case GEMM_F32: ADD_ROW(float); break;
    case GEMM_F64: ADD_ROW(double); break;
    case GEMM_I64: ADD_ROW(uint64_t); break;
    default: ADD_ROW(uint32_t); break;
    }
}

/* Add up the parts of a block, in their order, and hand the sums over. */
static void join_splits(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *job = ctx;
    const struct blocks *b = &job->b;
    const struct gemm *g = job->g;

    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        struct gemm_block block;
        int64_t k;
        if (!find_block(job, t, &block, &k))
            continue;
        char *sum = job->tile + t * b->splits * b->tile_bytes;
        for (int64_t r = 0; r < block.rows; r++) {
            char *row = sum + r * b->nc * b->kind->size;
            for (int64_t s = 1; s < b->splits; s++)
                add_row(g->kind, row, row + s * b->tile_bytes, block.cols);
            if (!g->in_scratch)
                memcpy((char *)block_in_c(job, &block) + r * g->n * b->kind->size, row,
                       (size_t)(block.cols * b->kind->size));
        }
        block.sum = g->in_scratch ? sum : block_in_c(job, &block);
        block.ld = g->in_scratch ? b->nc : g->n;
        if (g->store)
            g->store(g->ctx, &block);
    }
}

void gemm_run(const struct gemm *g, struct pool *pool, void *scratch)
{
    struct job job = {.g = g};

    if (is_empty(g))
        return;
    make_blocks(g, &job.b);
    const struct blocks *b = &job.b;
    int64_t workers = gemm_workers(pool);
    job.packed_a = scratch;
    job.packed_b = job.packed_a + (b->a_whole ? 1 : workers) * b->a_bytes;
    job.tile = job.packed_b + (b->b_whole ? 1 : workers) * b->b_bytes;

    int64_t stretches = (g->k + b->stretch - 1) / b->stretch;
    int64_t lines = (b->a_whole ? b->rows : 0) + (b->b_whole ? b->cols : 0);
    cpu_for(pool, g->items * stretches * lines, b->grain, pack_wholes, &job);
    int64_t blocks = g->items * b->rows * b->cols;
    cpu_for(pool, blocks * b->splits, b->grain, run_blocks, &job);
    if (b->splits > 1)
        cpu_for(pool, blocks, 1, join_splits, &job);
}
