/* splat_draw.c: the image of a prepared scene, tile by tile (ops-special.md 7.8, 7.9).
 *
 * A tile's rays go through its list in blocks. A block ends its list early when none of its rays
 * has light left. */
#include "backend/cpu/kernels/splat/splat_block.h"

enum { PART = 1024 }; /* pixels of a large tile that are drawn as one piece of work */

struct draw_job {
    const struct cpu_call *c;
    const struct splat_canvas *s;
    const struct splat_scene *from;
    const struct splat_shape *shape;
    const float *background;
    float *image;
    int64_t parts; /* per tile */
};

/* ---- shapes -------------------------------------------------------------------------------- */

struct shape_job {
    const struct splat_canvas *s;
    const struct splat_scene *from;
    struct splat_shape *shape;
};

static void shape_one(const struct shape_job *j, int64_t i)
{
    const float *colour = j->from->colour + 4 * i;
    struct splat_turn q = splat_turn_at(j->from->turn + 4 * i);
    struct v3 inverse = splat_v3(j->from->inverse + 3 * i),
              local = splat_v3(j->from->local + 3 * i);
    double reach = splat_reach((double)colour[3], (double)j->s->cutoff);
    struct splat_shape *p = &j->shape[i];

    for (int k = 0; k < 3; k++) {
        struct v3 axis = splat_to_axes(q, (struct v3){k == 0, k == 1, k == 2});
        p->axes[k] = inverse.x * axis.x;
        p->axes[3 + k] = inverse.y * axis.y;
        p->axes[6 + k] = inverse.z * axis.z;
        p->rgb[k] = colour[k];
    }
    p->local[0] = local.x;
    p->local[1] = local.y;
    p->local[2] = local.z;
    /* Support radii are three deviations. A little more than that: alpha itself decides. */
    p->far = reach > 0 ? reach / 9 * 1.00001 + 1e-5 : -1;
    p->flat = 1e-10 * reach / 9;
    p->opacity = (float)splat_clamp((double)colour[3], 0, 1);
}

static void shape_some(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        shape_one(ctx, i);
}

void splat_shapes(struct pool *pool, const struct splat_canvas *s, const struct splat_scene *from,
                  struct splat_shape *shape)
{
    struct shape_job j = {s, from, shape};

    cpu_for(pool, s->count, 256, shape_some, &j);
}

/* ---- lists --------------------------------------------------------------------------------- */

static int64_t whole(float v) /* NaN is out of every range */
{
    return v != v ? INT64_MIN : cpu_trunc_i64((double)v);
}

/* A tile's part of the list, which need not have been written by prepare; *end 0: it is empty, or
 * not valid. Positions are counted in the prepared scene. */
static void tile_list(const struct draw_job *j, int64_t tile, int64_t *start, int64_t *end)
{
    const float *range = j->from->range + 2 * tile, *begin = j->from->colour;
    int64_t first = whole(range[0]), last = whole(range[1]);

    *start = *end = 0;
    if (last <= first)
        return;
    if (first < 0 || last > j->s->list) {
        bool low = first < 0;
        cpu_report_index(j->c, range - begin + !low, low ? first : last);
        return;
    }
    for (int64_t i = first; i < last; i++) {
        int64_t id = whole(j->from->list[i]);
        if (!cpu_index_valid(id, j->s->count)) {
            cpu_report_index(j->c, j->from->list + i - begin, id);
            return;
        }
    }
    *start = first;
    *end = last;
}

/* ---- pixels -------------------------------------------------------------------------------- */

/* Light of a block of pixels. */
struct light {
    _Alignas(64) float left[SPLAT_BLOCK]; /* what is not held back yet */
    float r[SPLAT_BLOCK], g[SPLAT_BLOCK], b[SPLAT_BLOCK];
};

static void blend(const struct splat_shape *p, const float *restrict alpha,
                  struct light *restrict l)
{
    float red = p->rgb[0], green = p->rgb[1], blue = p->rgb[2];

    for (int i = 0; i < SPLAT_BLOCK; i++) {
        float share = l->left[i] * alpha[i];
        float r = share * red, g = share * green, b = share * blue;
        r = alpha[i] > 0 ? r : 0; /* a colour that is not finite stays where it is seen */
        g = alpha[i] > 0 ? g : 0;
        b = alpha[i] > 0 ? b : 0;
        l->r[i] += r;
        l->g[i] += g;
        l->b[i] += b;
        l->left[i] *= 1 - alpha[i];
    }
}

/* Rays whose light is used up no longer meet anything; false: all of them. */
static bool close_rays(const struct light *l, float threshold, struct splat_rays *r)
{
    int32_t open = 0;

    for (int i = 0; i < SPLAT_BLOCK; i++) {
        bool done = l->left[i] < threshold;
        r->x[i] = done ? 0 : r->x[i];
        r->y[i] = done ? 0 : r->y[i];
        r->z[i] = done ? 0 : r->z[i];
    }
    for (int i = 0; i < SPLAT_BLOCK; i++)
        open |= !(l->left[i] < threshold);
    return open;
}

static float display(float v)
{
    float shown = math_exp(2.2f * math_log(v));

    shown = v > 0 ? shown : 0;
    return v != v ? v : shown;
}

static void put_block(const struct draw_job *j, const struct splat_tile *t, int64_t from, int64_t n,
                      struct light *l, bool empty)
{
    const float *back = j->background;

    for (int i = 0; i < SPLAT_BLOCK; i++) {
        l->r[i] = display(l->r[i] + l->left[i] * back[0]);
        l->g[i] = display(l->g[i] + l->left[i] * back[1]);
        l->b[i] = display(l->b[i] + l->left[i] * back[2]);
    }
    for (int64_t i = 0; i < n; i++) {
        float *out = j->image + 4 * splat_pixel(j->s, t, from + i);
        out[0] = l->r[i];
        out[1] = l->g[i];
        out[2] = l->b[i];
        out[3] = empty ? 1 : 1 - l->left[i];
    }
}

static void draw_block(const struct draw_job *j, const struct splat_tile *t, int64_t from,
                       int64_t n, int64_t start, int64_t end)
{
    struct splat_rays rays;
    _Alignas(64) float power[SPLAT_BLOCK], alpha[SPLAT_BLOCK];
    struct light l = {.left = {0}};

    for (int i = 0; i < SPLAT_BLOCK; i++)
        l.left[i] = i < n ? 1 : -1; /* rays outside the image are done from the start */
    splat_rays_of(j->s, j->from, t, from, n, &rays);
    for (int64_t i = start; i < end; i++) {
        const struct splat_shape *p = &j->shape[(int64_t)j->from->list[i]];
        if (!splat_powers(p, &rays, power))
            continue;
        splat_alphas(p, j->s->cutoff, power, alpha);
        blend(p, alpha, &l);
        if (!close_rays(&l, j->s->threshold, &rays))
            break;
    }
    put_block(j, t, from, n, &l, end <= start);
}

static void draw_parts(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct draw_job *j = ctx;

    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        struct splat_tile t = splat_tile_at(j->s, k / j->parts);
        int64_t from = k % j->parts * PART, stop = cpu_min_i64(from + PART, t.pixels), start, last;
        tile_list(j, k / j->parts, &start, &last);
        for (; from < stop; from += SPLAT_BLOCK)
            draw_block(j, &t, from, cpu_min_i64(SPLAT_BLOCK, stop - from), start, last);
    }
}

void splat_draw(const struct cpu_call *c, const struct splat_canvas *s,
                const struct splat_scene *from, const struct splat_shape *shape,
                const float *background, float *image)
{
    struct draw_job j = {c, s, from, shape, background, image, 0};

    j.parts = (splat_tile_at(s, 0).pixels - 1) / PART + 1; /* no tile is larger than the first */
    cpu_for(c->pool, s->tiles * j.parts, 1, draw_parts, &j);
}
