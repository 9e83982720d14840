/* shape_b_norm_test.c: normalisations and their gradients: what they give and refuse. */
#include <math.h>

#include "shape_given.h"

TEST(shape_norm, layer_norm)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_layer_norm);
    ir_value x = given(&b, "f32[2,3,4]"), g = given(&b, "f32[4]"), g3 = given(&b, "f32[3]");

    ir_value y = gives(&b, layer_norm, NULL, "f32[2,3,4]", x, g, g);
    expect_eq(t, ir_node(b.g, y)->attr.layer_norm.axis, 2);
    accepts(&b, layer_norm, base, attr.layer_norm.axis = 1, "f32[2,3,4]", x, g3, g3);
    accepts(&b, layer_norm, base, attr.layer_norm.eps = 0, "f32[2,3,4]", x, g, g);
    gives(&b, layer_norm, NULL, "f32[n,s,4]", given(&b, "f32[n,s,4]"), g, g);
    gives(&b, layer_norm, NULL, "f16[2,4]", given(&b, "f16[2,4]"), g, given(&b, "f16[4]"));
    gives(&b, layer_norm, NULL, "f32[2,0]", given(&b, "f32[2,0]"), given(&b, "f32[0]"),
          given(&b, "f32[0]"));

    fails(&b, layer_norm, NULL, SHAPE, "gamma must be f32[4], not f32[3]", x, g3, g);
    fails(&b, layer_norm, NULL, SHAPE, "beta must be f32[4], not f32[1,4]", x, g,
          given(&b, "f32[1,4]"));
    fails(&b, layer_norm, NULL, SHAPE, "rank", given(&b, "f32[]"), g, g);
    fails(&b, layer_norm, NULL, SHAPE, "fixed size", given(&b, "f32[4,n]"), g, g);
    fails(&b, layer_norm, NULL, DTYPE, "f16", x, given(&b, "f16[4]"), g);
    fails(&b, layer_norm, NULL, DTYPE, "f64", given(&b, "f64[2,4]"), g, g);
    fails(&b, layer_norm, NULL, DTYPE, "i32", given(&b, "i32[2,4]"), g, g);
    fails(&b, layer_norm, NULL, GRAPH, "takes 3 inputs, got 2", x, g);
    refuses(&b, layer_norm, base, attr.layer_norm.axis = 3, ATTRIBUTE, "axis is 3", x, g, g);
    refuses(&b, layer_norm, base, attr.layer_norm.axis = -4, ATTRIBUTE, "axis is -4", x, g, g);
    refuses(&b, layer_norm, base, attr.layer_norm.eps = -1e-5f, ATTRIBUTE, "eps is -1e-5", x, g, g);
    refuses(&b, layer_norm, base, attr.layer_norm.eps = NAN, ATTRIBUTE, "eps", x, g, g);
    refuses(&b, layer_norm, base, attr.layer_norm.eps = INFINITY, ATTRIBUTE, "eps", x, g, g);
    build_close(&b);
}

TEST(shape_norm, layer_norm_backward)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = given(&b, "f32[2,3,4]"), g = given(&b, "f32[4]"), dy = given(&b, "f32[2,3,4]");
    union ir_attr axis = defaults(RLX_OP_layer_norm_backward_gamma);

    gives(&b, layer_norm_backward_input, NULL, "f32[2,3,4]", x, g, dy);
    gives(&b, layer_norm_backward_gamma, NULL, "f32[4]", x, dy);
    accepts(&b, layer_norm_backward_gamma, axis, attr.layer_norm_backward.axis = 0, "f32[2]", x,
            dy);
    fails(&b, layer_norm_backward_input, NULL, SHAPE, "f32[2,3,5]", x, g, given(&b, "f32[2,3,5]"));
    fails(&b, layer_norm_backward_input, NULL, SHAPE, "gamma", x, given(&b, "f32[3]"), dy);
    fails(&b, layer_norm_backward_gamma, NULL, DTYPE, "f16", x, given(&b, "f16[2,3,4]"));
    refuses(&b, layer_norm_backward_gamma, axis, attr.layer_norm_backward.eps = -1, ATTRIBUTE,
            "eps", x, dy);
    build_close(&b);
}

TEST(shape_norm, rms_norm)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_rms_norm);
    ir_value x = given(&b, "bf16[n,4]"), g = given(&b, "f32[4]"), h = given(&b, "bf16[4]");

    gives(&b, rms_norm, NULL, "bf16[n,4]", x, g);
    gives(&b, rms_norm, NULL, "bf16[n,4]", x, g, h);
    fails(&b, rms_norm, NULL, SHAPE, "beta must be f32[4], not f32[5]", x, g, given(&b, "f32[5]"));
    fails(&b, rms_norm, NULL, SHAPE, "gamma must be f32[4], not f32[]", x, given(&b, "f32[]"));
    fails(&b, rms_norm, NULL, DTYPE, "gamma", x, given(&b, "f16[4]"));
    refuses(&b, rms_norm, base, attr.rms_norm.eps = -1, ATTRIBUTE, "eps is -1", x, g);
    refuses(&b, rms_norm, base, attr.rms_norm.axis = 2, ATTRIBUTE, "axis", x, g);

    /* gradients have the type of what they belong to */
    ir_value dy = given(&b, "bf16[n,4]");
    gives(&b, rms_norm_backward_input, NULL, "bf16[n,4]", x, g, dy);
    gives(&b, rms_norm_backward_input, NULL, "bf16[n,4]", x, g, h, dy);
    gives(&b, rms_norm_backward_gamma, NULL, "f32[4]", x, g, h, dy);
    gives(&b, rms_norm_backward_gamma, NULL, "f32[4]", x, g, dy);
    gives(&b, rms_norm_backward_beta, NULL, "bf16[4]", x, g, h, dy);
    gives(&b, rms_norm_backward_beta, NULL, "f32[4]", x, g, dy);
    fails(&b, rms_norm_backward_beta, NULL, SHAPE, "bf16[4]", x, g, h);
    fails(&b, rms_norm_backward_input, NULL, DTYPE, "f32", x, g, given(&b, "f32[n,4]"));
    build_close(&b);
}

TEST(shape_norm, group_norm)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_group_norm),
                  back = defaults(RLX_OP_group_norm_backward_beta);
    base.group_norm.num_groups = back.group_norm_backward.num_groups = 3;
    ir_value x = given(&b, "f32[2,6,h,w]"), g = given(&b, "f32[6]"), dy = given(&b, "f32[2,6,h,w]");

    gives(&b, group_norm, &base, "f32[2,6,h,w]", x, g, g);
    gives(&b, group_norm, &base, "f32[2,6]", given(&b, "f32[2,6]"), g, g);
    refuses(&b, group_norm, base, attr.group_norm.num_groups = 4, ATTRIBUTE,
            "num_groups 4 does not divide the 6 channels", x, g, g);
    refuses(&b, group_norm, base, attr.group_norm.num_groups = 0, ATTRIBUTE, "num_groups is 0", x,
            g, g);
    refuses(&b, group_norm, base, attr.group_norm.num_groups = -3, ATTRIBUTE, "num_groups is -3", x,
            g, g);
    refuses(&b, group_norm, base, attr.group_norm.num_groups = RLX_ABSENT, ATTRIBUTE, "num_groups",
            x, g, g);
    fails(&b, group_norm, &base, SHAPE, "rank", given(&b, "f32[6]"), g, g);
    fails(&b, group_norm, &base, SHAPE, "fixed size", given(&b, "f32[2,c]"), g, g);
    fails(&b, group_norm, &base, SHAPE, "gamma", x, given(&b, "f32[3]"), g);

    gives(&b, group_norm_backward_input, &back, "f32[2,6,h,w]", x, g, dy);
    gives(&b, group_norm_backward_gamma, &back, "f32[6]", x, dy);
    gives(&b, group_norm_backward_beta, &back, "f32[6]", x, dy);
    fails(&b, group_norm_backward_beta, &back, SHAPE, "dy and x must have one shape", x,
          given(&b, "f32[2,6,h]"));
    refuses(&b, group_norm_backward_gamma, back, attr.group_norm_backward.num_groups = 5, ATTRIBUTE,
            "does not divide", x, dy);
    build_close(&b);
}

TEST(shape_norm, layer_norm_2d_and_batch_norm)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr nchw = defaults(RLX_OP_batch_norm_inference),
                  back = defaults(RLX_OP_batch_norm_inference_backward_beta);
    nchw.batch_norm_inference.axis = back.batch_norm_inference_backward.axis = 1;
    ir_value x = given(&b, "f32[2,6,5,5]"), g = given(&b, "f32[6]"), dy = given(&b, "f32[2,6,5,5]");

    gives(&b, layer_norm_2d, NULL, "f32[2,6,5,5]", x, g, g);
    fails(&b, layer_norm_2d, NULL, SHAPE, "rank must be 4", given(&b, "f32[2,6,5]"), g, g);
    fails(&b, layer_norm_2d, NULL, SHAPE, "beta", x, g, given(&b, "f32[5]"));

    gives(&b, batch_norm_inference, &nchw, "f32[2,6,5,5]", x, g, g, g, g);
    gives(&b, batch_norm_inference, NULL, "f32[2,6]", given(&b, "f32[2,6]"), g, g, g, g);
    fails(&b, batch_norm_inference, NULL, SHAPE, "gamma must be f32[5], not f32[6]", x, g, g, g, g);
    fails(&b, batch_norm_inference, &nchw, SHAPE, "var must be f32[6], not f32[7]", x, g, g, g,
          given(&b, "f32[7]"));
    fails(&b, batch_norm_inference, &nchw, DTYPE, "mean", x, g, g, given(&b, "f64[6]"), g);

    gives(&b, batch_norm_inference_backward_input, &back, "f32[2,6,5,5]", x, g, g, g, dy);
    gives(&b, batch_norm_inference_backward_gamma, &back, "f32[6]", x, g, g, dy);
    gives(&b, batch_norm_inference_backward_beta, &back, "f32[6]", x, dy);
    fails(&b, batch_norm_inference_backward_gamma, &back, SHAPE, "mean", x, given(&b, "f32[2]"), g,
          dy);
    fails(&b, batch_norm_inference_backward_beta, &back, SHAPE, "dy", x, g);
    build_close(&b);
}

TEST(shape_norm, ada_layer_norm)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = given(&b, "f32[2,3,4]"), s = given(&b, "f32[2,1,4]"), v = given(&b, "f32[4]");
    ir_value dy = given(&b, "f32[2,3,4]");
    union ir_attr base = defaults(RLX_OP_ada_layer_norm);

    gives(&b, ada_layer_norm, NULL, "f32[2,3,4]", x, s, v);
    accepts(&b, ada_layer_norm, base, attr.ada_layer_norm.norm = RLX_NORM_KIND_rms, "f32[2,3,4]", x,
            v, s);
    fails(&b, ada_layer_norm, NULL, SHAPE, "scale and x differ: 1 and 4", x,
          given(&b, "f32[2,3,1]"), v);
    fails(&b, ada_layer_norm, NULL, SHAPE, "shift", x, s, given(&b, "f32[3,1,4]"));
    fails(&b, ada_layer_norm, NULL, SHAPE, "rank", x, given(&b, "f32[]"), v);
    fails(&b, ada_layer_norm, NULL, SHAPE, "rank", x, given(&b, "f32[1,2,3,4]"), v);
    fails(&b, ada_layer_norm, NULL, DTYPE, "f16", x, given(&b, "f16[4]"), v);
    refuses(&b, ada_layer_norm, base, attr.ada_layer_norm.norm = 2, ATTRIBUTE, "norm", x, s, v);

    /* 24 for x, 8 for scale, 4 for shift */
    gives(&b, ada_layer_norm_backward, NULL, "f32[36]", x, s, v, dy);
    fails(&b, ada_layer_norm_backward, NULL, SHAPE, "dy", x, s, v, s);
    gives(&b, ada_layer_norm_backward, NULL, "f32[4*n+8]", given(&b, "f32[n,4]"), v, v,
          given(&b, "f32[n,4]"));
    build_close(&b);
}

TEST(shape_norm, gated_residual)
{
    struct build b;
    struct ir_type type = {0};
    require(t, build_open(t, &b));
    ir_value x = given(&b, "f32[2,3,4]"), y = given(&b, "f32[2,3,4]"), g = given(&b, "f32[2,1,4]");
    ir_value dy = given(&b, "f32[2,3,4]");

    gives(&b, gated_residual, NULL, "f32[2,3,4]", x, y, g);
    gives(&b, gated_residual, NULL, "f32[2,3,4]", x, y, given(&b, "f32[]"));
    fails(&b, gated_residual, NULL, SHAPE, "f32[3,4]", x, given(&b, "f32[3,4]"), g);
    fails(&b, gated_residual, NULL, SHAPE, "gate", x, y, given(&b, "f32[1,2,3,4]"));
    fails(&b, gated_residual, NULL, SHAPE, "gate", x, y, given(&b, "f32[2,2,4]"));
    fails(&b, gated_residual, NULL, DTYPE, "f64", x, given(&b, "f64[2,3,4]"), g);

    gives(&b, gated_residual_backward, NULL, "f32[56]", x, y, g, dy);
    fails(&b, gated_residual_backward, NULL, SHAPE, "dy", x, y, g, g);
    ir_value n = given(&b, "f32[n,s]");
    gives(&b, gated_residual_backward, NULL, "f32[2*n*s+1]", n, n, given(&b, "f32[1]"), n);
    expect_ok(t, bind_symbols(&b, "n", 3, "s", 5, &type, NULL));
    expect_eq(t, type.dim[0], 31);
    build_close(&b);
}
