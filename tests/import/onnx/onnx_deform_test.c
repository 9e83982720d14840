/* onnx_deform_test.c: DeformConv and RoiAlign, against values worked out elsewhere by their
 * definitions, and what they refuse. */
#include "onnx_node_world.h"

/* 0, 1 .. below `period`, times a step, from a number on, over and over. */
static void fill(float *at, size_t count, int period, float step, float from)
{
    for (size_t i = 0; i < count; i++)
        at[i] = (float)((int)i % period) * step + from;
}

static float picture[2 * 4 * 3 * 4], weights[2 * 2 * 2 * 2], offsets[192], masks[96];

static struct one deform(int64_t offset_channels, int64_t columns, bool symbolic)
{
    struct one o = one_node("", "DeformConv", 19, 1);
    static const float bias[] = {10, 20};

    fill(picture, 96, 11, 1, -5);
    fill(weights, 16, 5, 1, -2);
    fill(offsets, 192, 9, 0.25f, -1);
    fill(masks, 96, 4, 0.5f, 0);
    o.symbolic = symbolic ? 0 : -1; /* the batch */
    one_in_f32(&o, RLX_LIST(2, 4, 3, 4), picture);
    o.symbolic = -1;
    one_known(&o, RLX_DTYPE_f32, RLX_LIST(2, 2, 2, 2), weights);
    o.symbolic = symbolic ? 0 : -1;
    one_in_f32(&o, RLX_LIST(2, offset_channels, 3, columns), offsets);
    o.symbolic = -1;
    one_known(&o, RLX_DTYPE_f32, RLX_LIST(2), bias);
    o.symbolic = symbolic ? 0 : -1;
    one_in_f32(&o, RLX_LIST(2, 8, 3, columns), masks);
    one_int(&o, "group", 2);
    one_int(&o, "offset_group", 2);
    ONE_INTS(&o, "strides", 1, 2);
    ONE_INTS(&o, "dilations", 2, 1);
    ONE_INTS(&o, "pads", 1, 0, 1, 1);
    return o;
}

TEST(onnx_deform, groups_strides_and_a_mask)
{
    static const float want[] = {6.5f,    11.25f,    11,      9.875f,   -1,       25.25f,
                                 15.125f, 4.5f,      21,      26.0625f, 20.25f,   18.125f,
                                 10.25f,  6.5f,      13.125f, 7.8125f,  -3.4375f, 22.0625f,
                                 10.5f,   17.71875f, 21,      26.625f,  15,       23.25f};
    struct one o = deform(16, 2, true);

    expect_one(t, &o, 0, 1e-4, 24, want);
    o = deform(16, 2, false);
    expect_one_survives(t, &o);
}

TEST(onnx_deform, offsets_that_do_not_fit_are_named)
{
    struct one o = deform(8, 2, true);

    expect_one_refused(t, &o, RLX_ERROR_SHAPE, "channels of picture, weights and offsets");
    o = deform(16, 5, true);
    expect_one_refused(t, &o, RLX_ERROR_SHAPE, "offsets for 5 places along axis 3");
}

/* ---- RoiAlign ---- */

static struct one align(const char *mode, int64_t samples)
{
    static const float regions[] = {0, 0, 3, 2, 1.5f, -1.5f, 9, 2.5f, 2, 1, 2.2f, 1.1f};
    static const int64_t of[] = {0, 1, 1};
    struct one o = one_node("", "RoiAlign", 16, 1);

    fill(picture, 48, 7, 1, 0);
    one_in_f32(&o, RLX_LIST(2, 2, 3, 4), picture);
    o.symbolic = 0; /* the number of regions */
    one_in_f32(&o, RLX_LIST(3, 4), regions);
    one_in(&o, RLX_DTYPE_i64, RLX_LIST(3), of);
    one_int(&o, "output_height", 2);
    one_int(&o, "output_width", 1);
    one_int(&o, "sampling_ratio", samples);
    one_float(&o, "spatial_scale", 0.5f);
    one_text(&o, "mode", mode);
    return o;
}

TEST(onnx_deform, regions_are_averaged_or_their_largest_taken)
{
    static const float mean[] = {0.3125f,  1.3125f,    5.3125f, 4.5625f, 5.09375f, 4.34375f,
                                 3.09375f, 3.0546875f, 3.5125f, 3.4375f, 1.6f,     1.7f};
    static const float most[] = {0.625f, 1.5f, 5,         4.375f,    6,          6,
                                 4,      4,    2.285625f, 2.228125f, 1.1428126f, 1.1140625f};
    struct one o = align("avg", 2);

    expect_one(t, &o, 0, 1e-5, 12, mean);
    o = align("max", 2);
    expect_one(t, &o, 0, 1e-5, 12, most);
}

TEST(onnx_deform, regions_that_cannot_be_sampled_are_named)
{
    struct one o = align("avg", 0);

    expect_one_refused(t, &o, RLX_ERROR_UNSUPPORTED, "depends on the regions (sampling_ratio 0)");
    o = align("median", 2);
    expect_one_refused(t, &o, RLX_ERROR_ATTRIBUTE, "mode \"median\"");
    o = align("avg", 1 << 20);
    expect_one_refused(t, &o, RLX_ERROR_ATTRIBUTE, "1048576 samples in 2 x 1 bins");
}
