/* conv_lanes.c: convolutions of small images, with output channels in the lanes of vectors.
 *
 * Where an image has few positions, vectors of positions (conv_tiles_run.c) are filled badly: 49 of
 * 64 lanes, and fewer where rows of a plane are padded. Channels are many and round in number. So
 *
 *                    weights: k rows of LANE_VECS vectors of channels
 *     positions: in  sums
 *     every lane
 *
 * with two runs of neighbouring positions as rows. A panel of weights is read once for all
 * positions of a task; in the end sums are turned around, a square of vectors at a time, and stored
 * as rows of positions. */
#include "backend/cpu/kernels/conv/conv_store.h"
#include "backend/cpu/kernels/conv/conv_tiles_core.h"

struct job {
    const struct conv *v;
    const struct tiles *t;
    const struct conv_room *room;
    struct conv_band band;
    struct lines lines;
    const float *image; /* planes of the band's first image */
    const int64_t *offset;
    int64_t pairs;     /* of runs, in an item */
    int64_t col_tasks; /* of an item and panel */
};

struct task {
    int64_t image, group, panel;
    int64_t run, run_end;
    float *sums; /* a row of LANE_CHANNELS for each position of these runs */
};

/* ---- sums ---------------------------------------------------------------------------------- */

/* Some channels, each with all taps. */
struct stretch {
    int64_t channels, taps;
    int64_t channel;       /* elements from one channel to the next */
    const int64_t *offset; /* of each tap */
    const float *weights;
    const float *ahead; /* weights wanted later, a line of the cache for each product */
};

/* first + second positions; both are constants wherever this is used. */
static inline __attribute__((always_inline)) void micro(int first, int second,
                                                        const struct stretch *s, const float *x0,
                                                        const float *x1, float *to, bool add)
{
    vec_f32 sum[2 * LANE_RUN][LANE_VECS];
    const float *w = s->weights, *ahead = s->ahead;

    GEMM_UNROLL
    for (int i = 0; i < first + second; i++) {
        GEMM_UNROLL
        for (int j = 0; j < LANE_VECS; j++)
            sum[i][j] = (vec_f32){0};
    }
    for (int64_t c = 0; c < s->channels; c++, x0 += s->channel, x1 += s->channel) {
        for (int64_t t = 0; t < s->taps; t++, w += LANE_CHANNELS, ahead += VEC_LANES) {
            const float *a = x0 + s->offset[t], *b = x1 + s->offset[t];
            vec_f32 wv[LANE_VECS];
            __builtin_prefetch(ahead, 0, 2);
            GEMM_UNROLL
            for (int j = 0; j < LANE_VECS; j++)
                wv[j] = ((const loose_f32 *)w)[j];
            GEMM_UNROLL
            for (int i = 0; i < first + second; i++) {
                vec_f32 xv = (i < first ? a[i] : b[i - first]) - (vec_f32){0};
                GEMM_UNROLL
                for (int j = 0; j < LANE_VECS; j++)
                    sum[i][j] = F32_MADD(wv[j], xv, sum[i][j]);
            }
        }
    }
    GEMM_UNROLL
    for (int i = 0; i < first + second; i++) {
        vec_f32 *row = (vec_f32 *)(to + i * LANE_CHANNELS);
        GEMM_UNROLL
        for (int j = 0; j < LANE_VECS; j++)
            row[j] = add ? row[j] + sum[i][j] : sum[i][j];
    }
}

static void micro_pair(const struct stretch *s, const float *x0, const float *x1, float *to,
                       bool add)
{
    micro(LANE_RUN, LANE_RUN, s, x0, x1, to, add);
}

static void micro_run(const struct stretch *s, const float *x, float *to, bool add)
{
    micro(LANE_RUN, 0, s, x, x, to, add);
}

static void micro_one(const struct stretch *s, const float *x, float *to, bool add)
{
    micro(1, 0, s, x, x, to, add);
}

/* Where a run begins, in a channel of the planes. */
static int64_t run_place(const struct job *job, int64_t run)
{
    const struct lines *l = &job->lines;
    int64_t line = run / l->runs, at = run % l->runs * l->run;

    return line / job->band.out[1] * job->band.grid[1] * job->band.grid[2] +
           line % job->band.out[1] * job->band.grid[2] + cpu_min_i64(at, l->length - l->run);
}

/* The first LANE_VECS pairs of runs fetch the weights of the stretch after this one: the next
 * panel's follow this one's. */
static void add_stretch(const struct job *job, const struct task *k, int64_t first, const float *x)
{
    const struct tiles *t = job->t;
    int64_t panel = k->group * t->row_panels + k->panel, run = k->run;
    struct stretch s = {.channels = cpu_min_i64(t->stretch, job->v->ch - first),
                        .taps = t->taps,
                        .channel = job->band.channel,
                        .offset = job->offset,
                        .weights =
                            job->room->weights + (panel * t->k + first * t->taps) * LANE_CHANNELS};
    int64_t part = s.channels * s.taps * VEC_LANES, parts = 0;
    float *to = k->sums;

    s.ahead = s.weights;
    if (job->lines.run == 1) {
        for (; run < k->run_end; run++, to += LANE_CHANNELS)
            micro_one(&s, x + run_place(job, run), to, first > 0);
        return;
    }
    for (; run + 1 < k->run_end; run += 2, to += 2 * LANE_RUN * LANE_CHANNELS) {
        s.ahead = s.weights + (parts < LANE_VECS ? part * (LANE_VECS + parts++) : 0);
        micro_pair(&s, x + run_place(job, run), x + run_place(job, run + 1), to, first > 0);
    }
    s.ahead = s.weights;
    if (run < k->run_end)
        micro_run(&s, x + run_place(job, run), to, first > 0);
}

/* ---- storing ------------------------------------------------------------------------------- */

/* Drops rows that the last run of a line has in common with the one before it; how many are left.
 */
static int64_t drop_common(const struct job *job, const struct task *k)
{
    const struct lines *l = &job->lines;
    int64_t common = l->runs * l->run - l->length, left = 0;

    if (common == 0)
        return (k->run_end - k->run) * l->run;
    for (int64_t run = k->run; run < k->run_end; run++) {
        int64_t skip = run % l->runs == l->runs - 1 ? common : 0, n = l->run - skip;
        memmove(k->sums + left * LANE_CHANNELS,
                k->sums + ((run - k->run) * l->run + skip) * LANE_CHANNELS,
                (size_t)(n * LANE_CHANNELS) * sizeof *k->sums);
        left += n;
    }
    return left;
}

#if defined(__AVX512F__)
#define ZIP_LOW(a, b) \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define ZIP_HIGH(a, b) \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif defined(__AVX2__)
#define ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

/* A square, turned around: its halves are zipped as often as VEC_LANES can be halved. */
static inline __attribute__((always_inline)) void turn(vec_f32 *row)
{
    GEMM_UNROLL
    for (int left = VEC_LANES; left > 1; left /= 2) {
        vec_f32 zipped[VEC_LANES];
        GEMM_UNROLL
        for (int i = 0; i < VEC_LANES / 2; i++) {
            zipped[2 * i] = ZIP_LOW(row[i], row[i + VEC_LANES / 2]);
            zipped[2 * i + 1] = ZIP_HIGH(row[i], row[i + VEC_LANES / 2]);
        }
        GEMM_UNROLL
        for (int i = 0; i < VEC_LANES; i++)
            row[i] = zipped[i];
    }
}

/* A square of sums: some channels from `channel` on, n positions from `at` on. */
static void store_square(const struct conv *v, const float *sums, int64_t channel, int64_t channels,
                         int64_t at, int64_t n)
{
    int64_t plane = windows_volume(v->out_dim), co = channel % (v->groups * v->m);
    bool plain = conv_stores_plain(v);
    vec_f32 row[VEC_LANES];

    GEMM_UNROLL
    for (int i = 0; i < VEC_LANES; i++)
        row[i] = *(const vec_f32 *)(sums + i * LANE_CHANNELS);
    turn(row);
    for (int64_t i = 0; i < channels; i++) {
        int64_t to = (channel + i) * plane + at;
        if (plain)
            conv_store_vec(v, row[i], conv_plain_bias(v, co + i), to, n);
        else
            conv_store_row(v, &row[i], to, 1, n);
    }
}

static void store_task(const struct job *job, const struct task *k)
{
    const struct conv *v = job->v;
    const struct conv_band *b = &job->band;
    const struct lines *l = &job->lines;
    int64_t count = drop_common(job, k), row = k->panel * LANE_CHANNELS;
    int64_t rows = cpu_min_i64(LANE_CHANNELS, v->m - row);
    int64_t at = (b->first[0] * v->out_dim[1] + b->first[1]) * v->out_dim[2] + b->first[2] +
                 k->run / l->runs * l->length + k->run % l->runs * l->run;
    int64_t channel = ((b->image + k->image) * v->groups + k->group) * v->m + row;

    for (int64_t c = 0; c < rows; c += VEC_LANES)
        for (int64_t i = 0; i < count; i += VEC_LANES)
            store_square(v, k->sums + i * LANE_CHANNELS + c, channel + c,
                         cpu_min_i64(VEC_LANES, rows - c), at + i,
                         cpu_min_i64(VEC_LANES, count - i));
}

/* ---- running ------------------------------------------------------------------------------- */

static void run_tasks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *job = ctx;
    const struct conv *v = job->v;
    const struct tiles *t = job->t;
    int64_t runs = job->lines.count * job->lines.runs;

    for (int64_t at = begin; at < end; at++) {
        int64_t col = at % job->col_tasks * t->col_task, rest = at / job->col_tasks;
        struct task k = {.panel = rest % t->row_panels,
                         .group = rest / t->row_panels % v->groups,
                         .image = rest / t->row_panels / v->groups,
                         .run = 2 * col,
                         .run_end = cpu_min_i64(2 * (col + t->col_task), runs),
                         .sums = (float *)(job->room->own + worker * t->tile_bytes)};
        const float *x = job->image + (k.image * v->groups + k.group) * v->ch * job->band.channel;
        for (int64_t c = 0; c < v->ch; c += t->stretch)
            add_stretch(job, &k, c, x + c * job->band.channel);
        store_task(job, &k);
    }
}

static void run_part(struct job *job, int64_t part, struct pool *pool)
{
    const struct conv *v = job->v;
    const struct tiles *t = job->t;
    float *planes = (float *)job->room->layout;
    int64_t *offset = (int64_t *)(job->room->layout + t->image_bytes);

    job->band = conv_band_at(v, &t->planes, part);
    job->lines = conv_lines(&t->planes, &job->band);
    job->image = t->planes.in_place ? v->src->data : planes;
    job->offset = offset;
    conv_planes_fill(v, &t->planes, &job->band, pool, planes);
    conv_tiles_offsets(v, t, &job->band, offset);
    job->pairs = conv_up(job->lines.count * job->lines.runs, 2);
    job->col_tasks = conv_up(job->pairs, t->col_task);
    cpu_for(pool, job->band.images * v->groups * t->row_panels * job->col_tasks, 1, run_tasks, job);
}

void conv_lanes_run(const struct conv *v, const struct tiles *t, const struct conv_room *room,
                    struct pool *pool)
{
    struct job job = {.v = v, .t = t, .room = room};
    int64_t parts = conv_planes_parts(v, &t->planes);

    for (int64_t part = 0; part < parts; part++)
        run_part(&job, part, pool);
}
