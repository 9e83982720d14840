/* splat.c: Gaussian splats prepared, drawn from what was prepared, or both at once (ops-special.md
 * 7.8, 7.9). splat.h says which file does what. */
#include "backend/cpu/kernels/splat/splat.h"

enum { PER_SPLAT = 15 }; /* floats of a prepared scene */

/* ---- sizes --------------------------------------------------------------------------------- */

static int64_t floats_besides(const struct splat_canvas *s)
{
    return s->list + 2 * s->tiles + 3 * s->width * s->height + SPLAT_PARAMS;
}

int64_t splat_scene_floats(const struct splat_canvas *s)
{
    return PER_SPLAT * s->count + floats_besides(s);
}

void splat_canvas_of(const struct cpu_call *c, struct splat_canvas *s)
{
    /* All splat ops begin with the same attributes, up to max_list_entries; see
     * ir/shape/shape_splat.c. */
    const struct attr_gaussian_splat *a = &c->attr->gaussian_splat;
    bool prepared = c->op == RLX_OP_gaussian_splat_rasterize;

    *s = (struct splat_canvas){.width = a->width, .height = a->height, .list = a->max_list_entries};
    s->across = (a->width - 1) / a->tile_size + 1;
    s->down = (a->height - 1) / a->tile_size + 1;
    s->tile = a->tile_size;
    s->tiles = s->across * s->down;
    if (prepared) {
        const struct attr_gaussian_splat_rasterize *r = &c->attr->gaussian_splat_rasterize;
        s->count = (c->in[0].count - floats_besides(s)) / PER_SPLAT;
        s->cutoff = r->alpha_cutoff;
        s->threshold = r->transmittance_threshold;
    } else {
        s->count = c->in[3].count;
        s->coeffs = s->count ? c->in[5].count / (3 * s->count) : 0; /* 0: when sizes are tried */
        s->radius_scale = a->radius_scale;
        s->cutoff = a->alpha_cutoff;
        s->threshold = a->transmittance_threshold;
    }
    s->most = cpu_min_i64(s->list, s->count * s->tiles); /* below 2^52 */
}

void splat_scene_at(const struct splat_canvas *s, float *at, struct splat_scene *out)
{
    out->colour = at;
    out->valid = out->colour + 4 * s->count;
    out->local = out->valid + s->count;
    out->inverse = out->local + 3 * s->count;
    out->turn = out->inverse + 3 * s->count;
    out->list = out->turn + 4 * s->count;
    out->range = out->list + s->list;
    out->ray = out->range + 2 * s->tiles;
    out->params = out->ray + 3 * s->width * s->height;
}

/* ---- making a scene ------------------------------------------------------------------------ */

static uint64_t carve(const struct splat_canvas *s, char *room, struct splat_footprint **footprint,
                      double **distance, void **list)
{
    uint64_t n = (uint64_t)s->count, at = 0;

    *footprint = splat_take(room, &at, n * sizeof **footprint);
    *distance = splat_take(room, &at, n * sizeof **distance);
    *list = splat_take(room, &at, splat_list_bytes(s));
    return at;
}

uint64_t splat_make_bytes(const struct splat_canvas *s)
{
    struct splat_footprint *footprint;
    double *distance;
    void *list;

    return carve(s, NULL, &footprint, &distance, &list);
}

void splat_make(const struct cpu_call *c, const struct splat_canvas *s,
                const struct splat_scene *to, void *room)
{
    struct splat_footprint *footprint;
    double *distance;
    void *list;

    carve(s, room, &footprint, &distance, &list);
    splat_project(c, s, to, footprint, distance);
    splat_list(c->pool, s, footprint, distance, list, to);
}

/* ---- kernels ------------------------------------------------------------------------------- */

/* Scratch of each op: what it does not need has no bytes. */
struct parts {
    void *room;
    float *scene;
    struct splat_shape *shape;
};

static uint64_t parts_of(const struct cpu_call *c, const struct splat_canvas *s, char *base,
                         struct parts *p)
{
    bool makes = c->op != RLX_OP_gaussian_splat_rasterize;
    bool draws = c->op != RLX_OP_gaussian_splat_prepare;
    uint64_t at = 0;

    p->room = splat_take(base, &at, makes ? splat_make_bytes(s) : 0);
    p->scene = splat_take(base, &at, makes && draws ? 4 * (uint64_t)splat_scene_floats(s) : 0);
    p->shape = splat_take(base, &at, draws ? (uint64_t)s->count * sizeof *p->shape : 0);
    return at;
}

static uint64_t scratch(const struct cpu_call *c)
{
    struct splat_canvas s;
    struct parts p;

    splat_canvas_of(c, &s);
    return parts_of(c, &s, NULL, &p);
}

static void run(const struct cpu_call *c)
{
    bool draws = c->op == RLX_OP_gaussian_splat_render;
    struct splat_canvas s;
    struct splat_scene scene;
    struct parts p;

    splat_canvas_of(c, &s);
    parts_of(c, &s, c->scratch, &p);
    splat_scene_at(&s, draws ? p.scene : c->out->data, &scene);
    splat_make(c, &s, &scene, p.room);
    if (!draws)
        return;
    splat_shapes(c->pool, &s, &scene, p.shape);
    splat_draw(c, &s, &scene, p.shape, (const float *)c->in[6].data + SPLAT_META_BACKGROUND,
               c->out->data);
}

static void run_rasterize(const struct cpu_call *c)
{
    struct splat_canvas s;
    struct splat_scene scene;
    struct parts p;

    splat_canvas_of(c, &s);
    parts_of(c, &s, c->scratch, &p);
    splat_scene_at(&s, c->in[0].data, &scene);
    splat_shapes(c->pool, &s, &scene, p.shape);
    splat_draw(c, &s, &scene, p.shape, (const float *)c->in[1].data + SPLAT_META_BACKGROUND,
               c->out->data);
}

extern const struct cpu_kernel CPU_NAME(cpu_gaussian_splat), CPU_NAME(cpu_gaussian_splat_rasterize);
const struct cpu_kernel CPU_NAME(cpu_gaussian_splat) = {
    .run = run, .scratch = scratch, .check = splat_check};
const struct cpu_kernel CPU_NAME(cpu_gaussian_splat_rasterize) = {.run = run_rasterize,
                                                                  .scratch = scratch};
