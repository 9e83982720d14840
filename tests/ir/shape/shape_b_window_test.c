/* shape_b_window_test.c: convolution, pooling and their gradients: what they give and refuse. */
#include <math.h>

#include "shape_given.h"

static const rlx_list EMPTY;

TEST(shape_window, conv)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_conv), worked = base;
    ir_value x = given(&b, "f32[2,6,8,9]"), w = given(&b, "f32[4,6,3,2]");

    /* the manual's example: 5 elements, kernel 3, stride 2, padding 1 */
    worked.conv.stride = RLX_LIST(2);
    worked.conv.padding = RLX_LIST(1);
    gives(&b, conv, &worked, "f32[1,1,3]", given(&b, "f32[1,1,5]"), given(&b, "f32[1,1,3]"));

    ir_value y = gives(&b, conv, NULL, "f32[2,4,6,8]", x, w);
    const struct attr_conv *stored = &ir_node(b.g, y)->attr.conv;
    expect_eq(t, stored->kernel_size.count, 2);
    expect_eq(t, stored->kernel_size.at[0], 3);
    expect_eq(t, stored->kernel_size.at[1], 2);
    expect_eq(t, stored->stride.count, 2);
    expect_eq(t, stored->stride.at[1], 1);
    expect_eq(t, stored->padding.count, 2);
    expect_eq(t, stored->padding.at[1], 0);
    expect_eq(t, stored->dilation.at[0], 1);

    accepts(&b, conv, base, attr.conv.kernel_size = RLX_LIST(3, 2), "f32[2,4,6,8]", x, w);
    accepts(&b, conv, base, attr.conv.dilation = RLX_LIST(3, 8), "f32[2,4,2,1]", x, w);
    accepts(&b, conv, base, attr.conv.padding = RLX_LIST(1, 0), "f32[2,4,8,8]", x, w);
    accepts(&b, conv, base, attr.conv.stride = RLX_LIST(5, 100), "f32[2,4,2,1]", x, w);
    accepts(&b, conv, base, attr.conv.groups = 2, "f32[2,4,6,8]", x, given(&b, "f32[4,3,3,2]"));
    gives(&b, conv, NULL, "f32[1,2,3,4,5]", given(&b, "f32[1,1,3,4,5]"),
          given(&b, "f32[2,1,1,1,1]"));
    gives(&b, conv, NULL, "f32[0,4,6,8]", given(&b, "f32[0,6,8,9]"), w);
    gives(&b, conv, NULL, "f32[2,4,6,8]", given(&b, "f16[2,6,8,9]"), w);
    build_close(&b);
}

TEST(shape_window, conv_refusals)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_conv);
    ir_value x = given(&b, "f32[2,6,8,9]"), w = given(&b, "f32[4,6,3,2]");

    refuses(&b, conv, base, attr.conv.kernel_size = RLX_LIST(2, 3), ATTRIBUTE,
            "kernel_size [2,3] differs from that of w, [3,2]", x, w);
    refuses(&b, conv, base, attr.conv.kernel_size = RLX_LIST(3), ATTRIBUTE, "kernel_size [3]", x,
            w);
    refuses(&b, conv, base, attr.conv.groups = 0, ATTRIBUTE, "groups is 0", x, w);
    refuses(&b, conv, base, attr.conv.groups = -1, ATTRIBUTE, "groups is -1", x, w);
    refuses(&b, conv, base, attr.conv.groups = 4, ATTRIBUTE, "groups 4 does not divide the 6", x,
            w);
    refuses(&b, conv, base, attr.conv.groups = 3, ATTRIBUTE, "groups 3 does not divide the 4", x,
            w);
    refuses(&b, conv, base, attr.conv.groups = 2, SHAPE,
            "channels per group of w and x differ: 6 and 3", x, w);
    refuses(&b, conv, base, attr.conv.stride = RLX_LIST(0, 1), ATTRIBUTE, "stride is 0", x, w);
    refuses(&b, conv, base, attr.conv.stride = RLX_LIST(1), ATTRIBUTE, "stride has 1 entries", x,
            w);
    refuses(&b, conv, base, attr.conv.padding = RLX_LIST(0, -1), ATTRIBUTE, "padding is -1", x, w);
    refuses(&b, conv, base, attr.conv.dilation = RLX_LIST(1, 0), ATTRIBUTE, "dilation is 0", x, w);
    refuses(&b, conv, base, attr.conv.dilation = RLX_LIST(4, 1), SHAPE,
            "a window of 9 does not fit axis 2 of 8", x, w);
    refuses(&b, conv, base, attr.conv.dilation = RLX_LIST(INT64_MAX, 1), LIMIT, "spans", x, w);
    refuses(&b, conv, base, attr.conv.padding = RLX_LIST(INT64_MAX, 0), LIMIT, "overflow", x, w);
    fails(&b, conv, NULL, SHAPE, "rank", given(&b, "f32[6,8]"), given(&b, "f32[4,6]"));
    fails(&b, conv, NULL, SHAPE, "rank", given(&b, "f32[1,1,1,1,1,1]"), w);
    fails(&b, conv, NULL, SHAPE, "different ranks: 4 and 3", x, given(&b, "f32[4,6,3]"));
    fails(&b, conv, NULL, SHAPE, "differ: 6 and 5", given(&b, "f32[2,5,8,9]"), w);
    fails(&b, conv, NULL, ATTRIBUTE, "kernel_size is 0", x, given(&b, "f32[4,6,0,2]"));
    fails(&b, conv, NULL, SHAPE, "a window of 3 does not fit", given(&b, "f32[2,6,2,9]"), w);
    fails(&b, conv, NULL, SHAPE, "fixed size", given(&b, "f32[2,c,8,9]"), w);
    fails(&b, conv, NULL, SHAPE, "fixed size", x, given(&b, "f32[4,6,k,2]"));
    fails(&b, conv, NULL, DTYPE, "i32", given(&b, "i32[2,6,8,9]"), given(&b, "i32[4,6,3,2]"));
    fails(&b, conv, NULL, DTYPE, "f64", x, given(&b, "f64[4,6,3,2]"));
    build_close(&b);
}

TEST(shape_window, symbolic_windows_are_expressions)
{
    struct build b;
    struct ir_type type = {0};
    rlx_error err;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_conv);
    base.conv.stride = RLX_LIST(2);

    gives(&b, conv, &base, "f32[n,4,(len-1)/2]", given(&b, "f32[n,1,len]"),
          given(&b, "f32[4,1,3]"));
    expect_ok(t, bind_symbols(&b, "n", 2, "len", 10, &type, NULL));
    expect_eq(t, type.dim[2], 4);
    expect_ok(t, bind_symbols(&b, "n", 2, "len", 3, &type, NULL));
    expect_eq(t, type.dim[2], 1);
    expect_status(t, bind_symbols(&b, "n", 2, "len", 2, NULL, &err), RLX_ERROR_SHAPE);
    expect_contains(t, err.message, "conv");
    build_close(&b);
}

TEST(shape_window, conv_backward_input)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_conv_backward_input);
    base.conv_backward_input.stride = RLX_LIST(2, 2);
    base.conv_backward_input.x_shape = RLX_LIST(2, 6, 8, 9);
    ir_value dy = given(&b, "f32[2,4,3,4]"), w = given(&b, "f32[4,6,3,2]");

    gives(&b, conv_backward_input, &base, "f32[2,6,8,9]", dy, w);
    /* another x gives the same dy: that is why x_shape exists */
    accepts(&b, conv_backward_input, base, attr.conv_backward_input.x_shape = RLX_LIST(2, 6, 7, 8),
            "f32[2,6,7,8]", dy, w);
    refuses(&b, conv_backward_input, base, attr.conv_backward_input.x_shape = RLX_LIST(2, 6, 9, 9),
            SHAPE, "dy", dy, w);
    refuses(&b, conv_backward_input, base, attr.conv_backward_input.x_shape = RLX_LIST(2, 6, 8),
            ATTRIBUTE, "x_shape has 3 sizes", dy, w);
    refuses(&b, conv_backward_input, base, attr.conv_backward_input.x_shape = RLX_LIST(2, 6, -8, 9),
            ATTRIBUTE, "x_shape", dy, w);
    refuses(&b, conv_backward_input, base, attr.conv_backward_input.x_shape = RLX_LIST(2, 5, 8, 9),
            SHAPE, "differ: 6 and 5", dy, w);
    refuses(&b, conv_backward_input, base, attr.conv_backward_input.x_shape = RLX_LIST(3, 6, 8, 9),
            SHAPE, "dy", dy, w);
    refuses(&b, conv_backward_input, base, attr.conv_backward_input.stride = EMPTY, SHAPE,
            "dy must be f32[2,4,6,8], not f32[2,4,3,4]", dy, w);
    fails(&b, conv_backward_input, &base, SHAPE, "dy", given(&b, "f32[2,5,3,4]"), w);
    fails(&b, conv_backward_input, &base, SHAPE, "dy", given(&b, "f32[2,4,3]"), w);
    fails(&b, conv_backward_input, &base, DTYPE, "f16", given(&b, "f16[2,4,3,4]"), w);
    build_close(&b);
}

TEST(shape_window, conv_backward_weight)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_conv_backward_weight);
    base.conv_backward_weight.kernel_size = RLX_LIST(3, 2);
    ir_value x = given(&b, "f32[2,6,8,9]"), dy = given(&b, "f32[2,4,6,8]");

    gives(&b, conv_backward_weight, &base, "f32[4,6,3,2]", x, dy);
    accepts(&b, conv_backward_weight, base, attr.conv_backward_weight.groups = 2, "f32[4,3,3,2]", x,
            dy);
    refuses(&b, conv_backward_weight, base, attr.conv_backward_weight.kernel_size = EMPTY,
            ATTRIBUTE, "kernel_size is missing", x, dy);
    refuses(&b, conv_backward_weight, base, attr.conv_backward_weight.kernel_size = RLX_LIST(3, 3),
            SHAPE, "dy must be f32[2,4,6,7], not f32[2,4,6,8]", x, dy);
    refuses(&b, conv_backward_weight, base, attr.conv_backward_weight.groups = 3, ATTRIBUTE,
            "groups 3 does not divide the 4", x, dy);
    fails(&b, conv_backward_weight, &base, SHAPE, "dy", x, given(&b, "f32[1,4,6,8]"));
    fails(&b, conv_backward_weight, &base, SHAPE, "fixed size", given(&b, "f32[2,c,8,9]"), dy);
    build_close(&b);
}

/* Standing for a transposed convolution with output_padding >= stride, there are windows of x that
 * dy does not have: 4 positions, stride 1, dilation 3, kernel 2, output_padding 2 make 9. */
TEST(shape_window, gradients_stand_for_transposed_convolutions)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr fwd = defaults(RLX_OP_conv_transpose), dw = defaults(RLX_OP_conv_backward_weight),
                  dx = defaults(RLX_OP_conv_backward_input);
    ir_value x = given(&b, "f32[1,1,4,4]"), w = given(&b, "f32[1,1,2,2]");
    fwd.conv_transpose.dilation = RLX_LIST(3, 3);
    fwd.conv_transpose.output_padding = RLX_LIST(2, 2);
    ir_value y = gives(&b, conv_transpose, &fwd, "f32[1,1,9,9]", x, w);

    dw.conv_backward_weight.kernel_size = RLX_LIST(2, 2);
    dw.conv_backward_weight.dilation = RLX_LIST(3, 3);
    gives(&b, conv_backward_weight, &dw, "f32[1,1,2,2]", y, x);
    fails(&b, conv_backward_weight, &dw, SHAPE, "sizes of dy", y, given(&b, "f32[1,1,3,4]"));
    fails(&b, conv_backward_weight, &dw, SHAPE, "windows of x", y, given(&b, "f32[1,1,4,7]"));
    dx.conv_backward_input.dilation = RLX_LIST(3, 3);
    dx.conv_backward_input.x_shape = RLX_LIST(1, 1, 9, 9);
    gives(&b, conv_backward_input, &dx, "f32[1,1,9,9]", x, w);
    build_close(&b);
}

TEST(shape_window, conv_transpose)
{
    struct build b;
    struct ir_type type = {0};
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_conv_transpose), twice = base;
    ir_value x = given(&b, "f32[1,6,8,8]"), w = given(&b, "f32[6,3,2,2]");
    twice.conv_transpose.stride = RLX_LIST(2, 2);

    gives(&b, conv_transpose, &twice, "f32[1,3,16,16]", x, w);
    accepts(&b, conv_transpose, twice, attr.conv_transpose.output_padding = RLX_LIST(1, 0),
            "f32[1,3,17,16]", x, w);
    accepts(&b, conv_transpose, twice, attr.conv_transpose.groups = 2, "f32[1,6,16,16]", x, w);
    accepts(&b, conv_transpose, base, attr.conv_transpose.padding = RLX_LIST(1, 2), "f32[1,3,7,5]",
            x, w);
    gives(&b, conv_transpose, NULL, "f32[1,2,4,4,4]", given(&b, "f32[1,1,2,2,2]"),
          given(&b, "f32[1,2,3,3,3]"));
    /* 1 + 1 - 2 = 0 is allowed, less is not */
    accepts(&b, conv_transpose, base, attr.conv_transpose.padding = RLX_LIST(1, 1), "f32[1,3,0,0]",
            given(&b, "f32[1,6,1,1]"), w);
    refuses(&b, conv_transpose, base, attr.conv_transpose.padding = RLX_LIST(2, 1), SHAPE,
            "negative", given(&b, "f32[1,6,1,1]"), w);
    refuses(&b, conv_transpose, twice, attr.conv_transpose.output_padding = RLX_LIST(2, 0),
            ATTRIBUTE, "output_padding is 2", x, w);
    refuses(&b, conv_transpose, base, attr.conv_transpose.output_padding = RLX_LIST(0, -1),
            ATTRIBUTE, "output_padding is -1", x, w);
    refuses(&b, conv_transpose, base, attr.conv_transpose.groups = 4, ATTRIBUTE, "does not divide",
            x, w);
    refuses(&b, conv_transpose, base, attr.conv_transpose.kernel_size = RLX_LIST(2, 3), ATTRIBUTE,
            "kernel_size", x, w);
    refuses(&b, conv_transpose, base, attr.conv_transpose.stride = RLX_LIST(INT64_MAX, 1), LIMIT,
            "overflow", x, w);
    fails(&b, conv_transpose, NULL, SHAPE, "rank", given(&b, "f32[1,6,8]"),
          given(&b, "f32[6,3,2]"));
    fails(&b, conv_transpose, NULL, SHAPE, "channels of x and w differ: 6 and 5", x,
          given(&b, "f32[5,3,2,2]"));
    fails(&b, conv_transpose, NULL, SHAPE, "rank", x, given(&b, "f32[6,3,2]"));

    gives(&b, conv_transpose, &twice, "f32[n,3,2*h,16]", given(&b, "f32[n,6,h,8]"), w);
    expect_ok(t, bind_symbols(&b, "n", 1, "h", 5, &type, NULL));
    expect_eq(t, type.dim[2], 10);
    build_close(&b);
}

TEST(shape_window, pool)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_pool);
    base.pool.kind = RLX_POOL_KIND_mean;
    base.pool.kernel_size = RLX_LIST(3);
    base.pool.stride = RLX_LIST(2);
    base.pool.padding = RLX_LIST(1);
    ir_value x = given(&b, "f32[1,1,4]");

    gives(&b, pool, &base, "f32[1,1,2]", x);
    accepts(&b, pool, base, attr.pool.stride = EMPTY, "f32[1,1,4]", x);
    accepts(&b, pool, base, attr.pool.kind = RLX_POOL_KIND_max, "i8[1,1,2]",
            given(&b, "i8[1,1,4]"));
    gives(&b, pool, &base, "f32[n,c,(len+1)/2]", given(&b, "f32[n,c,len]"));
    refuses(&b, pool, base, attr.pool.kind = 5, ATTRIBUTE, "kind", x);
    refuses(&b, pool, base, attr.pool.kernel_size = EMPTY, ATTRIBUTE, "kernel_size", x);
    refuses(&b, pool, base, attr.pool.kernel_size = RLX_LIST(1), SHAPE,
            "padding 1 is not smaller than kernel_size 1", x);
    refuses(&b, pool, base, attr.pool.kernel_size = RLX_LIST(0), ATTRIBUTE, "kernel_size is 0", x);
    refuses(&b, pool, base, attr.pool.kernel_size = RLX_LIST(7), SHAPE, "does not fit", x);
    refuses(&b, pool, base, attr.pool.kernel_size = RLX_LIST(3, 3), ATTRIBUTE, "kernel_size has 2",
            x);
    fails(&b, pool, &base, SHAPE, "spatial sizes", given(&b, "f32[1,1,0]"));
    fails(&b, pool, &base, DTYPE, "i8", given(&b, "i8[1,1,4]"));
    fails(&b, pool, &base, SHAPE, "rank", given(&b, "f32[1,4]"));
    fails(&b, pool, &base, DTYPE, "bool", given(&b, "bool[1,1,4]"));
    build_close(&b);
}

TEST(shape_window, max_pool_backward)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_max_pool_backward);
    base.max_pool_backward.kernel_size = RLX_LIST(3, 2);
    ir_value x = given(&b, "f32[2,6,8,9]"), dy = given(&b, "f32[2,6,6,8]");

    gives(&b, max_pool_backward, &base, "f32[2,6,8,9]", x, dy);
    fails(&b, max_pool_backward, &base, SHAPE, "dy must be f32[2,6,6,8], not f32[2,6,8,9]", x, x);
    fails(&b, max_pool_backward, &base, DTYPE, "f16", x, given(&b, "f16[2,6,6,8]"));
    refuses(&b, max_pool_backward, base, attr.max_pool_backward.padding = RLX_LIST(3, 0), SHAPE,
            "padding 3", x, dy);
    build_close(&b);
}

TEST(shape_window, im2col)
{
    struct build b;
    struct ir_type type = {0};
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_im2col);
    base.im2col.kernel_size = RLX_LIST(2, 2);
    base.im2col.padding = RLX_LIST(1, 1);
    ir_value x = given(&b, "f32[1,1,2,2]");

    gives(&b, im2col, &base, "f32[9,4]", x);
    refuses(&b, im2col, base, attr.im2col.kernel_size = EMPTY, ATTRIBUTE, "kernel_size", x);
    refuses(&b, im2col, base, attr.im2col.kernel_size = RLX_LIST(5, 1), SHAPE, "does not fit", x);
    fails(&b, im2col, &base, SHAPE, "rank must be 4", given(&b, "f32[1,1,2]"));
    gives(&b, im2col, &base, "f32[3*n*h+3*n,12]", given(&b, "f32[n,3,h,2]"));
    expect_ok(t, bind_symbols(&b, "n", 2, "h", 4, &type, NULL));
    expect_eq(t, type.dim[0], 2 * 5 * 3);
    fails(&b, im2col, &base, SHAPE, "fixed size", given(&b, "f32[1,c,2,2]"));
    build_close(&b);
}

TEST(shape_window, fused_conv_bias_act)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_fused_conv_bias_act), res = base;
    res.fused_conv_bias_act.has_residual = true;
    res.fused_conv_bias_act.activation = RLX_OP_relu;
    ir_value x = given(&b, "f32[2,6,8,9]"), w = given(&b, "f32[4,6,3,2]"),
             bias = given(&b, "f32[4]"), r = given(&b, "f32[2,4,6,8]");

    gives(&b, fused_conv_bias_act, &base, "f32[2,4,6,8]", x, w, bias);
    gives(&b, fused_conv_bias_act, &res, "f32[2,4,6,8]", x, w, bias, r);
    fails(&b, fused_conv_bias_act, &base, GRAPH, "takes 3 inputs", x, w, bias, r);
    fails(&b, fused_conv_bias_act, &res, GRAPH, "takes 4 inputs", x, w, bias);
    fails(&b, fused_conv_bias_act, &res, SHAPE, "residual must be f32[2,4,6,8]", x, w, bias, x);
    fails(&b, fused_conv_bias_act, &base, SHAPE, "bias must be f32[4], not f32[6]", x, w,
          given(&b, "f32[6]"));
    fails(&b, fused_conv_bias_act, &base, DTYPE, "f16", x, w, given(&b, "f16[4]"));
    refuses(&b, fused_conv_bias_act, base, attr.fused_conv_bias_act.activation = RLX_OP_add,
            ATTRIBUTE, "add", x, w, bias);
    refuses(&b, fused_conv_bias_act, base, attr.fused_conv_bias_act.activation = RLX_OP_not,
            ATTRIBUTE, "not", x, w, bias);
    refuses(&b, fused_conv_bias_act, base, attr.fused_conv_bias_act.groups = 5, ATTRIBUTE, "groups",
            x, w, bias);
    build_close(&b);
}

TEST(shape_window, qconv_2d)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_qconv_2d);
    base.qconv_2d.mult = 0.5f;
    ir_value x = given(&b, "i8[2,6,8,9]"), w = given(&b, "i8[4,6,3,2]"), bias = given(&b, "i32[4]");

    gives(&b, qconv_2d, &base, "i8[2,4,6,8]", x, w, bias);
    fails(&b, qconv_2d, &base, DTYPE, "x must be i8, not u8", given(&b, "u8[2,6,8,9]"), w, bias);
    fails(&b, qconv_2d, &base, DTYPE, "bias must be i32", x, w, given(&b, "f32[4]"));
    fails(&b, qconv_2d, &base, SHAPE, "bias", x, w, given(&b, "i32[5]"));
    fails(&b, qconv_2d, &base, SHAPE, "rank must be 4", given(&b, "i8[2,6,8]"), w, bias);
    refuses(&b, qconv_2d, base, attr.qconv_2d.x_zp = 128, ATTRIBUTE, "x_zp is 128", x, w, bias);
    refuses(&b, qconv_2d, base, attr.qconv_2d.out_zp = -129, ATTRIBUTE, "out_zp is -129", x, w,
            bias);
    refuses(&b, qconv_2d, base, attr.qconv_2d.mult = NAN, ATTRIBUTE, "mult", x, w, bias);
    build_close(&b);
}

/* What only the data tells stays so, and agrees with anything. */
TEST(shape_window, unknown_sizes)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr pool = defaults(RLX_OP_pool);
    pool.pool.kind = RLX_POOL_KIND_max;
    pool.pool.kernel_size = RLX_LIST(2);

    gives(&b, conv, NULL, "f32[?,4,?]", given(&b, "f32[?,2,?]"), given(&b, "f32[4,2,3]"));
    gives(&b, pool, &pool, "f32[?,?,?]", given(&b, "f32[?,?,?]"));
    fails(&b, conv, NULL, SHAPE, "fixed size", given(&b, "f32[1,?,9]"), given(&b, "f32[4,2,3]"));
    gives(&b, matmul, NULL, "f32[?,5]", given(&b, "f32[?,?]"), given(&b, "f32[3,5]"));
    gives(&b, fft, NULL, "f32[?]", given(&b, "f32[?]"));
    gives(&b, fused_swiglu, NULL, "f32[?]", given(&b, "f32[?]"));
    build_close(&b);
}
