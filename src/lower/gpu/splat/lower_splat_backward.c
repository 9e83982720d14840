/* lower_splat_backward.c: the gradients of the linear training image of a splat scene
 * (ops-special.md 7.10): kernels/splat_backward.rlk tells how. */
#include "lower/gpu/splat/lower_splat.h"

enum { SEGMENT = 32, SUMS = 20 }; /* as in the kernels */

struct backward {
    struct splat_canvas s;
    struct splat_made made;
    struct gpu_arg scene, sums, total;
};

static void gather(struct gpu_call *c, const struct backward *b)
{
    const struct attr_gaussian_splat_render_backward *a = &c->attr->gaussian_splat_render_backward;
    const struct splat_canvas *s = &b->s;
    struct gpu_arg shape = splat_shapes(c, s, b->scene);
    uint64_t marks = s->most / SEGMENT + s->tiles + 1; /* a tile's begin where its entries do */

    gpu_kernel(c, "splat_backward", "gather");
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, b->scene);
    gpu_bind(c, shape);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 6));
    gpu_bind(c, gpu_in(c, 7));
    gpu_bind(c, gpu_temp(c, marks * GPU_GROUP * 8));
    gpu_bind(c, b->sums);
    splat_canvas_words(c, s);
    gpu_u32(c, "rays", splat_rays_at(s));
    gpu_u32(c, "steps", (uint64_t)a->max_splat_steps);
    gpu_f32(c, "cutoff", (double)s->cutoff);
    gpu_f32(c, "threshold", (double)s->threshold);
    gpu_f32(c, "clip", a->loss_grad_clip > 1e-8f ? (double)a->loss_grad_clip : 1e-8);
    gpu_u32(c, "tiles", s->tiles);
    gpu_groups(c, s->tiles);
}

static void add(struct gpu_call *c, const struct backward *b)
{
    const struct splat_lists *l = &b->made.lists;
    struct gpu_arg where = gpu_temp(c, b->s.most * 4);

    gpu_kernel(c, "splat_backward", "places");
    gpu_bind(c, l->entry);
    gpu_bind(c, where);
    gpu_u32(c, "count", b->s.most);
    gpu_invocations(c, b->s.most, GPU_GROUP);
    gpu_kernel(c, "splat_backward", "add");
    gpu_bind(c, l->order);
    gpu_bind(c, l->first);
    gpu_bind(c, l->sums);
    gpu_bind(c, where);
    gpu_bind(c, b->sums);
    gpu_bind(c, b->total);
    gpu_u32(c, "n", b->s.count);
    gpu_u32(c, "parts", l->parts);
    gpu_u32(c, "most", b->s.most);
    gpu_invocations(c, b->s.count * SUMS, GPU_GROUP);
}

static void shape_gradients(struct gpu_call *c, const struct backward *b)
{
    gpu_kernel(c, "splat_backward", "shape_gradients");
    gpu_type(c, "R", dense_real(c));
    gpu_bind(c, b->total);
    gpu_bind(c, b->scene);
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "n", b->s.count);
    gpu_f32(c, "radius_scale", (double)b->s.radius_scale);
    gpu_invocations(c, b->s.count, GPU_GROUP);
}

static void colour_gradients(struct gpu_call *c, const struct backward *b)
{
    gpu_kernel(c, "splat_backward", "colour_gradients");
    gpu_type(c, "R", dense_real(c));
    gpu_const(c, "COEFFS", b->s.coeffs < 16 ? (int64_t)b->s.coeffs : 16);
    gpu_bind(c, b->total);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 4));
    gpu_bind(c, gpu_in(c, b->s.coeffs ? 5 : 4));
    gpu_bind(c, b->made.camera);
    gpu_bind(c, b->made.flags);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "n", b->s.count);
    gpu_u32(c, "coeffs", b->s.coeffs);
    gpu_u32(c, "band", (uint64_t)c->attr->gaussian_splat_render_backward.sh_band);
    gpu_invocations(c, b->s.count, GPU_GROUP);
}

void gpu_lower_gaussian_splat_render_backward(struct gpu_call *c)
{
    struct backward b = {.s = splat_canvas_of(c)};

    if (b.s.count == 0) /* when sizes are tried */
        return;
    b.scene = gpu_temp(c, splat_scene_bytes(&b.s));
    b.sums = gpu_temp(c, b.s.most * SUMS * 4);
    b.total = gpu_temp(c, b.s.count * SUMS * 4);
    b.made = splat_make(c, &b.s, b.scene);
    gather(c, &b);
    add(c, &b);
    shape_gradients(c, &b);
    colour_gradients(c, &b);
}
