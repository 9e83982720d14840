/* gemm_blocks.c: how a product is cut (gemm_blocks.h).
 *
 * A block's rows of a should stay in the second-level cache while a panel of b, in the first, meets
 * all of them. */
#include "backend/cpu/kernels/gemm/gemm_blocks.h"

enum {
    ROWS = 192,           /* of a block, at most */
    COLUMNS = 512,        /* of a block, at most */
    TASKS = 32,           /* blocks that keep a machine busy */
    FEW = TASKS / 2,      /* of the smallest blocks, so few that k may be split */
    TASK_WORK = 1 << 20,  /* products that a block should not go below */
    GRAIN_WORK = 1 << 15, /* products that are worth handing to a thread */
    SPLIT_STRETCHES = 4,  /* that a split should have */
    LEAST_PANELS = 4,     /* of rows, that are not cut further */
    LEAST_COLUMNS = 128   /* that are not, where each block packs its rows of a for itself */
};

static int64_t count_of(int64_t total, int64_t part)
{
    return (total + part - 1) / part;
}

/* As many equal blocks as there would be at most `limit` long ones. */
static int64_t even(int64_t total, int64_t limit, int64_t panel)
{
    return gemm_up(count_of(total, count_of(total, limit / panel * panel)), panel);
}

static int64_t least_rows(const struct gemm *g, const struct gemm_loop *loop)
{
    return cpu_min_i64(gemm_up(g->m, loop->mr), LEAST_PANELS * loop->mr);
}

/* All panels of an operand: its bytes, or more than fit. */
static double all_bytes(const struct gemm *g, const struct gemm_blocks *b, int64_t lines,
                        int64_t width)
{
    return (double)g->items * (double)gemm_up(lines, width) * (double)b->stretches *
           (double)gemm_line_bytes(b->loop, b->stretch);
}

/* Bytes of a, and of b, packed as a whole, at most. That pays where the other operand has more than
 * a block's worth of lines; else it only serves to have more blocks, and must not take much. */
static int64_t most_a(const struct gemm *g)
{
    return g->ready_b || g->n > COLUMNS ? 8 << 20 : 1 << 20;
}

static int64_t most_b(const struct gemm *g)
{
    return g->m > ROWS ? 16 << 20 : 1 << 19;
}

/* Halve blocks while there are few of them and each is a lot of work. With panels of b at hand,
 * columns cost nothing to cut. */
static void halve(const struct gemm *g, struct gemm_blocks *b)
{
    const struct gemm_loop *loop = b->loop;
    bool a_fits = all_bytes(g, b, g->m, loop->mr) <= (double)most_a(g);
    bool b_fits = g->ready_b || g->m > ROWS || all_bytes(g, b, g->n, loop->nr) <= (double)most_b(g);
    int64_t least_cols = a_fits ? loop->nr : gemm_up(LEAST_COLUMNS, loop->nr);
    int64_t least = TASK_WORK / (g->k + 1);

    while (g->items * count_of(g->m, b->mc) * count_of(g->n, b->nc) < TASKS &&
           b->mc * b->nc / 2 >= least) {
        bool wide = b->nc > least_cols, tall = b_fits && b->mc > least_rows(g, loop);
        if (wide && (g->ready_b || !tall || b->nc >= b->mc))
            b->nc = cpu_max_i64(least_cols, gemm_up(b->nc / 2, loop->nr));
        else if (tall)
            b->mc = gemm_up(b->mc / 2, loop->mr);
        else
            break;
    }
}

static bool may_split(const struct gemm *g, const struct gemm_blocks *b)
{
    return !g->size && b->stretches >= 2 * SPLIT_STRETCHES;
}

/* Few sums and a long k: the smallest blocks, and k in parts. */
static void split(const struct gemm *g, struct gemm_blocks *b)
{
    int64_t mc = least_rows(g, b->loop), nr = b->loop->nr;

    if (!may_split(g, b) || g->items >= FEW || g->m > FEW * mc || g->n > FEW * nr)
        return;
    int64_t tasks = g->items * count_of(g->m, mc) * count_of(g->n, nr);
    int64_t parts = cpu_min_i64(TASKS / tasks, b->stretches / SPLIT_STRETCHES);
    if (tasks >= FEW || parts < 2)
        return;
    b->mc = mc;
    b->nc = nr;
    b->split_k = count_of(b->stretches, parts) * b->stretch;
    b->splits = count_of(g->k, b->split_k);
}

/* block: lines of one, of `count` per item. *slab: how many of them are packed together. */
static enum gemm_source source(const struct gemm *g, const struct gemm_blocks *b, double all,
                               double most, int64_t block, int64_t count, int64_t *slab)
{
    double one =
        (double)block * (double)b->stretches * (double)gemm_line_bytes(b->loop, b->stretch);

    *slab = count;
    if (g->size || b->splits > 1)
        return GEMM_OWN;
    if (all <= most)
        return GEMM_WHOLE;
    if (g->items > 1 || one > most)
        return GEMM_OWN;
    *slab = (int64_t)(most / one);
    return GEMM_WHOLE;
}

void gemm_cut(const struct gemm *g, struct gemm_blocks *b)
{
    const struct gemm_loop *loop = gemm_loop_of(g->kind);

    *b = (struct gemm_blocks){.loop = loop, .splits = 1, .split_k = g->k};
    b->stretch = gemm_stretch(loop, g->k);
    b->stretches = count_of(g->k, b->stretch);
    split(g, b);
    if (b->splits == 1) {
        b->mc = even(g->m, ROWS, loop->mr);
        b->nc = even(g->n, COLUMNS, loop->nr);
        if (g->items < TASKS)
            halve(g, b);
    }
    b->rows = count_of(g->m, b->mc);
    b->cols = count_of(g->n, b->nc);
    b->grain = cpu_max_i64(1, GRAIN_WORK / (b->mc * b->nc) / (g->k + 1));
    b->slab_rows = b->rows;
    b->slab_cols = b->cols;
    b->a = b->b = GEMM_OWN;
    if (b->cols > 1)
        b->a = source(g, b, all_bytes(g, b, g->m, loop->mr), (double)most_a(g), b->mc, b->rows,
                      &b->slab_rows);
    if (g->ready_b)
        b->b = GEMM_READY;
    else if (b->rows > 1)
        b->b = source(g, b, all_bytes(g, b, g->n, loop->nr), (double)most_b(g), b->nc, b->cols,
                      &b->slab_cols);
}

/* The most that panels may take with these sizes or any smaller ones. own: lines of a block, at
 * most; shared: with sizes such as these, more than one block may read them. */
static int64_t panel_bytes(const struct gemm *g, const struct gemm_blocks *b, double all,
                           int64_t most, int64_t own, bool shared, int64_t workers)
{
    int64_t owns = workers * gemm_up(own * gemm_line_bytes(b->loop, b->stretch), 64);

    if (g->size || !shared)
        return owns;
    return cpu_max_i64(owns, all < (double)most ? gemm_up((int64_t)all, 64) : most);
}

static void measure_split(const struct gemm *g, const struct gemm_blocks *b, int64_t workers,
                          struct gemm_room *r)
{
    const struct gemm_loop *loop = b->loop;
    int64_t mc = least_rows(g, loop);

    r->a = panel_bytes(g, b, 0, 0, mc, false, workers);
    r->b = g->ready_b ? 0 : panel_bytes(g, b, 0, 0, loop->nr, false, workers);
    r->tile = gemm_up(mc * gemm_tile_ld(loop, loop->nr) * loop->sum, 64);
    r->tiles = TASKS;
}

static void measure_plain(const struct gemm *g, const struct gemm_blocks *b, int64_t workers,
                          struct gemm_room *r)
{
    const struct gemm_loop *loop = b->loop;
    int64_t mc = cpu_min_i64(gemm_up(g->m, loop->mr), ROWS / loop->mr * loop->mr);
    int64_t nc = cpu_min_i64(gemm_up(g->n, loop->nr), COLUMNS / loop->nr * loop->nr);

    r->a =
        panel_bytes(g, b, all_bytes(g, b, g->m, loop->mr), most_a(g), mc, g->n > loop->nr, workers);
    r->b = g->ready_b ? 0
                      : panel_bytes(g, b, all_bytes(g, b, g->n, loop->nr), most_b(g), nc,
                                    g->m > least_rows(g, loop), workers);
    r->tile = g->in_scratch ? gemm_up(mc * gemm_tile_ld(loop, nc) * loop->sum, 64) : 0;
    r->tiles = workers;
}

void gemm_measure(const struct gemm *g, const struct gemm_blocks *b, int64_t workers,
                  struct gemm_room *r)
{
    *r = (struct gemm_room){0};
    if (b->splits > 1)
        measure_split(g, b, workers, r);
    else
        measure_plain(g, b, workers, r);
    if (g->ready_b && cpu_is_half(g->ready_dtype))
        r->wide = b->loop->nr * gemm_line_bytes(b->loop, b->stretch);
    r->total = r->a + r->b + workers * r->wide + r->tiles * r->tile;
}

uint64_t gemm_scratch(const struct gemm *g, const struct pool *pool)
{
    struct gemm_blocks b;
    struct gemm_room plain, parts;

    if (g->items <= 0 || g->m <= 0 || g->n <= 0)
        return 0;
    gemm_cut(g, &b);
    b.splits = 1;
    gemm_measure(g, &b, gemm_workers(pool), &plain);
    if (!may_split(g, &b))
        return (uint64_t)plain.total;
    b.splits = 2;
    gemm_measure(g, &b, gemm_workers(pool), &parts);
    return (uint64_t)cpu_max_i64(plain.total, parts.total);
}
