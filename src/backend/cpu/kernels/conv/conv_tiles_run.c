/* conv_tiles_run.c: convolutions as products of weights with planes (conv_planes.h).
 *
 *     for each part of the images: lay it out as planes
 *         for each task (some rows of an item's outputs, some of its positions), in parallel
 *             for each stretch of channels
 *                 for each panel of positions: for each panel of rows: the inner loop
 *             finish the sums and store them, while they are in the cache
 *
 * or, where the weights are small, each worker lays parts out for itself and does all of them.
 * Rows are output channels, an item is a group of an image. The inner loop (conv_micro.h) reads
 * weights from panels, a few rows side by side for each tap, and positions from planes, at any
 * alignment. Weights that do not change are packed when they are loaded. */
#include "backend/cpu/kernels/conv/conv_store.h"
#include "backend/cpu/kernels/conv/conv_tiles_core.h"

enum { LINE_VECS = 4 }; /* vectors where one row is done alone */

/* Some channels, each with all taps. */
struct stretch {
    int64_t channels, taps;
    int64_t channel;       /* elements from one channel to the next */
    const int64_t *offset; /* of each tap */
};

typedef void (*micro_fn)(const struct stretch *s, const float *a, const float *x, float *tile,
                         bool add);

#define MICRO micro_rows_1
#define MICRO_M TILE_ROWS
#define MICRO_V 1
#include "backend/cpu/kernels/conv/conv_micro.h"

#define MICRO micro_rows_2
#define MICRO_M TILE_ROWS
#define MICRO_V 2
#include "backend/cpu/kernels/conv/conv_micro.h"

#define MICRO micro_rows_3
#define MICRO_M TILE_ROWS
#define MICRO_V 3
#include "backend/cpu/kernels/conv/conv_micro.h"

#define MICRO micro_one_1
#define MICRO_M 1
#define MICRO_V 1
#include "backend/cpu/kernels/conv/conv_micro.h"

#define MICRO micro_one_2
#define MICRO_M 1
#define MICRO_V 2
#include "backend/cpu/kernels/conv/conv_micro.h"

#define MICRO micro_one_3
#define MICRO_M 1
#define MICRO_V 3
#include "backend/cpu/kernels/conv/conv_micro.h"

#define MICRO micro_one_4
#define MICRO_M 1
#define MICRO_V 4
#include "backend/cpu/kernels/conv/conv_micro.h"

/* rows: TILE_ROWS or 1; vecs: 1 to TILE_VECS, or to 4 with one row. */
static micro_fn micro_for(int64_t rows, int64_t vecs)
{
    if (vecs <= 1)
        return rows == 1 ? micro_one_1 : micro_rows_1;
    if (vecs == 2)
        return rows == 1 ? micro_one_2 : micro_rows_2;
    if (vecs == 4)
        return micro_one_4;
    return rows == 1 ? micro_one_3 : micro_rows_3;
}

/* ---- storing ------------------------------------------------------------------------------- */

struct job {
    const struct conv *v;
    const struct tiles *t;
    struct conv_band band;
    const float *image; /* planes of the band's first image */
    int64_t image_step;
    const float *weights;
    const int64_t *offset;
    int64_t vecs, panels; /* of an item's positions */
    int64_t row_tasks, col_tasks;
    int64_t large; /* of col_tasks, the first ones */
    char *layout;  /* scratch: planes, then offsets of taps; per worker if they have their own */
    char *own;     /* tiles and tails, per worker */
};

/* Positions of a panel that are outputs: `count` of them from position `at` of the panel on go to
 * element `to` of the channel. */
struct run {
    int32_t at, count;
    int64_t to;
};

struct columns {
    int64_t first, vecs, count; /* positions, of which those after the last output are left out */
    int32_t runs;
    struct run run[TILE_COLS];
};

/* Panel j of the positions. Vectors are shared out evenly. */
static void find_columns(const struct job *job, int64_t j, struct columns *c)
{
    int64_t from = job->vecs * j / job->panels, end = job->vecs * (j + 1) / job->panels;

    c->first = from * VEC_LANES;
    c->vecs = end - from;
    c->count = cpu_min_i64(c->vecs * VEC_LANES, job->band.positions - c->first);
}

static void add_run(struct columns *c, int64_t at, int64_t count, int64_t to)
{
    struct run *before = c->runs > 0 ? &c->run[c->runs - 1] : NULL;

    if (before && before->at + before->count == at && before->to + before->count == to)
        before->count += (int32_t)count; /* rows without gaps are one run */
    else
        c->run[c->runs++] = (struct run){(int32_t)at, (int32_t)count, to};
}

static void find_runs(const struct job *job, struct columns *c)
{
    const struct conv_band *b = &job->band;
    const int64_t *dim = job->v->out_dim;
    int64_t row = c->first / b->grid[2], x = c->first % b->grid[2], n;
    int64_t y = row % b->grid[1], z = row / b->grid[1];

    c->runs = 0;
    for (int64_t at = 0; at < c->count; at += n) {
        n = cpu_min_i64(b->grid[2] - x, c->count - at);
        if (x < b->out[2] && y < b->out[1])
            add_run(c, at, cpu_min_i64(n, b->out[2] - x),
                    ((b->first[0] + z) * dim[1] + b->first[1] + y) * dim[2] + b->first[2] + x);
        x = 0;
        if (++y == b->grid[1]) {
            y = 0;
            z++;
        }
    }
}

/* f32, and an activation that is none or relu: straight to the output. */
static void store_plain(const struct conv *v, const struct columns *c, const float *sum, float bias,
                        int64_t channel_at)
{
    for (int32_t i = 0; i < c->runs; i++) {
        const struct run *r = &c->run[i];
        int32_t j = 0;
        for (; j + VEC_LANES <= r->count; j += VEC_LANES)
            conv_store_vec(v, *(const loose_f32 *)(sum + r->at + j), bias, channel_at + r->to + j,
                           VEC_LANES);
        if (j < r->count)
            conv_store_vec(v, load_some(sum + r->at + j, r->count - j), bias,
                           channel_at + r->to + j, r->count - j);
    }
}

/* The sums of one panel of rows and one of positions. */
static void store_panel(const struct job *job, int64_t image, int64_t group, int64_t panel,
                        const struct columns *c, const float *tile)
{
    const struct conv *v = job->v;
    int64_t row = panel * job->t->rows, plane = windows_volume(v->out_dim);
    int64_t rows = cpu_min_i64(job->t->rows, v->m - row);
    bool plain = conv_stores_plain(v);

    for (int64_t i = 0; i < rows; i++) {
        int64_t co = group * v->m + row + i;
        int64_t at = ((job->band.image + image) * v->groups * v->m + co) * plane;
        const float *sum = tile + i * TILE_COLS;
        if (plain) {
            store_plain(v, c, sum, conv_plain_bias(v, co), at);
            continue;
        }
        for (int32_t k = 0; k < c->runs; k++)
            conv_store_row(v, sum + c->run[k].at, at + c->run[k].to, 1, c->run[k].count);
    }
}

/* ---- running ------------------------------------------------------------------------------- */

/* Positions that an image in place has no whole vectors for: a copy with zeros after them. */
static const float *copy_tail(const struct stretch *s, const float *x, const struct columns *c,
                              float *to)
{
    int64_t width = c->vecs * VEC_LANES;

    for (int64_t i = 0; i < s->channels; i++) {
        memcpy(to + i * width, x + i * s->channel, (size_t)c->count * sizeof *to);
        memset(to + i * width + c->count, 0, (size_t)(width - c->count) * sizeof *to);
    }
    return to;
}

struct task {
    int64_t image, group;
    int64_t row, row_end; /* panels */
    int64_t col, col_end;
    float *tile, *tail;
};

/* What the inner loop reads: a stretch of channels of one panel of positions. */
struct source {
    struct stretch s;
    const float *x;
    micro_fn micro;
};

static void find_source(const struct job *job, const struct task *k, int64_t stretch,
                        const struct columns *c, struct source *from)
{
    const struct conv *v = job->v;
    const struct tiles *t = job->t;
    int64_t first = stretch * t->stretch, item = k->image * v->groups + k->group;

    from->s = (struct stretch){cpu_min_i64(t->stretch, v->ch - first), t->taps, job->band.channel,
                               job->offset};
    from->x = job->image + (item * v->ch + first) * job->band.channel + c->first;
    from->micro = micro_for(t->rows, c->vecs);
    if (t->planes.in_place && c->count < c->vecs * VEC_LANES) {
        from->x = copy_tail(&from->s, from->x, c, k->tail);
        from->s.channel = c->vecs * VEC_LANES;
    }
}

static const float *weights_at(const struct job *job, const struct task *k, int64_t panel,
                               int64_t stretch)
{
    const struct tiles *t = job->t;
    int64_t at = (k->group * t->row_panels + panel) * t->k + stretch * t->stretch * t->taps;
    return job->weights + at * t->rows;
}

/* Several stretches: sums are added up in tiles; a panel of positions stays in the first cache. */
static void run_stretches(const struct job *job, const struct task *k)
{
    const struct tiles *t = job->t;

    for (int64_t s = 0; s < t->stretches; s++) {
        float *tile = k->tile;
        for (int64_t j = k->col; j < k->col_end; j++) {
            struct columns c;
            struct source from;
            find_columns(job, j, &c);
            find_source(job, k, s, &c, &from);
            if (s + 1 == t->stretches)
                find_runs(job, &c);
            for (int64_t p = k->row; p < k->row_end; p++, tile += t->rows * TILE_COLS) {
                from.micro(&from.s, weights_at(job, k, p, s), from.x, tile, s > 0);
                if (s + 1 == t->stretches)
                    store_panel(job, k->image, k->group, p, &c, tile);
            }
        }
    }
}

/* One stretch: some panels of positions at a time, so that longer runs of results are written. */
static void run_single(const struct job *job, const struct task *k)
{
    enum { TOGETHER = 4 };
    struct columns c[TOGETHER];
    struct source from[TOGETHER];

    for (int64_t j = k->col; j < k->col_end; j += TOGETHER) {
        int64_t n = cpu_min_i64(TOGETHER, k->col_end - j);
        for (int64_t i = 0; i < n; i++) {
            find_columns(job, j + i, &c[i]);
            find_runs(job, &c[i]);
            find_source(job, k, 0, &c[i], &from[i]); /* only the last panel has a tail */
        }
        for (int64_t p = k->row; p < k->row_end; p++) {
            const float *a = weights_at(job, k, p, 0);
            for (int64_t i = 0; i < n; i++) {
                from[i].micro(&from[i].s, a, from[i].x, k->tile, false);
                store_panel(job, k->image, k->group, p, &c[i], k->tile);
            }
        }
    }
}

/* Panels of positions of task number `at`: large tasks first, then smaller ones, which balance
 * workers that began late. */
static int64_t small_task(const struct tiles *t)
{
    return conv_up(t->col_task, 3);
}

static void count_cols(struct job *job)
{
    const struct tiles *t = job->t;

    job->large = job->panels * 3 / 4 / t->col_task;
    job->col_tasks = job->large + conv_up(job->panels - job->large * t->col_task, small_task(t));
}

static void find_cols(const struct job *job, int64_t at, struct task *k)
{
    const struct tiles *t = job->t;
    int64_t size = at < job->large ? t->col_task : small_task(t);

    k->col = at < job->large ? at * size : job->large * t->col_task + (at - job->large) * size;
    k->col_end = cpu_min_i64(k->col + size, job->panels);
}

static void run_tasks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *job = ctx;
    const struct tiles *t = job->t;
    int64_t item_tasks = job->row_tasks * job->col_tasks;

    for (int64_t at = begin; at < end; at++) {
        int64_t item = at / item_tasks, rest = at % item_tasks;
        struct task k = {.image = item / job->v->groups, .group = item % job->v->groups};
        k.row = rest / job->col_tasks * t->row_task;
        k.row_end = cpu_min_i64(k.row + t->row_task, t->row_panels);
        find_cols(job, rest % job->col_tasks, &k);
        k.tile = (float *)(job->own + worker * (t->tile_bytes + t->tail_bytes));
        k.tail = k.tile + t->tile_bytes / 4;
        if (t->stretches > 1)
            run_stretches(job, &k);
        else
            run_single(job, &k);
    }
}

/* ---- one row at a time --------------------------------------------------------------------- */

/* Groups of few output channels: a row of outputs needs no separate tile, and its place need not be
 * looked up. */
struct line {
    int64_t image, group, row; /* output channel `row` of the group */
    int64_t z, y;              /* in the band */
};

static struct line find_line(const struct job *job, int64_t at)
{
    const struct conv_band *b = &job->band;
    struct line l = {.y = at % b->out[1], .z = at / b->out[1] % b->out[0]};

    at /= b->out[1] * b->out[0];
    l.row = at % job->v->m;
    l.group = at / job->v->m % job->v->groups;
    l.image = at / (job->v->m * job->v->groups);
    return l;
}

static void next_line(const struct job *job, struct line *l)
{
    if (++l->y < job->band.out[1])
        return;
    l->y = 0;
    if (++l->z < job->band.out[0])
        return;
    l->z = 0;
    if (++l->row < job->v->m)
        return;
    l->row = 0;
    if (++l->group < job->v->groups)
        return;
    l->group = 0;
    l->image++;
}

static void run_line(const struct job *job, const struct line *l)
{
    const struct conv *v = job->v;
    const struct conv_band *b = &job->band;
    const struct stretch s = {v->ch, job->t->taps, b->channel, job->offset};
    const float *a = job->weights + (l->group * v->m + l->row) * job->t->k;
    const float *x = job->image + (l->image * v->groups + l->group) * v->ch * b->channel +
                     (l->z * b->grid[1] + l->y) * b->grid[2];
    int64_t row = (b->first[0] + l->z) * v->out_dim[1] + b->first[1] + l->y;
    struct columns c; /* only its run matters here */

    c.runs = 1;
    for (int64_t at = 0, n; at < b->out[2]; at += n * VEC_LANES) {
        _Alignas(64) float tile[LINE_VECS * VEC_LANES];
        int64_t left = b->out[2] - at;
        n = left > (LINE_VECS - 1) * VEC_LANES ? LINE_VECS : conv_up(left, VEC_LANES);
        c.run[0].at = 0;
        c.run[0].count = (int32_t)cpu_min_i64(n * VEC_LANES, left);
        c.run[0].to = row * v->out_dim[2] + b->first[2] + at;
        micro_for(1, n)(&s, a, x + at, tile, false);
        store_panel(job, l->image, l->group, l->row, &c, tile);
    }
}

static void run_lines(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *job = ctx;
    struct line l = find_line(job, begin);

    (void)worker;
    for (int64_t at = begin; at < end; at++, next_line(job, &l))
        run_line(job, &l);
}

/* Whether v is done so. An image in place has nothing after its last row that may be read. */
static bool runs_lines(const struct tiles *t)
{
    return t->rows == 1 && !t->planes.in_place;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Lays out a part and finds out about its positions. */
static void prepare_part(struct job *job, int64_t part, struct pool *pool, char *layout)
{
    const struct conv *v = job->v;
    const struct tiles *t = job->t;
    float *planes = (float *)layout;
    int64_t *offset = (int64_t *)(layout + t->image_bytes);

    job->band = conv_band_at(v, &t->planes, part);
    job->image = t->planes.in_place ? v->src->data : planes;
    job->offset = offset;
    conv_planes_fill(v, &t->planes, &job->band, pool, planes);
    conv_tiles_offsets(v, t, &job->band, offset);
    job->vecs = conv_up(job->band.positions, VEC_LANES);
    job->panels = conv_panels(job->band.positions);
    job->row_tasks = conv_up(t->row_panels, t->row_task);
    count_cols(job);
}

/* A part that all workers share. */
static void run_part(struct job *job, int64_t part, struct pool *pool)
{
    const struct conv *v = job->v;
    const struct tiles *t = job->t;

    prepare_part(job, part, pool, job->layout);
    if (runs_lines(t)) {
        const int64_t *out = job->band.out;
        cpu_for(pool, job->band.images * v->groups * v->m * out[0] * out[1],
                cpu_max_i64(1, 65536 / (out[2] * t->k)), run_lines, job);
        return;
    }
    double work = (double)t->row_task * (double)t->col_task * TILE_COLS * (double)(t->rows * t->k);
    cpu_for(pool, job->band.images * v->groups * job->row_tasks * job->col_tasks,
            (int64_t)(TASK_LEAST / (work + 1)) + 1, run_tasks, job);
}

/* Parts that are one worker's. */
static void run_own(void *ctx, int64_t begin, int64_t end, int worker)
{
    struct job job = *(const struct job *)ctx;
    char *layout = job.layout + worker * (job.t->image_bytes + job.t->tap_bytes);

    for (int64_t part = begin; part < end; part++) {
        prepare_part(&job, part, NULL, layout);
        run_tasks(&job, 0, job.row_tasks * job.col_tasks, worker);
    }
}

void conv_rows_run(const struct conv *v, const struct tiles *t, const struct conv_room *room,
                   struct pool *pool)
{
    struct job job = {
        .v = v, .t = t, .weights = room->weights, .layout = room->layout, .own = room->own};
    int64_t parts = conv_planes_parts(v, &t->planes);

    if (t->own) {
        cpu_for(pool, parts, 1, run_own, &job);
        return;
    }
    for (int64_t part = 0; part < parts; part++)
        run_part(&job, part, pool);
}
