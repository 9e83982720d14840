/* conv_tiles.c: how convolutions are cut into tiles and tasks, and their weights packed for them
 * (conv_tiles.h). */
#include "backend/cpu/kernels/conv_tiles_core.h"

enum {
    STRETCH = 256,       /* products between two additions to the sums in memory, about */
    STRETCH_POINT = 128, /* the same where each is of another channel, in lines of its own */
    TASKS = 16,          /* tasks that keep a machine busy, about */
    TASK_PANELS = 128,   /* panels of sums that a task may hold */
};

/* ---- sizes --------------------------------------------------------------------------------- */

/* Tasks of equal size: enough of them, if there is the work for it, and small enough ones. */
static void cut_tasks(const struct conv *v, struct tiles *t)
{
    struct conv_band b = conv_band_at(v, &t->planes, 0);
    double panel = (double)t->rows * TILE_COLS * (double)t->k; /* products */
    int64_t cols = conv_panels(b.positions), items = b.images * v->groups;
    double all = panel * (double)t->row_panels * (double)cols * (double)items;
    double want = all / TASKS;

    if (want < TASK_LEAST)
        want = TASK_LEAST;
    t->row_task = t->row_panels;
    t->col_task = cols;
    while (t->row_task * t->col_task > 1 &&
           (panel * (double)(t->row_task * t->col_task) > want * 1.25 ||
            t->row_task * t->col_task > TASK_PANELS)) {
        if (t->col_task > 1 &&
            (t->col_task * TILE_COLS >= t->row_task * t->rows || t->row_task == 1))
            t->col_task = conv_up(t->col_task, 2);
        else
            t->row_task = conv_up(t->row_task, 2);
    }
}

/* Where all weights fit into a worker's cache beside a band of the image, each worker does whole
 * bands: what it lays out stays with it, and nobody waits. Bands of a few rows, so that there are
 * enough of them; those that two bands read are laid out twice. */
static int64_t own_band(const struct conv *v, const struct tiles *t)
{
    enum { POSITIONS = 256 }; /* fewer fill vectors badly */
    const struct conv_planes *p = &t->planes;
    int64_t line = 1;

    for (int i = p->band_axis + 1; i < 3; i++)
        line *= v->out_dim[i];
    return cpu_max_i64(conv_up(POSITIONS, line), 4 * p->extra[p->band_axis]);
}

static bool takes_own(const struct conv *v, const struct tiles *t)
{
    enum { WEIGHTS_MOST = 1 << 18, PARTS_LEAST = 8 }; /* elements; bands of all images */
    int64_t rows = v->out_dim[t->planes.band_axis];

    return !t->planes.in_place && v->groups == 1 && t->rows > 1 && v->m * t->k <= WEIGHTS_MOST &&
           v->images * (rows / own_band(v, t)) >= PARTS_LEAST;
}

static void cut_own(const struct conv *v, struct tiles *t)
{
    struct conv_planes *p = &t->planes;
    int64_t rows = v->out_dim[p->band_axis], each = conv_up(TASKS, v->images);

    p->images = 1;
    p->band = cpu_min_i64(p->band, cpu_max_i64(own_band(v, t), conv_up(rows, each)));
    p->bands = conv_up(rows, p->band);
    t->row_task = t->row_panels;
    t->col_task = cpu_max_i64(1, TASK_PANELS / t->row_panels);
    t->col_task = cpu_min_i64(t->col_task, conv_panels(conv_band_at(v, p, 0).positions));
}

/* Panels of weights: groups, each in panels of rows, each with all its k. */
static int64_t panels_bytes(const struct conv *v, const struct tiles *t)
{
    return gemm_up(v->groups * t->row_panels * t->rows * t->k * 4, 64);
}

/* A panel of one row is the row itself. */
bool conv_tiles_packs(const struct conv *v, const struct tiles *t)
{
    return t->rows > 1 || v->w->dtype != RLX_DTYPE_f32;
}

bool conv_tiles_make(const struct conv *v, struct tiles *t)
{
    *t = (struct tiles){0};
    if (v->ch < 1 || !conv_planes_make(v, &t->planes))
        return false;
    t->rows = v->m < CONV_DIRECT_ROWS ? 1 : TILE_ROWS;
    t->row_panels = conv_up(v->m, t->rows);
    t->taps = windows_volume(v->kernel);
    t->k = t->taps * v->ch;
    t->stretch = t->taps == 1 ? STRETCH_POINT : conv_up(STRETCH, t->taps);
    if (t->rows == 1 || t->stretch > v->ch)
        t->stretch = v->ch;
    t->stretches = conv_up(v->ch, t->stretch);
    t->own = takes_own(v, t);
    if (t->own)
        cut_own(v, t);
    else
        cut_tasks(v, t);
    int64_t held = t->stretches > 1 ? t->row_task * t->col_task : 1;
    t->tile_bytes = held * t->rows * TILE_COLS * 4;
    t->tile_bytes = gemm_up(t->tile_bytes, 64);
    t->image_bytes = gemm_up(conv_planes_size(v, &t->planes) * 4, 64);
    t->tap_bytes = gemm_up(t->taps * 8, 64);
    t->tail_bytes = t->planes.in_place ? gemm_up(t->stretch * TILE_COLS * 4, 64) : 0;
    if (conv_tiles_packs(v, t) && !v->w->packed)
        t->pack_bytes = panels_bytes(v, t);
    return true;
}

bool conv_tiles_fit(const struct conv *v)
{
    struct tiles t;
    return conv_tiles_make(v, &t);
}

uint64_t conv_tiles_scratch(const struct conv *v, const struct pool *pool)
{
    struct tiles t;

    if (!conv_tiles_make(v, &t))
        return 0;
    int64_t layout = t.image_bytes + t.tap_bytes, workers = gemm_workers(pool);
    return (uint64_t)(t.pack_bytes + layout * (t.own ? workers : 1) +
                      workers * (t.tile_bytes + t.tail_bytes));
}

/* ---- weights ------------------------------------------------------------------------------- */

struct pack_job {
    const struct conv *v;
    const struct tiles *t;
    float *to;
};

static void pack_panels(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct pack_job *job = ctx;
    const struct conv *v = job->v;
    const struct tiles *t = job->t;

    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t group = i / t->row_panels, row = i % t->row_panels * t->rows;
        struct gemm_view view = {
            .data = cpu_at(v->w, group * v->m * t->k), .dtype = v->w->dtype, .line = t->k, .k = 1};
        struct gemm_part p = {.line = row,
                              .lines = cpu_min_i64(t->rows, v->m - row),
                              .ks = t->k,
                              .width = t->rows,
                              .panel = job->to + i * t->rows * t->k};
        gemm_pack_view(&view, &p);
    }
}

void conv_tiles_pack_all(const struct conv *v, const struct tiles *t, struct pool *pool, float *to)
{
    struct pack_job job = {v, t, to};

    cpu_for(pool, v->groups * t->row_panels, cpu_max_i64(1, 16384 / (t->rows * t->k)), pack_panels,
            &job);
}

struct cpu_pack conv_tiles_pack_size(const struct conv *v)
{
    struct tiles t;

    if (!conv_tiles_make(v, &t) || !conv_tiles_packs(v, &t) || v->groups > UINT32_MAX)
        return (struct cpu_pack){0};
    uint64_t head = sizeof(struct packed_head);
    return (struct cpu_pack){.bytes = head + (uint64_t)panels_bytes(v, &t),
                             .layout = (uint64_t)0x434f4e56 << 32 | (uint64_t)v->groups};
}

void conv_tiles_pack(const struct conv *v, struct pool *pool, void *to)
{
    struct packed_head *head = to;
    struct tiles t;

    if (!conv_tiles_make(v, &t))
        return;
    *head = (struct packed_head){.special = conv_any_special(v->w, pool)};
    conv_tiles_pack_all(v, &t, pool, (float *)(head + 1));
}

bool conv_tiles_packed_special(const struct conv *v)
{
    const struct packed_head *head = v->w->packed;
    return head->special != 0;
}
