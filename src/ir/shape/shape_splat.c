/* shape_splat.c: shape rules of Gaussian splatting (ops-special.md 7).
 *
 * Operands are taken by their element counts, whatever their shapes: positions, scales and colors
 * 3n, rotations 4n, opacities n, sh_coeffs 3 c n, meta at least 23. What meta holds is data, and is
 * looked at when it runs. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>

#include "ir/shape/shape_need.h"

#define MAX_PIXELS ((int64_t)1 << 28)
#define MAX_LIST_ENTRIES ((int64_t)1 << 24)
#define META_SIZE 23
#define PREPARED_PER_SPLAT 15
#define PREPARED_PARAMS 11

/* These three begin alike, so one function reads them: the common first members of a union's
 * structs. The gradient goes on like the render, up to its own. */
_Static_assert(offsetof(struct attr_gaussian_splat, max_list_entries) ==
                       offsetof(struct attr_gaussian_splat_rasterize, max_list_entries) &&
                   offsetof(struct attr_gaussian_splat, transmittance_threshold) ==
                       offsetof(struct attr_gaussian_splat_render_backward,
                                transmittance_threshold),
               "splat ops begin alike");

static rlx_status need_number(struct shape_call *c, const char *attr, float v, bool holds,
                              const char *rule)
{
    char text[32];

    if (isfinite(v) && holds)
        return RLX_OK;
    str_from_f32(text, v);
    return SHAPE_FAIL(c, ATTRIBUTE, "%s: %s is %s, must be %s", c->name, attr, text, rule);
}

static rlx_status need_canvas(struct shape_call *c, float alpha_cutoff, float threshold)
{
    const struct attr_gaussian_splat *a = &c->attr->gaussian_splat;

    TRY(shape_need_range(c, "width", a->width, 1, UINT32_MAX));
    TRY(shape_need_range(c, "height", a->height, 1, UINT32_MAX));
    TRY(shape_need_range(c, "tile_size", a->tile_size, 1, UINT32_MAX));
    TRY(shape_need_range(c, "max_splat_steps", a->max_splat_steps, 0, UINT32_MAX));
    TRY(shape_need_range(c, "max_list_entries", a->max_list_entries, 1, MAX_LIST_ENTRIES));
    if (a->width > MAX_PIXELS / a->height)
        return SHAPE_FAIL(c, ATTRIBUTE,
                          "%s: %" PRId64 " by %" PRId64 " is above the %" PRId64
                          " pixels an image may have",
                          c->name, a->width, a->height, MAX_PIXELS);
    TRY(need_number(c, "alpha_cutoff", alpha_cutoff, alpha_cutoff > 0 && alpha_cutoff < 1,
                    "above 0 and below 1"));
    return need_number(c, "transmittance_threshold", threshold, threshold >= 0 && threshold < 1,
                       "at least 0 and below 1");
}

static ir_dim count_of(struct shape_call *c, int32_t operand)
{
    return shape_product(c, c->in[operand]->dim, c->in[operand]->rank);
}

static rlx_status need_all_f32(struct shape_call *c)
{
    for (int32_t i = 0; i < c->in_count; i++)
        TRY(shape_need_dtype(c, i, RLX_DTYPE_f32));
    return RLX_OK;
}

/* RGBA of every pixel, flat. */
static int64_t image_size(const struct shape_call *c)
{
    return c->attr->gaussian_splat.width * c->attr->gaussian_splat.height * 4;
}

/* The coefficients per splat and channel; RLX_DIM_UNKNOWN while symbols leave it open. */
static rlx_status sh_count(struct shape_call *c, ir_dim splats, ir_dim *out)
{
    ir_dim count = count_of(c, 5), per_splat = dim_mul(c->mod->dims, splats, 3);

    if (dim_is_static(splats))
        return shape_divided(c, count, per_splat, "elements of sh_coeffs", out);
    *out = dim_exact_div(c->mod->dims, count, per_splat);
    if (*out != RLX_DIM_FAILED)
        return RLX_OK;
    if (dim_no_memory(c->mod->dims))
        return diag_no_memory(c->diag, 0);
    *out = RLX_DIM_UNKNOWN;
    if (!shape_check(c, CHECK_DIVIDES, count, per_splat, RLX_ERROR_SHAPE, "elements of sh_coeffs"))
        return SHAPE_FAIL(c, SHAPE, "%s: sh_coeffs holds %s elements, not a multiple of %s",
                          c->name, dim_text(c, count), dim_text(c, per_splat));
    return RLX_OK;
}

/* The seven operands of a scene: how many splats, and coefficients for each. */
static rlx_status need_scene(struct shape_call *c, ir_dim *splats, ir_dim *coeffs)
{
    const struct attr_gaussian_splat *a = &c->attr->gaussian_splat;
    struct dim_table *t = c->mod->dims;

    TRY(need_all_f32(c));
    TRY(need_canvas(c, a->alpha_cutoff, a->transmittance_threshold));
    TRY(need_number(c, "radius_scale", a->radius_scale, a->radius_scale > 0, "above 0"));
    TRY(shape_divided(c, count_of(c, 0), 3, "elements of positions", splats));
    TRY(shape_need_least(c, *splats, 1, "splats"));
    TRY(shape_need_most(c, *splats, SHAPE_MAX_INDEXED, "splats"));
    ir_dim three = dim_mul(t, *splats, 3), four = dim_mul(t, *splats, 4);
    TRY(shape_need_equal(c, count_of(c, 1), three, "elements of scales and positions"));
    TRY(shape_need_equal(c, count_of(c, 2), four, "elements of rotations and 4 per splat"));
    TRY(shape_need_equal(c, count_of(c, 3), *splats, "elements of opacities and splats"));
    TRY(shape_need_equal(c, count_of(c, 4), three, "elements of colors and positions"));
    TRY(sh_count(c, *splats, coeffs));
    return shape_need_least(c, count_of(c, 6), META_SIZE, "elements of meta");
}

/* What prepare packs besides 15 numbers per splat. */
static int64_t prepared_rest(const struct shape_call *c)
{
    const struct attr_gaussian_splat *a = &c->attr->gaussian_splat;
    int64_t across = (a->width - 1) / a->tile_size + 1, down = (a->height - 1) / a->tile_size + 1;

    return a->max_list_entries + 2 * across * down + 3 * a->width * a->height + PREPARED_PARAMS;
}

/* gaussian_splat_render -> [height width 4]; gaussian_splat_prepare -> [P]. */
rlx_status shape_gaussian_splat(struct shape_call *c)
{
    struct dim_table *t = c->mod->dims;
    ir_dim splats, coeffs, size;

    TRY(need_scene(c, &splats, &coeffs));
    if (c->op == RLX_OP_gaussian_splat_prepare)
        size = dim_add(t, dim_mul(t, splats, PREPARED_PER_SPLAT), prepared_rest(c));
    else
        size = image_size(c);
    return shape_result(c, RLX_DTYPE_f32, 1, &size);
}

/* prep [P], meta -> [height width 4]; P tells the number of splats. */
rlx_status shape_gaussian_splat_rasterize(struct shape_call *c)
{
    const struct attr_gaussian_splat_rasterize *a = &c->attr->gaussian_splat_rasterize;
    ir_dim prepared, splats;
    int64_t rest;

    TRY(need_all_f32(c));
    TRY(need_canvas(c, a->alpha_cutoff, a->transmittance_threshold));
    rest = prepared_rest(c);
    prepared = count_of(c, 0);
    TRY(shape_need_least(c, prepared, rest + PREPARED_PER_SPLAT, "elements of prep"));
    TRY(shape_divided(c, dim_sub(c->mod->dims, prepared, rest), PREPARED_PER_SPLAT,
                      "elements of prep about splats", &splats));
    TRY(shape_need_most(c, splats, SHAPE_MAX_INDEXED, "splats"));
    TRY(shape_need_least(c, count_of(c, 1), META_SIZE, "elements of meta"));
    const ir_dim size = image_size(c);
    return shape_result(c, RLX_DTYPE_f32, 1, &size);
}

/* The scene and dl, the image's gradient -> all gradients, flat: 14n + 3 max(c,1) n. */
rlx_status shape_gaussian_splat_render_backward(struct shape_call *c)
{
    const struct attr_gaussian_splat_render_backward *a = &c->attr->gaussian_splat_render_backward;
    ir_dim splats, coeffs, size;

    TRY(need_scene(c, &splats, &coeffs));
    TRY(shape_need_nonnegative(c, "loss_grad_clip", a->loss_grad_clip));
    TRY(shape_need_range(c, "sh_band", a->sh_band, 0, 3));
    TRY(need_number(c, "max_anisotropy", a->max_anisotropy, a->max_anisotropy >= 1, "at least 1"));
    TRY(shape_need_equal(c, count_of(c, 7), image_size(c), "elements of dl and of the image"));
    TRY(shape_need_static(c, coeffs, "the number of coefficients per splat"));
    size = dim_mul(c->mod->dims, 3, coeffs > 1 ? coeffs : 1);
    size = dim_mul(c->mod->dims, dim_add(c->mod->dims, size, 14), splats);
    return shape_result(c, RLX_DTYPE_f32, 1, &size);
}
