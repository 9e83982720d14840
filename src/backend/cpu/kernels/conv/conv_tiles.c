/* conv_tiles.c: how convolutions are cut into tiles and tasks, and their weights packed for them
 * (conv_tiles.h). */
#include "backend/cpu/kernels/conv/conv_tiles_core.h"

enum {
    STRETCH = 256,       /* products between two additions to the sums in memory, about */
    STRETCH_POINT = 128, /* the same where each is of another channel, in separate lines */
    TASKS = 16,          /* tasks that keep a machine busy, about */
    TASK_PANELS = 128,   /* panels of sums that a task may hold */
    LANE_STRETCH = 192,  /* products as in STRETCH, where a panel of weights stays in the cache */
    LANE_PAIRS = 16,     /* pairs of runs that a task may hold */
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
 * bands: what it lays out stays with it, and no worker waits. Bands have a few rows, so that there
 * are enough of them; rows that two bands read are laid out twice. */
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

/* Vectors of channels: a panel of weights at a time, which is read once for all positions. */
static void cut_lanes(const struct conv *v, struct tiles *t)
{
    struct conv_band b = conv_band_at(v, &t->planes, 0);
    struct lines l = conv_lines(&t->planes, &b);
    int64_t pairs = conv_up(l.count * l.runs, 2), parts = conv_up(pairs, LANE_PAIRS);
    int64_t panels = b.images * v->groups * t->row_panels;
    double pair = 2.0 * LANE_RUN * LANE_CHANNELS * (double)t->k; /* products */

    if (panels * parts < TASKS)
        parts = conv_up(TASKS, panels);
    t->row_task = 1;
    t->col_task = cpu_max_i64(conv_up(pairs, parts), 1 + (int64_t)(TASK_LEAST / (pair + 1)));
    t->col_task = cpu_min_i64(t->col_task, cpu_min_i64(LANE_PAIRS, pairs));
}

/* The part of the products that is of use, with vectors of positions or of channels. Vectors of
 * channels are turned into rows at the end, which has to be worth it. */
static bool takes_lanes(const struct conv *v)
{
    enum { K_LEAST = 128 };
    const double worth = 1.04;
    struct conv_planes p;

    if (v->m < CONV_DIRECT_ROWS || v->ch < 1 || !conv_planes_make(v, &p) ||
        v->ch * windows_volume(v->kernel) < K_LEAST)
        return false;
    struct conv_band b = conv_band_at(v, &p, 0);
    struct lines l = conv_lines(&p, &b);
    double vecs = (double)conv_up(b.positions, VEC_LANES) * VEC_LANES;
    double runs = (double)(l.count * l.runs * LANE_RUN);
    vecs *= (double)(conv_up(v->m, TILE_ROWS) * TILE_ROWS);
    runs *= (double)(conv_up(v->m, LANE_CHANNELS) * LANE_CHANNELS);
    return l.run == LANE_RUN && runs * worth < vecs;
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

static int64_t stretch_of(const struct conv *v, const struct tiles *t)
{
    int64_t stretch = t->taps == 1 ? STRETCH_POINT : conv_up(STRETCH, t->taps);

    if (t->lanes)
        stretch = conv_up(LANE_STRETCH, t->taps);
    return t->rows == 1 || stretch > v->ch ? v->ch : stretch;
}

/* Bytes of sums that a worker holds. */
static int64_t sum_bytes(const struct tiles *t)
{
    int64_t held = t->stretches > 1 ? t->row_task * t->col_task : 1;

    if (t->lanes) /* and a vector's worth of rows, which are read and dropped */
        return (t->col_task * 2 * LANE_RUN + VEC_LANES) * LANE_CHANNELS * 4;
    return gemm_up(held * t->rows * TILE_COLS * 4, 64);
}

bool conv_tiles_make(const struct conv *v, bool lanes, struct tiles *t)
{
    *t = (struct tiles){.lanes = lanes};
    if (v->ch < 1 || !conv_planes_make(v, &t->planes))
        return false;
    t->rows = lanes ? LANE_CHANNELS : v->m < CONV_DIRECT_ROWS ? 1 : TILE_ROWS;
    t->row_panels = conv_up(v->m, t->rows);
    t->taps = windows_volume(v->kernel);
    t->k = t->taps * v->ch;
    t->stretch = stretch_of(v, t);
    t->stretches = conv_up(v->ch, t->stretch);
    t->own = !lanes && takes_own(v, t);
    if (lanes)
        cut_lanes(v, t);
    else if (t->own)
        cut_own(v, t);
    else
        cut_tasks(v, t);
    t->tile_bytes = sum_bytes(t);
    t->image_bytes = gemm_up(conv_planes_size(v, &t->planes) * 4, 64);
    t->tap_bytes = gemm_up(t->taps * 8, 64);
    t->tail_bytes = t->planes.in_place && !lanes ? gemm_up(t->stretch * TILE_COLS * 4, 64) : 0;
    if (conv_tiles_packs(v, t) && !v->w->packed)
        t->pack_bytes = panels_bytes(v, t);
    return true;
}

bool conv_tiles_fit(const struct conv *v)
{
    struct tiles t;
    return conv_tiles_make(v, false, &t);
}

static uint64_t scratch_of(const struct conv *v, bool lanes, const struct pool *pool)
{
    struct tiles t;

    if (!conv_tiles_make(v, lanes, &t))
        return 0;
    int64_t layout = t.image_bytes + t.tap_bytes, workers = gemm_workers(pool);
    return (uint64_t)(t.pack_bytes + layout * (t.own ? workers : 1) +
                      workers * (t.tile_bytes + t.tail_bytes));
}

/* Weights that are packed for other sizes may be packed either way. */
uint64_t conv_tiles_scratch(const struct conv *v, const struct pool *pool)
{
    bool either = v->w->packed && v->m >= CONV_DIRECT_ROWS, lanes = takes_lanes(v);
    uint64_t a = either || !lanes ? scratch_of(v, false, pool) : 0;
    uint64_t b = either || lanes ? scratch_of(v, true, pool) : 0;

    return a > b ? a : b;
}

void conv_tiles_offsets(const struct conv *v, const struct tiles *t, const struct conv_band *b,
                        int64_t *offset)
{
    for (int64_t i = 0; i < t->taps; i++) {
        int64_t tap[3] = {i / (v->kernel[1] * v->kernel[2]), i / v->kernel[2] % v->kernel[1],
                          i % v->kernel[2]};
        offset[i] = conv_tap_offset(v, &t->planes, b, tap);
    }
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
    bool lanes = takes_lanes(v);
    struct tiles t, other;

    if (!conv_tiles_make(v, lanes, &t) || !conv_tiles_packs(v, &t) || v->groups > UINT32_MAX)
        return (struct cpu_pack){0};
    uint64_t head = sizeof(struct packed_head), bytes = (uint64_t)panels_bytes(v, &t);
    if (v->m >= CONV_DIRECT_ROWS && conv_tiles_make(v, !lanes, &other) &&
        (uint64_t)panels_bytes(v, &other) > bytes)
        bytes = (uint64_t)panels_bytes(v, &other); /* sizes at packing may choose the other way */
    return (struct cpu_pack){.bytes = head + bytes,
                             .layout = (uint64_t)(0x434f4e56 + lanes) << 32 | (uint64_t)v->groups};
}

void conv_tiles_pack(const struct conv *v, struct pool *pool, void *to)
{
    struct packed_head *head = to;
    bool lanes = takes_lanes(v);
    struct tiles t;

    if (!conv_tiles_make(v, lanes, &t))
        return;
    *head = (struct packed_head){.special = conv_any_special(v->w, pool), .lanes = lanes};
    conv_tiles_pack_all(v, &t, pool, (float *)(head + 1));
}

bool conv_tiles_packed_special(const struct conv *v)
{
    const struct packed_head *head = v->w->packed;
    return head->special != 0;
}

/* ---- running ------------------------------------------------------------------------------- */

void conv_tiles_run(const struct conv *v, struct pool *pool, void *scratch)
{
    const struct packed_head *head = v->w->packed;
    struct conv_room room = {.weights = v->w->data, .layout = scratch};
    struct tiles t;

    if (!conv_tiles_make(v, head ? head->lanes != 0 : takes_lanes(v), &t))
        return;
    char *panels = room.layout + (t.own ? gemm_workers(pool) : 1) * (t.image_bytes + t.tap_bytes);
    room.own = panels + t.pack_bytes;
    if (head) {
        room.weights = (const float *)(head + 1);
    } else if (conv_tiles_packs(v, &t)) {
        conv_tiles_pack_all(v, &t, pool, (float *)panels);
        room.weights = (const float *)panels;
    }
    if (t.lanes)
        conv_lanes_run(v, &t, &room, pool);
    else
        conv_rows_run(v, &t, &room, pool);
}
