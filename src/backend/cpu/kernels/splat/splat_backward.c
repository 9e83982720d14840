/* splat_backward.c: the gradients of the linear training image of a splat scene
 * (ops-special.md 7.10).
 *
 * Each entry of the lists, a splat in a tile, gathers what its tile's pixels want of it; nobody
 * else writes there. A splat's entries are then added up in the order of the tiles. So the result
 * is the same for any number of threads.
 *
 * A pixel's rays go through the list as when it is drawn, but the hits are kept: from the last to
 * the first they give the light behind each. What a hit wants is linear in a few numbers, and only
 * those are gathered per pixel; with e the nearest point on the ray, in deviations and from the
 * splat's centre, and h = alpha dL/dalpha:
 *
 *     opacity    h             then / opacity
 *     scale      h e^2         per axis
 *     pull       -h e          the gradient of u, the way to the camera: position, rotation
 *     twist      -h t e ray^T  that of the ray in the splat's axes: rotation
 *     colour     T alpha dL */
#include "backend/cpu/kernels/splat/splat_block.h"

enum { OPACITY, SCALE = 1, PULL = 4, TWIST = 7, COLOUR = 16, SUMS = 19 };

/* What a block of rays met, nearest first; a tile uses the rows of its own part of the list. */
struct hits {
    int32_t *entry;
    float *alpha, *before; /* [][SPLAT_BLOCK] alpha, 0: no hit; transmittance in front */
};

struct backward_job {
    const struct cpu_call *c;
    struct splat_canvas s;
    struct splat_scene scene;
    struct splat_shape *shape;
    struct hits hits;
    double *sums;   /* [entries][SUMS] */
    int32_t *first; /* [splats+1] a splat's entries are entry_of[first[i] .. first[i+1]-1] */
    int32_t *entry_of;
    void *room;
    double clip, background[3];
    bool plain;
};

static uint64_t carve(const struct cpu_call *c, struct backward_job *j)
{
    const struct splat_canvas *s = &j->s;
    uint64_t n = (uint64_t)s->count, most = (uint64_t)s->most, at = 0;
    uint64_t row = SPLAT_BLOCK * sizeof(float);
    char *base = c->scratch; /* NULL: only the sum is wanted */
    float *scene = splat_take(base, &at, (uint64_t)splat_scene_floats(s) * sizeof *scene);

    j->room = splat_take(base, &at, splat_make_bytes(s));
    j->shape = splat_take(base, &at, n * sizeof *j->shape);
    j->hits.entry = splat_take(base, &at, most * sizeof *j->hits.entry);
    j->hits.alpha = splat_take(base, &at, most * row);
    j->hits.before = splat_take(base, &at, most * row);
    j->sums = splat_take(base, &at, most * SUMS * sizeof *j->sums);
    j->first = splat_take(base, &at, (n + 1) * sizeof *j->first);
    j->entry_of = splat_take(base, &at, most * sizeof *j->entry_of);
    if (scene)
        splat_scene_at(s, scene, &j->scene);
    return at;
}

/* ---- one tile ------------------------------------------------------------------------------ */

/* A block of pixels: their rays, what is wanted of their colours, and of the light behind the hits
 * that are still to come. */
struct block {
    struct splat_rays rays;
    double r[SPLAT_BLOCK], g[SPLAT_BLOCK], b[SPLAT_BLOCK], behind[SPLAT_BLOCK];
};

static void block_of(const struct backward_job *j, const struct splat_tile *t, int64_t from,
                     int64_t n, struct block *k)
{
    const float *given = j->c->in[7].data;

    memset(k, 0, sizeof *k);
    splat_rays_of(&j->s, &j->scene, t, from, n, &k->rays);
    for (int64_t i = 0; i < n; i++) {
        const float *dl = given + 4 * splat_pixel(&j->s, t, from + i);
        k->r[i] = splat_clamp((double)dl[0], -j->clip, j->clip);
        k->g[i] = splat_clamp((double)dl[1], -j->clip, j->clip);
        k->b[i] = splat_clamp((double)dl[2], -j->clip, j->clip);
        k->behind[i] =
            k->r[i] * j->background[0] + k->g[i] * j->background[1] + k->b[i] * j->background[2];
    }
}

/* Light that is left, and hits that may still come. */
struct progress {
    _Alignas(64) float left[SPLAT_BLOCK];
    int32_t more[SPLAT_BLOCK];
};

/* One more entry's alphas; false: no ray goes on. */
static bool pass_entry(const float *alpha, float threshold, float *before, struct progress *p,
                       struct splat_rays *r)
{
    int32_t open = 0;

    for (int i = 0; i < SPLAT_BLOCK; i++) {
        before[i] = p->left[i];
        p->left[i] *= 1 - alpha[i];
        p->more[i] -= alpha[i] > 0;
    }
    for (int i = 0; i < SPLAT_BLOCK; i++) {
        bool done = p->left[i] < threshold || p->more[i] == 0;
        r->x[i] = done ? 0 : r->x[i];
        r->y[i] = done ? 0 : r->y[i];
        r->z[i] = done ? 0 : r->z[i];
    }
    for (int i = 0; i < SPLAT_BLOCK; i++)
        open |= !(p->left[i] < threshold) && p->more[i] != 0;
    return open;
}

/* What the block's n rays meet of entries start .. end-1; returns how many rows of hits. */
static int64_t trace(const struct backward_job *j, const struct block *k, int64_t n, int64_t start,
                     int64_t end)
{
    int64_t steps = j->c->attr->gaussian_splat_render_backward.max_splat_steps, rows = 0;
    struct splat_rays rays = k->rays;
    struct progress p;
    _Alignas(64) float power[SPLAT_BLOCK];

    for (int i = 0; i < SPLAT_BLOCK; i++) {
        p.left[i] = i < n ? 1 : -1;
        p.more[i] = steps > 0 && steps < INT32_MAX ? (int32_t)steps : -1; /* -1: no end */
    }
    for (int64_t i = start; i < end; i++) {
        const struct splat_shape *shape = &j->shape[(int64_t)j->scene.list[i]];
        float *alpha = j->hits.alpha + (start + rows) * SPLAT_BLOCK;
        float *before = j->hits.before + (start + rows) * SPLAT_BLOCK;
        if (!splat_powers(shape, &rays, power))
            continue;
        splat_alphas(shape, j->s.cutoff, power, alpha);
        j->hits.entry[start + rows++] = (int32_t)i;
        if (!pass_entry(alpha, j->s.threshold, before, &p, &rays))
            break;
    }
    return rows;
}

/* What each pixel adds to each sum of one entry. */
struct terms {
    _Alignas(64) double at[SUMS][SPLAT_BLOCK];
};

/* h of each ray, and the colour's terms; the light behind comes before this hit. */
static void hit_terms(const struct splat_shape *p, const float *alpha, const float *before,
                      double clip, struct block *k, struct terms *t)
{
    double red = (double)p->rgb[0], green = (double)p->rgb[1], blue = (double)p->rgb[2];

    for (int i = 0; i < SPLAT_BLOCK; i++) {
        double a = (double)alpha[i], left = (double)before[i];
        double own = k->r[i] * red + k->g[i] * green + k->b[i] * blue;
        double wanted = splat_clamp(left * (own - k->behind[i]), -clip, clip);
        bool hit = a > 0; /* what is not hit stays clear of a NaN */
        t->at[OPACITY][i] = hit ? a * wanted : 0;
        t->at[COLOUR][i] = hit ? left * a * k->r[i] : 0;
        t->at[COLOUR + 1][i] = hit ? left * a * k->g[i] : 0;
        t->at[COLOUR + 2][i] = hit ? left * a * k->b[i] : 0;
        k->behind[i] = hit ? a * own + (1 - a) * k->behind[i] : k->behind[i];
    }
}

/* The terms of shape and place. */
static void pull(const struct splat_shape *p, const float *alpha, const struct splat_rays *r,
                 struct terms *t)
{
    const double *m = p->axes;

    for (int i = 0; i < SPLAT_BLOCK; i++) {
        double x = r->x[i], y = r->y[i], z = r->z[i], h = t->at[OPACITY][i];
        double b0 = m[0] * x + m[1] * y + m[2] * z, b1 = m[3] * x + m[4] * y + m[5] * z;
        double b2 = m[6] * x + m[7] * y + m[8] * z;
        double ab = p->local[0] * b0 + p->local[1] * b1 + p->local[2] * b2;
        double along = -ab / (b0 * b0 + b1 * b1 + b2 * b2);
        bool hit = alpha[i] > 0;
        along = hit ? along : 0;
        /* support radii are three deviations */
        double e0 = hit ? 3 * (p->local[0] + along * b0) : 0;
        double e1 = hit ? 3 * (p->local[1] + along * b1) : 0;
        double e2 = hit ? 3 * (p->local[2] + along * b2) : 0;
        double g0 = -h * e0, g1 = -h * e1, g2 = -h * e2;
        t->at[SCALE][i] = h * e0 * e0;
        t->at[SCALE + 1][i] = h * e1 * e1;
        t->at[SCALE + 2][i] = h * e2 * e2;
        t->at[PULL][i] = g0;
        t->at[PULL + 1][i] = g1;
        t->at[PULL + 2][i] = g2;
        t->at[TWIST][i] = along * g0 * x;
        t->at[TWIST + 1][i] = along * g0 * y;
        t->at[TWIST + 2][i] = along * g0 * z;
        t->at[TWIST + 3][i] = along * g1 * x;
        t->at[TWIST + 4][i] = along * g1 * y;
        t->at[TWIST + 5][i] = along * g1 * z;
        t->at[TWIST + 6][i] = along * g2 * x;
        t->at[TWIST + 7][i] = along * g2 * y;
        t->at[TWIST + 8][i] = along * g2 * z;
    }
}

static void add_terms(struct terms *t, double *sums)
{
    for (int q = 0; q < SUMS; q++) {
        double *v = t->at[q];
        for (int half = SPLAT_BLOCK / 2; half > 0; half /= 2)
            for (int i = 0; i < half; i++)
                v[i] += v[i + half];
        sums[q] += v[0];
    }
}

static void gather_tile(const struct backward_job *j, int64_t tile)
{
    struct splat_tile t = splat_tile_at(&j->s, tile);
    int64_t start = (int64_t)j->scene.range[2 * tile], end = (int64_t)j->scene.range[2 * tile + 1];
    struct block k;
    struct terms terms;

    if (end <= start)
        return;
    memset(j->sums + start * SUMS, 0, (size_t)((end - start) * SUMS) * sizeof *j->sums);
    for (int64_t from = 0; from < t.pixels; from += SPLAT_BLOCK) {
        int64_t n = cpu_min_i64(SPLAT_BLOCK, t.pixels - from);
        block_of(j, &t, from, n, &k);
        for (int64_t row = start + trace(j, &k, n, start, end); row-- > start;) {
            int64_t entry = j->hits.entry[row];
            const struct splat_shape *p = &j->shape[(int64_t)j->scene.list[entry]];
            const float *alpha = j->hits.alpha + row * SPLAT_BLOCK;
            hit_terms(p, alpha, j->hits.before + row * SPLAT_BLOCK, j->clip, &k, &terms);
            pull(p, alpha, &k.rays, &terms);
            add_terms(&terms, j->sums + entry * SUMS);
        }
    }
}

static void gather(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    for (int64_t tile = begin; tile < end; tile++)
        gather_tile(ctx, tile);
}

/* ---- one splat ----------------------------------------------------------------------------- */

/* Where each splat's entries are, in the order of the list. */
static void index_entries(const struct backward_job *j)
{
    int64_t entries = 0, n = j->s.count, tiles = j->s.tiles;

    for (int64_t tile = 0; tile < tiles; tile++)
        entries = cpu_max_i64(entries, (int64_t)j->scene.range[2 * tile + 1]);
    memset(j->first, 0, (size_t)(n + 1) * sizeof *j->first);
    for (int64_t i = 0; i < entries; i++)
        j->first[(int64_t)j->scene.list[i] + 1]++;
    for (int64_t i = 0; i < n; i++)
        j->first[i + 1] += j->first[i];
    for (int64_t i = 0; i < entries; i++)
        j->entry_of[j->first[(int64_t)j->scene.list[i]]++] = (int32_t)i;
    for (int64_t i = n; i > 0; i--) /* each had moved on to the next one's */
        j->first[i] = j->first[i - 1];
    j->first[0] = 0;
}

/* The transpose of splat_to_axes. */
static struct v3 from_axes(struct splat_turn q, struct v3 v)
{
    struct v3 once = v3_cross(q.v, v);

    return v3_add(v, v3_scale(v3_add(v3_cross(q.v, once), v3_scale(once, q.w)), 2));
}

/* The gradient for q of the sum over a, b of w[a][b] dM(q)_ab, that is J(g, v) for w = g v^T. */
static struct splat_turn turn_gradient(struct splat_turn q, const double w[3][3])
{
    const double v[3] = {q.v.x, q.v.y, q.v.z};
    const double spin[3] = {w[2][1] - w[1][2], w[0][2] - w[2][0], w[1][0] - w[0][1]}; /* v x g */
    double trace = w[0][0] + w[1][1] + w[2][2], d[3];

    for (int a = 0; a < 3; a++) {
        d[a] = -2 * trace * v[a] - q.w * spin[a];
        for (int b = 0; b < 3; b++)
            d[a] += v[b] * (w[a][b] + w[b][a]);
    }
    /* g . (qv x v) = -qv . (g x v) = qv . (v x g) */
    return (struct splat_turn){-2 * (v[0] * spin[0] + v[1] * spin[1] + v[2] * spin[2]),
                               {2 * d[0], 2 * d[1], 2 * d[2]}};
}

/* Where the gradients of one splat go. */
struct gradient {
    float *position, *scale, *turn, *opacity, *colour, *sh;
};

static struct gradient gradient_of(const struct backward_job *j, int64_t i)
{
    int64_t n = j->s.count, coeffs = cpu_max_i64(j->s.coeffs, 1);
    float *out = j->c->out->data;

    return (struct gradient){out + 3 * i,      out + 3 * n + 3 * i,  out + 6 * n + 4 * i,
                             out + 10 * n + i, out + 11 * n + 3 * i, out + 14 * n + 3 * coeffs * i};
}

/* From a colour's gradient to coefficients and plain colour; returns what it adds to the
 * position's, by the direction that the splat is seen from. */
static struct v3 put_colour(const struct backward_job *j, int64_t i, struct v3 g,
                            struct v3 to_camera, const struct gradient *d)
{
    const float *given = (const float *)j->c->in[4].data + 3 * i;
    int64_t coeffs = j->s.coeffs, band = j->c->attr->gaussian_splat_render_backward.sh_band;
    double length = v3_length(to_camera);
    struct v3 dir = {0, 0, 0}, none = {0, 0, 0};

    if (length > 1e-8)
        dir = v3_scale(to_camera, 1 / length);
    if (j->plain)
        splat_put(d->colour, (struct v3){given[0] > 0 && given[0] < 1 ? g.x : 0,
                                         given[1] > 0 && given[1] < 1 ? g.y : 0,
                                         given[2] > 0 && given[2] < 1 ? g.z : 0});
    else
        splat_put(d->sh, v3_scale(g, SPLAT_SH0));
    if (coeffs < 4)
        return none;
    if (band >= 1) {
        splat_put(d->sh + 3, v3_scale(g, -SPLAT_SH1 * dir.y));
        splat_put(d->sh + 6, v3_scale(g, SPLAT_SH1 * dir.z));
        splat_put(d->sh + 9, v3_scale(g, -SPLAT_SH1 * dir.x));
    }
    if (!(length > 1e-8))
        return none;
    const float *sh = (const float *)j->c->in[5].data + i * coeffs * 3;
    struct v3 k = {-SPLAT_SH1 * v3_dot(g, splat_v3(sh + 9)),
                   -SPLAT_SH1 * v3_dot(g, splat_v3(sh + 3)),
                   SPLAT_SH1 * v3_dot(g, splat_v3(sh + 6))};
    return v3_scale(v3_sub(k, v3_scale(dir, v3_dot(dir, k))), -1 / length);
}

static void put_gradients(const struct backward_job *j, int64_t i, const double *sum)
{
    const float *meta = j->c->in[6].data, *log_sigma = (const float *)j->c->in[1].data + 3 * i;
    struct gradient d = gradient_of(j, i);
    struct splat_turn q = splat_turn_at(j->scene.turn + 4 * i);
    struct v3 way = v3_sub(splat_v3(meta), splat_v3((const float *)j->c->in[0].data + 3 * i));
    struct v3 inverse = v3_scale(splat_v3(j->scene.inverse + 3 * i), 3); /* of the deviations */
    struct v3 pulled = v3_mul(inverse, (struct v3){sum[PULL], sum[PULL + 1], sum[PULL + 2]});
    const double per[3] = {inverse.x, inverse.y, inverse.z}, to[3] = {way.x, way.y, way.z};
    const double g[3] = {pulled.x, pulled.y, pulled.z};
    double twist[3][3], opacity = (double)j->scene.colour[4 * i + 3];

    for (int a = 0; a < 3; a++) {
        double radius = 3 * (double)j->s.radius_scale * exp((double)log_sigma[a]);
        d.scale[a] = radius < 1e-6 ? 0 : (float)sum[SCALE + a]; /* held at its least */
        for (int b = 0; b < 3; b++)
            twist[a][b] = per[a] * sum[TWIST + 3 * a + b] + g[a] * to[b];
    }
    struct splat_turn turn = turn_gradient(q, (const double(*)[3])twist);
    d.turn[0] = (float)turn.w;
    splat_put(d.turn + 1, turn.v);
    d.opacity[0] = opacity >= 0 && opacity <= 1 ? (float)(sum[OPACITY] / opacity) : 0;
    struct v3 rgb = {sum[COLOUR], sum[COLOUR + 1], sum[COLOUR + 2]};
    struct v3 seen = put_colour(j, i, rgb, way, &d);
    splat_put(d.position, v3_sub(seen, from_axes(q, pulled)));
}

static void add_up(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct backward_job *j = ctx;

    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        double sum[SUMS] = {0};
        for (int32_t k = j->first[i]; k < j->first[i + 1]; k++)
            for (int q = 0; q < SUMS; q++)
                sum[q] += j->sums[(int64_t)j->entry_of[k] * SUMS + q];
        if (j->first[i] < j->first[i + 1]) /* others have none, and may hold NaN */
            put_gradients(j, i, sum);
    }
}

/* ---- kernel -------------------------------------------------------------------------------- */

static uint64_t scratch(const struct cpu_call *c)
{
    struct backward_job j;
    struct cpu_call sized = *c;

    sized.scratch = NULL;
    splat_canvas_of(c, &j.s);
    return carve(&sized, &j);
}

static void run(const struct cpu_call *c)
{
    const float *meta = c->in[6].data;
    float clip = c->attr->gaussian_splat_render_backward.loss_grad_clip;
    struct backward_job j = {.c = c, .clip = clip > 1e-8f ? (double)clip : 1e-8};

    splat_canvas_of(c, &j.s);
    carve(c, &j);
    for (int i = 0; i < 3; i++) {
        double v = (double)meta[SPLAT_META_BACKGROUND + i];
        j.background[i] = v > 0 ? pow(v, 2.2) : v != v ? v : 0;
    }
    j.plain = splat_plain(c, &j.s);
    memset(c->out->data, 0, (size_t)c->out->count * sizeof(float));
    splat_make(c, &j.s, &j.scene, j.room);
    splat_shapes(c->pool, &j.s, &j.scene, j.shape);
    cpu_for(c->pool, j.s.tiles, 1, gather, &j);
    index_entries(&j);
    cpu_for(c->pool, j.s.count, 64, add_up, &j);
}

extern const struct cpu_kernel CPU_NAME(cpu_gaussian_splat_render_backward);
const struct cpu_kernel CPU_NAME(cpu_gaussian_splat_render_backward) = {
    .run = run, .scratch = scratch, .check = splat_check};
