/* shape_b_splat_test.c: splat rendering by element counts: what it gives and refuses. */
#include <math.h>

#include "shape_given.h"

/* The seven operands of a scene of 5 splats with 4 coefficients each. */
struct scene {
    ir_value positions, scales, rotations, opacities, colors, sh, meta;
};

static struct scene scene_of(struct build *b)
{
    return (struct scene){
        given(b, "f32[5,3]"), given(b, "f32[15]"),    given(b, "f32[5,4]"), given(b, "f32[5,1]"),
        given(b, "f32[3,5]"), given(b, "f32[5,4,3]"), given(b, "f32[23]"),
    };
}

#define ALL(s) (s).positions, (s).scales, (s).rotations, (s).opacities, (s).colors, (s).sh, (s).meta

TEST(shape_splat, render_and_prepare)
{
    struct build b;
    require(t, build_open(t, &b));
    struct scene s = scene_of(&b);
    union ir_attr base = defaults(RLX_OP_gaussian_splat_prepare);
    base.gaussian_splat.width = 33;
    base.gaussian_splat.height = 20;

    gives(&b, gaussian_splat_render, NULL, "f32[16384]", ALL(s));
    gives(&b, gaussian_splat_render, &base, "f32[2640]", ALL(s));
    /* 15 * 5 + 576 + 2 * 3 * 2 tiles + 3 * 660 rays + 11 */
    gives(&b, gaussian_splat_prepare, &base, "f32[2654]", ALL(s));
    gives(&b, gaussian_splat_render, NULL, "f32[16384]", s.positions, s.scales, s.rotations,
          s.opacities, s.colors, given(&b, "f32[0]"), given(&b, "f32[4,6]"));
    build_close(&b);
}

TEST(shape_splat, operands)
{
    struct build b;
    require(t, build_open(t, &b));
    struct scene s = scene_of(&b), x;
    ir_value none = given(&b, "f32[0,3]");

#define REFUSES(field, type, status, part)                            \
    do {                                                              \
        x = s;                                                        \
        x.field = given(&b, type);                                    \
        fails(&b, gaussian_splat_render, NULL, status, part, ALL(x)); \
    } while (0)
    REFUSES(positions, "f32[16]", SHAPE, "16 is not a multiple of 3");
    REFUSES(positions, "f32[6,3]", SHAPE, "scales and positions differ: 15 and 18");
    REFUSES(scales, "f32[14]", SHAPE, "14 and 15");
    REFUSES(rotations, "f32[5,3]", SHAPE, "15 and 20");
    REFUSES(opacities, "f32[4]", SHAPE, "4 and 5");
    REFUSES(colors, "f32[5,4]", SHAPE, "20 and 15");
    REFUSES(sh, "f32[16]", SHAPE, "16 is not a multiple of 15");
    REFUSES(meta, "f32[22]", SHAPE, "22 is less than 23");
    REFUSES(opacities, "f64[5]", DTYPE, "opacities must be f32, not f64");
    REFUSES(positions, "f32[16777217,3]", SHAPE, "too many splats");
#undef REFUSES
    fails(&b, gaussian_splat_render, NULL, SHAPE, "splats", none, none, none, none, none, none,
          s.meta);
    build_close(&b);
}

TEST(shape_splat, attributes)
{
    struct build b;
    require(t, build_open(t, &b));
    struct scene s = scene_of(&b);
    union ir_attr base = defaults(RLX_OP_gaussian_splat_render);

#define REFUSES(change, part) \
    refuses(&b, gaussian_splat_render, base, attr.gaussian_splat.change, ATTRIBUTE, part, ALL(s))
    REFUSES(width = 0, "width is 0");
    REFUSES(height = 0, "height is 0");
    REFUSES(height = -1, "height is -1");
    REFUSES(tile_size = 0, "tile_size is 0");
    REFUSES(width = INT64_MAX, "width");
    REFUSES(width = (1 << 22) + 1, "pixels"); /* times 64 */
    REFUSES(max_splat_steps = -1, "max_splat_steps");
    REFUSES(max_list_entries = 0, "max_list_entries is 0");
    REFUSES(max_list_entries = (1 << 24) + 1, "max_list_entries");
    REFUSES(alpha_cutoff = 0, "alpha_cutoff is 0");
    REFUSES(alpha_cutoff = 1, "alpha_cutoff is 1");
    REFUSES(alpha_cutoff = NAN, "alpha_cutoff");
    REFUSES(radius_scale = 0, "radius_scale is 0");
    REFUSES(radius_scale = INFINITY, "radius_scale");
    REFUSES(transmittance_threshold = 1, "transmittance_threshold is 1");
    REFUSES(transmittance_threshold = -0.5f, "transmittance_threshold is -0.5");
#undef REFUSES
    accepts(&b, gaussian_splat_render, base, attr.gaussian_splat.width = 1 << 22, "f32[1073741824]",
            ALL(s));
    accepts(&b, gaussian_splat_render, base, attr.gaussian_splat.max_splat_steps = 0, "f32[16384]",
            ALL(s));
    accepts(&b, gaussian_splat_render, base, attr.gaussian_splat.transmittance_threshold = 0,
            "f32[16384]", ALL(s));
    build_close(&b);
}

TEST(shape_splat, rasterize)
{
    struct build b;
    struct ir_type type = {0};
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_gaussian_splat_rasterize);
    base.gaussian_splat_rasterize.width = 33;
    base.gaussian_splat_rasterize.height = 20;
    ir_value meta = given(&b, "f32[23]"), prep = given(&b, "f32[2654]");

    gives(&b, gaussian_splat_rasterize, &base, "f32[2640]", prep, meta);
    fails(&b, gaussian_splat_rasterize, &base, SHAPE, "not a multiple of 15",
          given(&b, "f32[2655]"), meta);
    fails(&b, gaussian_splat_rasterize, &base, SHAPE, "prep", given(&b, "f32[2579]"), meta);
    fails(&b, gaussian_splat_rasterize, &base, SHAPE, "prep", given(&b, "f32[3]"), meta);
    fails(&b, gaussian_splat_rasterize, &base, SHAPE, "22 is less than 23", prep,
          given(&b, "f32[22]"));
    fails(&b, gaussian_splat_rasterize, &base, DTYPE, "prep", given(&b, "u8[2654]"), meta);
    refuses(&b, gaussian_splat_rasterize, base, attr.gaussian_splat_rasterize.alpha_cutoff = 2,
            ATTRIBUTE, "alpha_cutoff is 2", prep, meta);
    refuses(&b, gaussian_splat_rasterize, base, attr.gaussian_splat_rasterize.width = 0, ATTRIBUTE,
            "width is 0", prep, meta);

    gives(&b, gaussian_splat_rasterize, &base, "f32[2640]", given(&b, "f32[p]"), meta);
    expect_ok(t, bind_symbols(&b, "p", 2654, NULL, 0, &type, NULL));
    expect_status(t, bind_symbols(&b, "p", 2653, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);
    expect_status(t, bind_symbols(&b, "p", 10, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);
    build_close(&b);
}

TEST(shape_splat, render_backward)
{
    struct build b;
    require(t, build_open(t, &b));
    struct scene s = scene_of(&b);
    union ir_attr base = defaults(RLX_OP_gaussian_splat_render_backward);
    ir_value dl = given(&b, "f32[64,64,4]");

    /* 14 * 5 and 3 * 4 * 5 */
    gives(&b, gaussian_splat_render_backward, NULL, "f32[130]", ALL(s), dl);
    gives(&b, gaussian_splat_render_backward, NULL, "f32[85]", s.positions, s.scales, s.rotations,
          s.opacities, s.colors, given(&b, "f32[0]"), s.meta, dl);
    fails(&b, gaussian_splat_render_backward, NULL, SHAPE,
          "dl and of the image differ: 23 and 16384", ALL(s), s.meta);
    fails(&b, gaussian_splat_render_backward, NULL, DTYPE, "dl", ALL(s), given(&b, "f16[16384]"));
#define REFUSES(change, part)                                                                     \
    refuses(&b, gaussian_splat_render_backward, base, attr.gaussian_splat_render_backward.change, \
            ATTRIBUTE, part, ALL(s), dl)
    REFUSES(loss_grad_clip = -1, "loss_grad_clip is -1");
    REFUSES(loss_grad_clip = NAN, "loss_grad_clip");
    REFUSES(sh_band = 4, "sh_band is 4");
    REFUSES(sh_band = -1, "sh_band is -1");
    REFUSES(max_anisotropy = 0.5f, "max_anisotropy is 0.5");
    REFUSES(tile_size = 0, "tile_size is 0");
    REFUSES(transmittance_threshold = 2, "transmittance_threshold is 2");
#undef REFUSES
    build_close(&b);
}

TEST(shape_splat, symbolic_scenes)
{
    struct build b;
    struct ir_type type = {0};
    require(t, build_open(t, &b));
    struct scene s = {
        given(&b, "f32[n,3]"), given(&b, "f32[n,3]"),   given(&b, "f32[n,4]"), given(&b, "f32[n]"),
        given(&b, "f32[n,3]"), given(&b, "f32[n,4,3]"), given(&b, "f32[23]"),
    };
    ir_value dl = given(&b, "f32[16384]");

    gives(&b, gaussian_splat_render, NULL, "f32[16384]", ALL(s));
    gives(&b, gaussian_splat_prepare, NULL, "f32[15*n+12907]", ALL(s));
    gives(&b, gaussian_splat_render_backward, NULL, "f32[26*n]", ALL(s), dl);
    expect_ok(t, bind_symbols(&b, "n", 7, NULL, 0, &type, NULL));
    expect_eq(t, type.dim[0], 26 * 7);
    expect_status(t, bind_symbols(&b, "n", 0, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);

    /* how many coefficients a splat has is open until both are bound */
    s.sh = given(&b, "f32[m]");
    gives(&b, gaussian_splat_render, NULL, "f32[16384]", ALL(s));
    fails(&b, gaussian_splat_render_backward, NULL, SHAPE, "fixed size", ALL(s), dl);
    expect_ok(t, bind_symbols(&b, "n", 2, "m", 12, &type, NULL));
    expect_status(t, bind_symbols(&b, "n", 2, "m", 13, NULL, NULL), RLX_ERROR_SHAPE);
    build_close(&b);
}
