/* conv_tiles.c: convolutions as products of weights with planes (conv_planes.h).
 *
 *     for each part of the images: lay it out as planes
 *         for each task (some rows of an item's outputs, some of its positions), in parallel
 *             for each stretch of channels
 *                 for each panel of positions: for each panel of rows: the inner loop
 *             finish the sums and store them, while they are in the cache
 *
 * Rows are output channels, an item is a group of an image. The inner loop (conv_micro.h) reads
 * weights from panels, a few rows side by side for each tap, and positions from planes, at any
 * alignment. Weights that do not change are packed when they are loaded. */
#include "backend/cpu/kernels/conv_tiles.h"
#include "backend/cpu/kernels/gemm_vec.h"
#include "backend/cpu/kernels/row.h"

#if defined(__AVX512F__) || defined(__aarch64__)
enum { TILE_ROWS = 8, TILE_VECS = 3 };
#elif defined(__AVX2__)
enum { TILE_ROWS = 4, TILE_VECS = 3 };
#else
enum { TILE_ROWS = 4, TILE_VECS = 2 };
#endif

enum {
    VEC_LANES = GEMM_VEC / 4,
    TILE_COLS = TILE_VECS * VEC_LANES,
    STRETCH = 256,        /* products between two additions to the sums in memory, about */
    TASKS = 32,           /* tasks that keep a machine busy */
    TASK_LEAST = 1 << 18, /* products worth a task */
    TASK_PANELS = 128,    /* panels of sums that a task may hold */
};

typedef vec_f32 loose_f32 __attribute__((aligned(4), may_alias));

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
#include "backend/cpu/kernels/conv_micro.h"

#define MICRO micro_rows_2
#define MICRO_M TILE_ROWS
#define MICRO_V 2
#include "backend/cpu/kernels/conv_micro.h"

#define MICRO micro_rows_3
#define MICRO_M TILE_ROWS
#define MICRO_V 3
#include "backend/cpu/kernels/conv_micro.h"

#define MICRO micro_one_1
#define MICRO_M 1
#define MICRO_V 1
#include "backend/cpu/kernels/conv_micro.h"

#define MICRO micro_one_2
#define MICRO_M 1
#define MICRO_V 2
#include "backend/cpu/kernels/conv_micro.h"

#define MICRO micro_one_3
#define MICRO_M 1
#define MICRO_V 3
#include "backend/cpu/kernels/conv_micro.h"

static micro_fn micro_for(int64_t rows, int64_t vecs)
{
    static const micro_fn many[] = {micro_rows_1, micro_rows_2, micro_rows_3};
    static const micro_fn one[] = {micro_one_1, micro_one_2, micro_one_3};

    return (rows == 1 ? one : many)[vecs - 1];
}

/* ---- sizes --------------------------------------------------------------------------------- */

static int64_t up(int64_t x, int64_t by)
{
    return (x + by - 1) / by;
}

/* Everything that follows from shapes. */
struct tiles {
    struct conv_planes planes;
    int64_t rows;       /* of a panel: TILE_ROWS, or 1 */
    int64_t row_panels; /* of a group */
    int64_t taps, k;    /* of a channel; of an output */
    int64_t stretch;    /* channels of each but the last */
    int64_t stretches;
    int64_t row_task;    /* panels of a task */
    int64_t col_task;    /* the same, of positions, in a whole part */
    int64_t image_bytes; /* scratch: the planes */
    int64_t pack_bytes;  /* panels of weights */
    int64_t tap_bytes;   /* offsets of taps */
    int64_t tile_bytes;  /* sums, per worker */
    int64_t tail_bytes;  /* a panel of positions, per worker */
};

static int64_t panels_of(int64_t positions)
{
    return up(up(positions, VEC_LANES), TILE_VECS);
}

/* Tasks of equal size: enough of them, if there is the work for it, and small enough ones. */
static void cut_tasks(const struct conv *v, struct tiles *t)
{
    struct conv_band b = conv_band_at(v, &t->planes, 0);
    double panel = (double)t->rows * TILE_COLS * (double)t->k; /* products */
    int64_t cols = panels_of(b.positions), items = b.images * v->groups;
    double all = panel * (double)t->row_panels * (double)cols * (double)items;
    double want = all / TASKS;

    if (want < TASK_LEAST)
        want = TASK_LEAST;
    t->row_task = t->row_panels;
    t->col_task = cols;
    while (t->row_task * t->col_task > 1 &&
           (panel * (double)(t->row_task * t->col_task) > want * 1.5 ||
            t->row_task * t->col_task > TASK_PANELS)) {
        if (t->col_task > 1 &&
            (t->col_task * TILE_COLS >= t->row_task * t->rows || t->row_task == 1))
            t->col_task = up(t->col_task, 2);
        else
            t->row_task = up(t->row_task, 2);
    }
}

/* Panels of weights: groups, each in panels of rows, each with all its k. */
static int64_t panels_bytes(const struct conv *v, const struct tiles *t)
{
    return gemm_up(v->groups * t->row_panels * t->rows * t->k * 4, 64);
}

/* A panel of one row is the row itself. */
static bool packs_weights(const struct conv *v, const struct tiles *t)
{
    return t->rows > 1 || v->w->dtype != RLX_DTYPE_f32;
}

static bool make_tiles(const struct conv *v, struct tiles *t)
{
    *t = (struct tiles){0};
    if (v->ch < 1 || !conv_planes_make(v, &t->planes))
        return false;
    t->rows = v->m < CONV_DIRECT_ROWS ? 1 : TILE_ROWS;
    t->row_panels = up(v->m, t->rows);
    t->taps = windows_volume(v->kernel);
    t->k = t->taps * v->ch;
    t->stretch = cpu_min_i64(v->ch, up(STRETCH, t->taps));
    t->stretches = up(v->ch, t->stretch);
    cut_tasks(v, t);
    int64_t held = t->stretches > 1 ? t->row_task * t->col_task : 1;
    t->tile_bytes = held * t->rows * TILE_COLS * 4;
    t->tile_bytes = gemm_up(t->tile_bytes, 64);
    t->image_bytes = gemm_up(conv_planes_size(v, &t->planes) * 4, 64);
    t->tap_bytes = gemm_up(t->taps * 8, 64);
    t->tail_bytes = t->planes.in_place ? gemm_up(t->stretch * TILE_COLS * 4, 64) : 0;
    if (packs_weights(v, t) && !v->w->packed)
        t->pack_bytes = panels_bytes(v, t);
    return true;
}

bool conv_tiles_fit(const struct conv *v)
{
    struct tiles t;
    return make_tiles(v, &t);
}

uint64_t conv_tiles_scratch(const struct conv *v, const struct pool *pool)
{
    struct tiles t;

    if (!make_tiles(v, &t))
        return 0;
    int64_t shared = t.image_bytes + t.pack_bytes + t.tap_bytes;
    return (uint64_t)(shared + gemm_workers(pool) * (t.tile_bytes + t.tail_bytes));
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

static void pack_all(const struct conv *v, const struct tiles *t, struct pool *pool, float *to)
{
    struct pack_job job = {v, t, to};

    cpu_for(pool, v->groups * t->row_panels, cpu_max_i64(1, 16384 / (t->rows * t->k)), pack_panels,
            &job);
}

/* A packed copy begins with this. */
struct packed_head {
    uint32_t special; /* a weight is an infinity or a NaN */
    uint32_t unused[15];
};

struct cpu_pack conv_tiles_pack_size(const struct conv *v)
{
    struct tiles t;

    if (!make_tiles(v, &t) || !packs_weights(v, &t) || v->groups > UINT32_MAX)
        return (struct cpu_pack){0};
    uint64_t head = sizeof(struct packed_head);
    return (struct cpu_pack){.bytes = head + (uint64_t)panels_bytes(v, &t),
                             .layout = (uint64_t)0x434f4e56 << 32 | (uint64_t)v->groups};
}

void conv_tiles_pack(const struct conv *v, struct pool *pool, void *to)
{
    struct packed_head *head = to;
    struct tiles t;

    if (!make_tiles(v, &t))
        return;
    *head = (struct packed_head){.special = conv_any_special(v->w, pool)};
    pack_all(v, &t, pool, (float *)(head + 1));
}

bool conv_tiles_packed_special(const struct conv *v)
{
    const struct packed_head *head = v->w->packed;
    return head->special != 0;
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
    char *own; /* scratch, per worker */
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

static void find_runs(const struct job *job, struct columns *c)
{
    const struct conv_band *b = &job->band;
    const int64_t *dim = job->v->out_dim;
    int64_t n;

    c->runs = 0;
    for (int64_t at = 0; at < c->count; at += n) {
        int64_t q = c->first + at, x = q % b->grid[2], y = q / b->grid[2] % b->grid[1];
        int64_t z = q / (b->grid[2] * b->grid[1]);
        n = cpu_min_i64(b->grid[2] - x, c->count - at);
        if (x >= b->out[2] || y >= b->out[1])
            continue;
        struct run *r = &c->run[c->runs];
        r->at = (int32_t)at;
        r->count = (int32_t)cpu_min_i64(n, b->out[2] - x);
        r->to = ((b->first[0] + z) * dim[1] + b->first[1] + y) * dim[2] + b->first[2] + x;
        struct run *before = r - 1; /* rows without gaps are one run */
        if (c->runs > 0 && before->at + before->count == r->at &&
            before->to + before->count == r->to)
            before->count += r->count;
        else
            c->runs++;
    }
}

/* f32, and an activation that is none or relu: straight to the output. */
static void store_plain(const struct conv *v, const struct columns *c, const float *sum, float bias,
                        int64_t channel_at)
{
    const bool relu = v->act == RLX_OP_relu;

    for (int32_t i = 0; i < c->runs; i++) {
        const struct run *r = &c->run[i];
        const float *restrict from = sum + r->at;
        float *to = (float *)v->out->data + channel_at + r->to;
        if (v->residual) {
            const float *add = (const float *)v->residual->data + channel_at + r->to;
            CPU_INDEPENDENT
            for (int32_t j = 0; j < r->count; j++) {
                float s = from[j] + bias + add[j];
                to[j] = relu && s < 0 ? 0 : s;
            }
        } else if (relu) {
            for (int32_t j = 0; j < r->count; j++)
                to[j] = from[j] + bias < 0 ? 0 : from[j] + bias;
        } else {
            for (int32_t j = 0; j < r->count; j++)
                to[j] = from[j] + bias;
        }
    }
}

/* The sums of one panel of rows and one of positions. */
static void store_panel(const struct job *job, int64_t image, int64_t group, int64_t panel,
                        const struct columns *c, const float *tile)
{
    const struct conv *v = job->v;
    int64_t row = panel * job->t->rows, plane = windows_volume(v->out_dim);
    int64_t rows = cpu_min_i64(job->t->rows, v->m - row);
    bool plain = v->out->dtype == RLX_DTYPE_f32 && (v->act == RLX_OP_none || v->act == RLX_OP_relu);

    for (int64_t i = 0; i < rows; i++) {
        int64_t co = group * v->m + row + i;
        int64_t at = ((job->band.image + image) * v->groups * v->m + co) * plane;
        const float *sum = tile + i * TILE_COLS;
        if (plain) {
            float bias = v->bias ? ((const float *)v->bias->data)[co] : -0.0f;
            store_plain(v, c, sum, bias, at);
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

/* One stretch of one panel of positions, for all rows of the task. */
static void run_columns(const struct job *job, const struct task *k, int64_t stretch,
                        struct columns *c, float *tile)
{
    const struct conv *v = job->v;
    const struct tiles *t = job->t;
    int64_t first = stretch * t->stretch, item = k->image * v->groups + k->group;
    struct stretch s = {cpu_min_i64(t->stretch, v->ch - first), t->taps, job->band.channel,
                        job->offset};
    const float *x = job->image + (item * v->ch + first) * s.channel + c->first;
    micro_fn micro = micro_for(t->rows, c->vecs);

    if (t->planes.in_place && c->count < c->vecs * VEC_LANES) {
        x = copy_tail(&s, x, c, k->tail);
        s.channel = c->vecs * VEC_LANES;
    }
    for (int64_t p = k->row; p < k->row_end; p++) {
        const float *a =
            job->weights + ((k->group * t->row_panels + p) * t->k + first * t->taps) * t->rows;
        micro(&s, a, x, tile, stretch > 0);
        if (stretch + 1 == t->stretches)
            store_panel(job, k->image, k->group, p, c, tile);
        if (t->stretches > 1)
            tile += t->rows * TILE_COLS;
    }
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
        k.col = rest % job->col_tasks * t->col_task;
        k.row_end = cpu_min_i64(k.row + t->row_task, t->row_panels);
        k.col_end = cpu_min_i64(k.col + t->col_task, job->panels);
        k.tile = (float *)(job->own + worker * (t->tile_bytes + t->tail_bytes));
        k.tail = k.tile + t->tile_bytes / 4;
        for (int64_t s = 0; s < t->stretches; s++) {
            for (int64_t j = k.col; j < k.col_end; j++) {
                int64_t before = t->stretches > 1 ? (j - k.col) * (k.row_end - k.row) : 0;
                struct columns c;
                find_columns(job, j, &c);
                if (s + 1 == t->stretches)
                    find_runs(job, &c);
                run_columns(job, &k, s, &c, k.tile + before * t->rows * TILE_COLS);
            }
        }
    }
}

static void find_offsets(const struct conv *v, const struct tiles *t, const struct conv_band *b,
                         int64_t *offset)
{
    for (int64_t i = 0; i < t->taps; i++) {
        int64_t tap[3] = {i / (v->kernel[1] * v->kernel[2]), i / v->kernel[2] % v->kernel[1],
                          i % v->kernel[2]};
        offset[i] = conv_tap_offset(v, &t->planes, b, tap);
    }
}

static void run_part(struct job *job, int64_t part, struct pool *pool, float *planes,
                     int64_t *offset)
{
    const struct conv *v = job->v;
    const struct tiles *t = job->t;

    job->band = conv_band_at(v, &t->planes, part);
    job->image = t->planes.in_place ? v->src->data : planes;
    conv_planes_fill(v, &t->planes, &job->band, pool, planes);
    find_offsets(v, t, &job->band, offset);
    job->vecs = up(job->band.positions, VEC_LANES);
    job->panels = panels_of(job->band.positions);
    job->row_tasks = up(t->row_panels, t->row_task);
    job->col_tasks = up(job->panels, t->col_task);
    double work = (double)t->row_task * (double)t->col_task * TILE_COLS * (double)(t->rows * t->k);
    cpu_for(pool, job->band.images * v->groups * job->row_tasks * job->col_tasks,
            (int64_t)(TASK_LEAST / (work + 1)) + 1, run_tasks, job);
}

void conv_tiles_run(const struct conv *v, struct pool *pool, void *scratch)
{
    struct tiles t;

    if (!make_tiles(v, &t))
        return;
    char *at = scratch;
    float *planes = (float *)at;
    float *panels = (float *)(at + t.image_bytes);
    int64_t *offset = (int64_t *)(at + t.image_bytes + t.pack_bytes);
    struct job job = {.v = v, .t = &t, .offset = offset, .weights = v->w->data};

    job.own = (char *)offset + t.tap_bytes;
    if (v->w->packed) {
        job.weights = (const float *)((const struct packed_head *)v->w->packed + 1);
    } else if (packs_weights(v, &t)) {
        pack_all(v, &t, pool, panels);
        job.weights = panels;
    }
    for (int64_t part = 0; part < conv_planes_parts(v, &t.planes); part++)
        run_part(&job, part, pool, planes, offset);
}
