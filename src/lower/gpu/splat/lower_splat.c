/* lower_splat.c: Gaussian splats prepared, drawn from what was prepared, or both at once
 * (ops-special.md 7.8, 7.9). lower_splat.h says which file does what.
 *
 * A field of view that is none can be refused here only where the camera is a constant: else it is
 * data that only the GPU sees, and such a scene is drawn as whatever its numbers give. */
#include <string.h>

#include "base/str.h"
#include "lower/gpu/splat/lower_splat.h"

enum { PER_SPLAT = 15, PARAMS = 11, FOOTPRINT = 8, CAMERA = 16 }; /* numbers */
enum { FOV = 9 };                                                 /* in meta */

/* ---- sizes ---- */

void splat_canvas_words(struct gpu_call *c, const struct splat_canvas *s)
{
    gpu_u32(c, "n", s->count);
    gpu_u32(c, "room", s->list);
    gpu_u32(c, "width", s->width);
    gpu_u32(c, "height", s->height);
    gpu_u32(c, "tile", s->tile);
    gpu_u32(c, "across", s->across);
}

uint64_t splat_rays_at(const struct splat_canvas *s)
{
    return PER_SPLAT * s->count + s->list + 2 * s->tiles;
}

static uint64_t params_at(const struct splat_canvas *s)
{
    return splat_rays_at(s) + 3 * s->pixels;
}

uint64_t splat_scene_bytes(const struct splat_canvas *s)
{
    return (params_at(s) + PARAMS) * 4;
}

struct splat_canvas splat_canvas_of(const struct gpu_call *c)
{
    /* All splat ops begin with the same attributes, up to max_list_entries; see
     * ir/shape/shape_splat.c. */
    const struct attr_gaussian_splat *a = &c->attr->gaussian_splat;
    struct splat_canvas s = {.width = (uint64_t)a->width,
                             .height = (uint64_t)a->height,
                             .tile = (uint64_t)a->tile_size,
                             .list = (uint64_t)a->max_list_entries};

    s.pixels = s.width * s.height;
    s.across = gpu_ceil(s.width, s.tile);
    s.down = gpu_ceil(s.height, s.tile);
    s.tiles = s.across * s.down;
    if (c->op == RLX_OP_gaussian_splat_rasterize) {
        const struct attr_gaussian_splat_rasterize *r = &c->attr->gaussian_splat_rasterize;
        s.count = (gpu_count(&c->in[0]) - params_at(&s) - PARAMS) / PER_SPLAT;
        s.cutoff = r->alpha_cutoff;
        s.threshold = r->transmittance_threshold;
    } else {
        s.count = gpu_count(&c->in[3]);
        s.coeffs = s.count ? gpu_count(&c->in[5]) / (3 * s.count) : 0;
        s.radius_scale = a->radius_scale;
        s.cutoff = a->alpha_cutoff;
        s.threshold = a->transmittance_threshold;
    }
    s.most = s.count * s.tiles < s.list ? s.count * s.tiles : s.list; /* below 2^52 */
    return s;
}

/* ---- projecting ---- */

static void check_camera(struct gpu_call *c)
{
    const struct ir_node *meta = ir_node(c->graph, c->node->in[6]);
    char text[32];
    float fov;

    if (meta->op != RLX_OP_const || meta->attr.const_.data.len < (FOV + 1) * sizeof fov)
        return;
    memcpy(&fov, (const char *)meta->attr.const_.data.ptr + FOV * sizeof fov, sizeof fov);
    if (fov > 0 && fov < 180)
        return;
    str_from_f32(text, fov);
    gpu_refuse(c, RLX_ERROR_ATTRIBUTE,
               "%s: the field of view in meta[%d] is %s, must be above 0 and below 180",
               op_info(c->op)->name, FOV, text);
}

static void make_camera(struct gpu_call *c, const struct splat_canvas *s,
                        const struct splat_made *m, struct gpu_arg scene)
{
    gpu_kernel(c, "splat_project", "camera");
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, gpu_in(c, 6));
    gpu_bind(c, m->camera);
    gpu_bind(c, scene);
    gpu_bind(c, m->flags);
    gpu_u32(c, "params", params_at(s));
    gpu_u32(c, "width", s->width);
    gpu_u32(c, "height", s->height);
    gpu_u32(c, "tile", s->tile);
    gpu_u32(c, "across", s->across);
    gpu_f32(c, "cutoff", (double)s->cutoff);
    gpu_f32(c, "threshold", (double)s->threshold);
    gpu_groups(c, 1);
}

static void find_plain(struct gpu_call *c, const struct splat_canvas *s, const struct splat_made *m)
{
    if (s->coeffs == 0 || s->coeffs >= 16)
        return;
    gpu_kernel(c, "splat_project", "plain");
    gpu_bind(c, gpu_in(c, 5));
    gpu_bind(c, m->flags);
    gpu_u32(c, "coeffs", s->coeffs);
    gpu_u32(c, "n", s->count);
    gpu_invocations(c, s->count, GPU_GROUP);
}

static void colour(struct gpu_call *c, const struct splat_canvas *s, const struct splat_made *m,
                   struct gpu_arg scene)
{
    gpu_kernel(c, "splat_project", "colour");
    gpu_type(c, "R", dense_real(c));
    gpu_const(c, "COEFFS", s->coeffs < 16 ? (int64_t)s->coeffs : 16);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 3));
    gpu_bind(c, gpu_in(c, 4));
    gpu_bind(c, gpu_in(c, s->coeffs ? 5 : 4));
    gpu_bind(c, m->camera);
    gpu_bind(c, m->flags);
    gpu_bind(c, scene);
    gpu_u32(c, "coeffs", s->coeffs);
    gpu_u32(c, "n", s->count);
    gpu_invocations(c, s->count, GPU_GROUP);
}

static void place(struct gpu_call *c, const struct splat_canvas *s, const struct splat_made *m,
                  struct gpu_arg scene)
{
    gpu_kernel(c, "splat_project", "place");
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_in(c, 2));
    gpu_bind(c, m->camera);
    gpu_bind(c, scene);
    gpu_bind(c, m->footprint);
    gpu_u32(c, "n", s->count);
    gpu_u32(c, "width", s->width);
    gpu_u32(c, "height", s->height);
    gpu_f32(c, "radius_scale", (double)s->radius_scale);
    gpu_f32(c, "cutoff", (double)s->cutoff);
    gpu_invocations(c, s->count, GPU_GROUP);
}

static void cast_rays(struct gpu_call *c, const struct splat_canvas *s, const struct splat_made *m,
                      struct gpu_arg scene)
{
    gpu_kernel(c, "splat_project", "cast");
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, m->camera);
    gpu_bind(c, scene);
    gpu_u32(c, "rays", splat_rays_at(s));
    gpu_u32(c, "width", s->width);
    gpu_u32(c, "count", s->pixels);
    gpu_invocations(c, s->pixels, GPU_GROUP);
}

struct splat_made splat_make(struct gpu_call *c, const struct splat_canvas *s, struct gpu_arg scene)
{
    uint64_t real = dense_bytes(c);
    struct splat_made m = {.camera = gpu_temp(c, CAMERA * real), .flags = gpu_temp(c, 4)};

    check_camera(c);
    m.footprint = gpu_temp(c, FOOTPRINT * s->count * real);
    make_camera(c, s, &m, scene);
    find_plain(c, s, &m);
    colour(c, s, &m, scene);
    place(c, s, &m, scene);
    cast_rays(c, s, &m, scene);
    m.lists = splat_list(c, s, scene, m.footprint);
    return m;
}

/* ---- drawing ---- */

struct gpu_arg splat_shapes(struct gpu_call *c, const struct splat_canvas *s, struct gpu_arg scene)
{
    struct gpu_arg shape = gpu_temp(c, SPLAT_SHAPE * s->count * dense_bytes(c));

    gpu_kernel(c, "splat_draw", "shapes");
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, scene);
    gpu_bind(c, shape);
    gpu_u32(c, "n", s->count);
    gpu_f32(c, "cutoff", (double)s->cutoff);
    gpu_invocations(c, s->count, GPU_GROUP);
    return shape;
}

/* Groups of the largest tile. */
static uint64_t parts_of(const struct splat_canvas *s)
{
    uint64_t wide = s->tile < s->width ? s->tile : s->width;
    uint64_t high = s->tile < s->height ? s->tile : s->height;

    return gpu_ceil(wide * high, GPU_GROUP);
}

static void draw(struct gpu_call *c, const struct splat_canvas *s, struct gpu_arg scene,
                 struct gpu_arg meta)
{
    struct gpu_arg shape = splat_shapes(c, s, scene);

    gpu_kernel(c, "splat_draw", "draw");
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, scene);
    gpu_bind(c, shape);
    gpu_bind(c, meta);
    gpu_bind(c, gpu_out(c));
    splat_canvas_words(c, s);
    gpu_u32(c, "parts", parts_of(s));
    gpu_u32(c, "rays", splat_rays_at(s));
    gpu_f32(c, "cutoff", (double)s->cutoff);
    gpu_f32(c, "threshold", (double)s->threshold);
    gpu_u32(c, "count", s->tiles * parts_of(s));
    gpu_groups(c, s->tiles * parts_of(s));
}

void gpu_lower_gaussian_splat(struct gpu_call *c)
{
    struct splat_canvas s = splat_canvas_of(c);
    bool draws = c->op == RLX_OP_gaussian_splat_render;

    if (s.count == 0) /* when sizes are tried */
        return;
    struct gpu_arg scene = draws ? gpu_temp(c, splat_scene_bytes(&s)) : gpu_out(c);
    splat_make(c, &s, scene);
    if (draws)
        draw(c, &s, scene, gpu_in(c, 6));
}

void gpu_lower_gaussian_splat_rasterize(struct gpu_call *c)
{
    struct splat_canvas s = splat_canvas_of(c);

    if (s.count > 0)
        draw(c, &s, gpu_in(c, 0), gpu_in(c, 1));
}
