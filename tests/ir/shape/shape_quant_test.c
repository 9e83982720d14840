/* shape_quant_test.c: scales per tensor and per channel. */
#include <math.h>

#include "shape_build.h"

static struct ir_blob floats(const float *at, size_t len)
{
    return (struct ir_blob){at, len};
}

TEST(shape_quant, quantize)
{
    static const float scale[] = {0.5f, 0, -1}, zero[] = {-128, 0, 127};
    static const float bad[] = {1, (float)NAN, INFINITY}, off[] = {0.5f, 128, -129, (float)NAN};
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_f16, RLX_LIST(2, 3));
    ir_value q = build_input(&b, RLX_DTYPE_i8, RLX_LIST(2, 3));
    ir_value open = build_input(&b, RLX_DTYPE_f32, RLX_LIST(symbol(&b, "s"), 3));
    union ir_attr a = defaults(RLX_OP_quantize);

    fails(&b, quantize, &a, ATTRIBUTE, "0 scales for 1 channels of f16[2,3]", x);
    a.quantize.scales = floats(scale, 1);
    gives(&b, quantize, &a, "i8[2,3]", x);
    gives(&b, dequantize, &a, "f32[2,3]", q);
    gives(&b, quantize, &a, "i8[s,3]", open);
    fails(&b, quantize, &a, DTYPE, "i8", q);
    fails(&b, dequantize, &a, DTYPE, "f16; allowed: i8", x);
    a.quantize.axis = -1;
    fails(&b, quantize, &a, ATTRIBUTE, "1 scales for 3 channels", x);
    a.quantize.scales = floats(scale, 3);
    ir_value v = gives(&b, quantize, &a, "i8[2,3]", x);
    expect_eq(t, ir_node(b.g, v)->attr.quantize.axis, 1);
    a.quantize.zero_points = floats(zero, 3);
    gives(&b, dequantize, &a, "f32[2,3]", q);
    gives(&b, quantize, &a, "i8[s,3]", open);
    a.quantize.zero_points = floats(zero, 2);
    fails(&b, quantize, &a, ATTRIBUTE, "2 zero_points for 3 scales", x);
    a.quantize.axis = 0;
    fails(&b, quantize, &a, SHAPE, "fixed size, not s", open);
    a.quantize.axis = 2;
    fails(&b, quantize, &a, ATTRIBUTE, "axis is 2", x);
    for (size_t i = 1; i < 3; i++) {
        a = defaults(RLX_OP_quantize);
        a.quantize.scales = floats(&bad[i], 1);
        fails(&b, quantize, &a, ATTRIBUTE, "scales[0]", x);
    }
    for (size_t i = 0; i < 4; i++) {
        a = defaults(RLX_OP_quantize);
        a.quantize.scales = floats(scale, 1);
        a.quantize.zero_points = floats(&off[i], 1);
        fails(&b, dequantize, &a, ATTRIBUTE, "zero_points[0]", q);
    }
    build_close(&b);
}

TEST(shape_quant, fake_quantize)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 3));
    ir_value ints = build_input(&b, RLX_DTYPE_i8, RLX_LIST(2, 3));
    ir_value s0 = build_input(&b, RLX_DTYPE_f32, SCALAR);
    ir_value s1 = build_input(&b, RLX_DTYPE_f32, RLX_LIST(1));
    ir_value s3 = build_input(&b, RLX_DTYPE_f32, RLX_LIST(3));
    ir_value half = build_input(&b, RLX_DTYPE_f16, SCALAR);
    ir_value state = build_leaf(&b, RLX_OP_state, RLX_DTYPE_f32, RLX_LIST(3));
    union ir_attr a = defaults(RLX_OP_fake_quantize);

    gives(&b, fake_quantize, &a, "f32[2,3]", x);
    fails(&b, fake_quantize, &a, GRAPH, "takes 1 input with scale_mode per_batch, got 2", x, s0);
    fails(&b, fake_quantize, &a, DTYPE, "i8", ints);
    static const int64_t bad_bits[] = {0, 1, 3, 16, -8};
    for (size_t i = 0; i < 5; i++) {
        a.fake_quantize.bits = bad_bits[i];
        fails(&b, fake_quantize, &a, ATTRIBUTE, "bits", x);
    }
    a.fake_quantize.bits = 2;
    a.fake_quantize.axis = -1;
    gives(&b, fake_quantize, &a, "f32[2,3]", x);
    a.fake_quantize.axis = 2;
    fails(&b, fake_quantize, &a, ATTRIBUTE, "axis is 2", x);
    a.fake_quantize.axis = RLX_ABSENT;
    a.fake_quantize.ste = 4;
    fails(&b, fake_quantize, &a, ATTRIBUTE, "ste", x);
    a.fake_quantize.ste = RLX_STE_KIND_hard_tanh;

    a.fake_quantize.scale_mode = RLX_SCALE_MODE_fixed;
    fails(&b, fake_quantize, &a, GRAPH, "takes 2 inputs with scale_mode ema or fixed", x);
    gives(&b, fake_quantize, &a, "f32[2,3]", x, s0);
    gives(&b, fake_quantize, &a, "f32[2,3]", x, s1);
    fails(&b, fake_quantize, &a, SHAPE, "scales is f32[3]; f32[2,3] has 1 channel", x, s3);
    fails(&b, fake_quantize, &a, DTYPE, "f16", x, half);
    a.fake_quantize.axis = 1;
    gives(&b, fake_quantize, &a, "f32[2,3]", x, s3);
    fails(&b, fake_quantize, &a, SHAPE, "3 channels", x, s1);
    fails(&b, fake_quantize, &a, SHAPE, "f32[]", x, s0);

    a.fake_quantize.scale_mode = RLX_SCALE_MODE_ema;
    fails(&b, fake_quantize, &a, GRAPH, "state leaf", x, s3);
    a.fake_quantize.decay = 1.5f;
    fails(&b, fake_quantize, &a, ATTRIBUTE, "decay is 1.5", x, state);
    a.fake_quantize.decay = (float)NAN;
    fails(&b, fake_quantize, &a, ATTRIBUTE, "decay", x, state);
    a.fake_quantize.decay = 1;
    gives(&b, fake_quantize, &a, "f32[2,3]", x, state);
    build_close(&b);
}

TEST(shape_quant, gradients)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 3));
    ir_value dy = build_input(&b, RLX_DTYPE_f32, RLX_LIST(symbol(&b, "s"), 3));
    ir_value flat = build_input(&b, RLX_DTYPE_f32, RLX_LIST(6));
    ir_value half = build_input(&b, RLX_DTYPE_f16, RLX_LIST(2, 3));
    ir_value s3 = build_input(&b, RLX_DTYPE_f32, RLX_LIST(3));
    ir_value s0 = build_input(&b, RLX_DTYPE_f32, SCALAR);
    union ir_attr a = defaults(RLX_OP_fake_quantize_lsq);

    gives(&b, fake_quantize_lsq, &a, "f32[2,3]", x, s0);
    fails(&b, fake_quantize_lsq, &a, SHAPE, "scale is f32[3]", x, s3);
    a.fake_quantize_lsq.axis = 1;
    a.fake_quantize_lsq.bits = 4;
    gives(&b, fake_quantize_lsq, &a, "f32[2,3]", x, s3);
    a.fake_quantize_lsq.bits = 5;
    fails(&b, fake_quantize_lsq, &a, ATTRIBUTE, "bits is 5", x, s3);

    a = defaults(RLX_OP_fake_quantize_lsq_backward_x);
    a.fake_quantize_lsq_backward.axis = -1;
    gives(&b, fake_quantize_lsq_backward_x, &a, "f32[2,3]", x, s3, dy);
    gives(&b, fake_quantize_lsq_backward_scale, &a, "f32[3]", x, s3, x);
    fails(&b, fake_quantize_lsq_backward_x, &a, SHAPE, "f32[6]", x, s3, flat);
    fails(&b, fake_quantize_lsq_backward_x, &a, DTYPE, "f16", x, s3, half);
    fails(&b, fake_quantize_lsq_backward_scale, &a, SHAPE, "scale is f32[]", x, s0, x);

    a = defaults(RLX_OP_fake_quantize_backward);
    gives(&b, fake_quantize_backward, &a, "f32[2,3]", x, dy);
    fails(&b, fake_quantize_backward, &a, GRAPH, "takes 2 inputs", x, s0, x);
    fails(&b, fake_quantize_backward, &a, SHAPE, "x and dy must have one shape", x, flat);
    a.fake_quantize_backward.scale_mode = RLX_SCALE_MODE_ema;
    gives(&b, fake_quantize_backward, &a, "f32[2,3]", x, s0, x);
    fails(&b, fake_quantize_backward, &a, GRAPH, "takes 3 inputs", x, x);
    fails(&b, fake_quantize_backward, &a, SHAPE, "scales is f32[3]", x, s3, x);
    build_close(&b);
}
