/* onnx_movement_test.c: ops of ONNX that move elements: pads that cut, and pads of no sense. */
#include "onnx_node_world.h"

static struct one pad(const int64_t pads[2], const float *x)
{
    struct one o = one_node("", "Pad", 13, 1);

    one_in_f32(&o, RLX_LIST(4), x);
    one_known(&o, RLX_DTYPE_i64, RLX_LIST(2), pads);
    return o;
}

TEST(onnx_movement, pads_below_zero_cut)
{
    static const float x[] = {1, 2, 3, 4};
    struct one o = pad((const int64_t[]){-1, 2}, x);

    expect_one(t, &o, 0, 0, 5, (const float[]){2, 3, 4, 0, 0});
}

/* Their sum, and what they are without a sign, need not be a number of 64 bits. */
TEST(onnx_movement, pads_without_sense_are_refused)
{
    static const int64_t pads[][2] = {{INT64_MIN, 0},
                                      {0, INT64_MIN},
                                      {-(INT64_C(1) << 62), -(INT64_C(1) << 62) - 1},
                                      {INT64_MAX, 1},
                                      {(INT64_C(1) << 40) + 1, 0}};
    static const float x[4] = {0};

    for (size_t i = 0; i < sizeof pads / sizeof *pads; i++) {
        struct one o = pad(pads[i], x);
        expect_one_refused(t, &o, RLX_ERROR_LIMIT, "pads of");
    }
}

/* Sizes to crop to, and diagonals, that are not numbers of elements. */
TEST(onnx_movement, sizes_without_sense_are_refused)
{
    static const int64_t sizes[] = {INT64_MIN + 10, -1, INT64_MAX}, *k = &sizes[2];
    static const float x[4] = {0}, odd = 0.5f;
    struct one o;

    for (size_t i = 0; i < 3; i++) {
        o = one_node("", "CenterCropPad", 18, 1);
        one_in_f32(&o, RLX_LIST(4), x);
        one_known(&o, RLX_DTYPE_i64, RLX_LIST(1), &sizes[i]);
        expect_one_refused(t, &o, RLX_ERROR_LIMIT, "a size of");
    }
    o = one_node("", "Trilu", 14, 1);
    one_in_f32(&o, RLX_LIST(2, 2), x);
    one_known(&o, RLX_DTYPE_i64, RLX_EMPTY, k);
    expect_one_refused(t, &o, RLX_ERROR_LIMIT, "not an integer");
    o = one_node("", "CumSum", 14, 1);
    one_in_f32(&o, RLX_LIST(2, 2), x);
    one_known(&o, RLX_DTYPE_f32, RLX_EMPTY, &odd);
    expect_one_refused(t, &o, RLX_ERROR_LIMIT, "not an integer");
}
