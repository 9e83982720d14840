/* shape_b_fused_test.c: fused ops: they give and refuse what their expansions do. */
#include <math.h>

#include "shape_given.h"

TEST(shape_fused, matmul_bias_act)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_fused_matmul_bias_act);
    ir_value a = given(&b, "f32[2,4,8]"), w = given(&b, "f32[8,3]"), bias = given(&b, "f32[3]");

    gives(&b, fused_matmul_bias_act, NULL, "f32[2,4,3]", a, w, bias);
    gives(&b, fused_matmul_bias_act, NULL, "f32[2,4,3]", a, w, given(&b, "f32[4,1]"));
    gives(&b, fused_matmul_bias_act, NULL, "f32[2,4,3]", a, given(&b, "f16[8,3]"), bias);
    gives(&b, fused_matmul_bias_act, NULL, "f32[n,3]", given(&b, "f32[n,8]"), w, bias);
    accepts(&b, fused_matmul_bias_act, base, attr.fused_matmul_bias_act.activation = RLX_OP_gelu,
            "f32[2,4,3]", a, w, bias);
    accepts(&b, fused_matmul_bias_act, base, attr.fused_matmul_bias_act.activation = RLX_OP_relu,
            "i32[1,1]", given(&b, "i32[1,2]"), given(&b, "i32[2,1]"), given(&b, "i32[1]"));
    refuses(&b, fused_matmul_bias_act, base, attr.fused_matmul_bias_act.activation = RLX_OP_gelu,
            ATTRIBUTE, "activation gelu is not a unary op on i32", given(&b, "i32[1,2]"),
            given(&b, "i32[2,1]"), given(&b, "i32[1]"));
    refuses(&b, fused_matmul_bias_act, base, attr.fused_matmul_bias_act.activation = RLX_OP_matmul,
            ATTRIBUTE, "matmul", a, w, bias);
    accepts(&b, fused_matmul_bias_act, base, attr.fused_matmul_bias_act.transpose_b = true,
            "f32[2,4,3]", a, given(&b, "f32[3,8]"), bias);
    accepts(&b, fused_matmul_bias_act, base, attr.fused_matmul_bias_act.transpose_a = true,
            "f32[2,8,3]", a, given(&b, "f32[4,3]"), bias);
    refuses(&b, fused_matmul_bias_act, base, attr.fused_matmul_bias_act.transpose_b = true, SHAPE,
            "inner dimensions differ: 8 and 3", a, w, bias);
    fails(&b, fused_matmul_bias_act, NULL, SHAPE, "inner dimensions differ: 8 and 9", a,
          given(&b, "f32[9,3]"), bias);
    fails(&b, fused_matmul_bias_act, NULL, SHAPE, "bias", a, w, given(&b, "f32[4]"));
    fails(&b, fused_matmul_bias_act, NULL, SHAPE, "bias", a, w, given(&b, "f32[5,2,4,3]"));
    fails(&b, fused_matmul_bias_act, NULL, SHAPE, "bias", given(&b, "f32[1,8]"), w,
          given(&b, "f32[4,3]")); /* it would enlarge the result */
    fails(&b, fused_matmul_bias_act, NULL, DTYPE, "f64", a, w, given(&b, "f64[3]"));
    fails(&b, fused_matmul_bias_act, NULL, SHAPE, "rank", given(&b, "f32[8]"), w, bias);
    build_close(&b);
}

TEST(shape_fused, residual_norms)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr with_bias = defaults(RLX_OP_fused_residual_ln), base = with_bias;
    with_bias.fused_residual_norm.has_bias = true;
    ir_value x = given(&b, "f16[n,4]"), g = given(&b, "f32[4]"), bias = given(&b, "f16[4]");

    gives(&b, fused_residual_ln, NULL, "f16[n,4]", x, x, g, g);
    gives(&b, fused_residual_ln, &with_bias, "f16[n,4]", x, x, bias, g, g);
    gives(&b, fused_residual_rms_norm, &with_bias, "f16[n,4]", x, x, bias, g, bias);
    fails(&b, fused_residual_ln, NULL, GRAPH, "takes 4 inputs", x, x, bias, g, g);
    fails(&b, fused_residual_rms_norm, &with_bias, GRAPH, "takes 5 inputs", x, x, g, g);
    fails(&b, fused_residual_ln, NULL, SHAPE, "x and residual", x, given(&b, "f16[n,1]"), g, g);
    fails(&b, fused_residual_ln, NULL, SHAPE, "f32[5]", x, x, given(&b, "f32[5]"), g);
    fails(&b, fused_residual_ln, NULL, SHAPE, "f32[1,4]", x, x, g, given(&b, "f32[1,4]"));
    fails(&b, fused_residual_ln, &with_bias, SHAPE, "bias", x, x, given(&b, "f16[5]"), g, g);
    fails(&b, fused_residual_ln, &with_bias, DTYPE, "f32", x, x, g, g, g);
    fails(&b, fused_residual_ln, NULL, DTYPE, "f32", x, given(&b, "f32[n,4]"), g, g);
    fails(&b, fused_residual_ln, NULL, SHAPE, "rank", given(&b, "f16[]"), given(&b, "f16[]"), g, g);
    fails(&b, fused_residual_ln, NULL, SHAPE, "fixed size", given(&b, "f16[4,n]"),
          given(&b, "f16[4,n]"), g, g);
    refuses(&b, fused_residual_ln, base, attr.fused_residual_norm.eps = -1, ATTRIBUTE, "eps is -1",
            x, x, g, g);
    build_close(&b);
}

TEST(shape_fused, swiglu)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_fused_swiglu);
    ir_value x = given(&b, "f32[2,3,8]");

    gives(&b, fused_swiglu, NULL, "f32[2,3,4]", x);
    accepts(&b, fused_swiglu, base, attr.fused_swiglu.cast_to = RLX_DTYPE_f16, "f16[2,3,4]", x);
    gives(&b, fused_swiglu, NULL, "f32[2,n]", given(&b, "f32[2,2*n]"));
    gives(&b, fused_swiglu, NULL, "f32[0]", given(&b, "f32[0]"));
    fails(&b, fused_swiglu, NULL, SHAPE, "7 is not a multiple of 2", given(&b, "f32[2,7]"));
    fails(&b, fused_swiglu, NULL, SHAPE, "rank", given(&b, "f32[]"));
    fails(&b, fused_swiglu, NULL, DTYPE, "i32", given(&b, "i32[8]"));
    refuses(&b, fused_swiglu, base, attr.fused_swiglu.cast_to = (rlx_dtype)99, ATTRIBUTE, "cast_to",
            x);
    build_close(&b);
}

TEST(shape_fused, attention_block)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_fused_attention_block), full;
    base.fused_attention_block.num_heads = 4;
    base.fused_attention_block.num_kv_heads = 2;
    base.fused_attention_block.head_dim = 8;
    full = base;
    full.fused_attention_block.has_bias = full.fused_attention_block.has_rope = true;
    ir_value x = given(&b, "f32[2,5,20]"), qkv = given(&b, "f32[20,64]"),
             o = given(&b, "f32[32,20]"), m = given(&b, "bool[2,5]"), qb = given(&b, "f32[64]"),
             ob = given(&b, "f32[20]"), cs = given(&b, "f32[9,4]");

    gives(&b, fused_attention_block, &base, "f32[2,5,20]", x, qkv, o, m);
    gives(&b, fused_attention_block, &full, "f32[2,5,20]", x, qkv, o, m, qb, ob, cs, cs);
    accepts(&b, fused_attention_block, base, attr.fused_attention_block.has_rope = true,
            "f32[2,5,20]", x, qkv, o, given(&b, "f32[1,1,5,5]"), cs, cs);
    ir_value y = gives(&b, fused_attention_block, &base, "f32[n,s,20]", given(&b, "f32[n,s,20]"),
                       qkv, o, given(&b, "bool[n,1,s,s]"));
    expect_eq(t, ir_node(b.g, y)->attr.fused_attention_block.num_kv_heads, 2);

    fails(&b, fused_attention_block, &base, GRAPH, "takes 4 inputs", x, qkv, o, m, qb, ob);
    fails(&b, fused_attention_block, &full, GRAPH, "takes 8 inputs", x, qkv, o, m, qb, ob);
    refuses(&b, fused_attention_block, base, attr.fused_attention_block.num_kv_heads = RLX_ABSENT,
            SHAPE, "qkv_w must be f32[20,96], not f32[20,64]", x, qkv, o, m);
    refuses(&b, fused_attention_block, base, attr.fused_attention_block.num_kv_heads = 3, ATTRIBUTE,
            "num_kv_heads 3", x, qkv, o, m);
    refuses(&b, fused_attention_block, base, attr.fused_attention_block.logit_softcap = -1,
            ATTRIBUTE, "logit_softcap", x, qkv, o, m);
    refuses(&b, fused_attention_block, base, attr.fused_attention_block.score_scale = INFINITY,
            ATTRIBUTE, "score_scale", x, qkv, o, m);
    fails(&b, fused_attention_block, &base, SHAPE, "out_w must be f32[32,20]", x, qkv, qkv, m);
    fails(&b, fused_attention_block, &base, SHAPE, "mask", x, qkv, o, given(&b, "bool[2,4]"));
    fails(&b, fused_attention_block, &base, DTYPE, "c64", x, qkv, o, given(&b, "c64[2,5]"));
    fails(&b, fused_attention_block, &base, SHAPE, "rank must be 3", qkv, qkv, o, m);
    fails(&b, fused_attention_block, &base, DTYPE, "f16", x, given(&b, "f16[20,64]"), o, m);
    fails(&b, fused_attention_block, &full, SHAPE, "f32[64]", x, qkv, o, m, ob, ob, cs, cs);
    fails(&b, fused_attention_block, &full, SHAPE, "positions", x, qkv, o, m, qb, ob,
          given(&b, "f32[4,4]"), given(&b, "f32[4,4]"));

    /* an odd head cannot turn */
    union ir_attr odd = base;
    odd.fused_attention_block.head_dim = 1;
    odd.fused_attention_block.has_rope = true;
    fails(&b, fused_attention_block, &odd, ATTRIBUTE, "even head_dim, not 1", x,
          given(&b, "f32[20,8]"), given(&b, "f32[4,20]"), m, cs, cs);
    build_close(&b);
}

TEST(shape_fused, transformer_layer)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_fused_transformer_layer), bias;
    base.fused_transformer_layer.num_heads = 2;
    base.fused_transformer_layer.head_dim = 3;
    base.fused_transformer_layer.intermediate_size = 7;
    bias = base;
    bias.fused_transformer_layer.has_bias = true;
    ir_value x = given(&b, "f32[n,s,5]"), qkv = given(&b, "f32[5,18]"), qb = given(&b, "f32[18]"),
             o = given(&b, "f32[6,5]"), e = given(&b, "f32[5]"), f1 = given(&b, "f32[5,7]"),
             b1 = given(&b, "f32[7]"), f2 = given(&b, "f32[7,5]"), m = given(&b, "bool[n,s]");

    gives(&b, fused_transformer_layer, &base, "f32[n,s,5]", x, qkv, o, e, f1, f2, e, m);
    gives(&b, fused_transformer_layer, &bias, "f32[n,s,5]", x, qkv, qb, o, e, e, e, f1, b1, f2, e,
          e, e, m);
    fails(&b, fused_transformer_layer, &bias, GRAPH, "takes 14 inputs", x, qkv, o, e, f1, f2, e, m);
    fails(&b, fused_transformer_layer, &base, GRAPH, "takes 8 inputs", x, qkv, o, e, f1, f2, e, m,
          m);
    fails(&b, fused_transformer_layer, &base, SHAPE, "f32[5,18]", x, f1, o, e, f1, f2, e, m);
    fails(&b, fused_transformer_layer, &base, SHAPE, "f32[6,5]", x, qkv, f2, e, f1, f2, e, m);
    fails(&b, fused_transformer_layer, &base, SHAPE, "f32[5]", x, qkv, o, b1, f1, f2, e, m);
    fails(&b, fused_transformer_layer, &base, SHAPE, "f32[5,7]", x, qkv, o, e, f2, f2, e, m);
    fails(&b, fused_transformer_layer, &base, SHAPE, "f32[7,5]", x, qkv, o, e, f1, f1, e, m);
    fails(&b, fused_transformer_layer, &base, SHAPE, "f32[5]", x, qkv, o, e, f1, f2, b1, m);
    fails(&b, fused_transformer_layer, &base, SHAPE, "mask", x, qkv, o, e, f1, f2, e,
          given(&b, "bool[n,3,s,s]"));
    fails(&b, fused_transformer_layer, &bias, SHAPE, "f32[18]", x, qkv, e, o, e, e, e, f1, b1, f2,
          e, e, e, m);
    fails(&b, fused_transformer_layer, &bias, SHAPE, "f32[7]", x, qkv, qb, o, e, e, e, f1, e, f2, e,
          e, e, m);
    fails(&b, fused_transformer_layer, &base, SHAPE, "fixed size", given(&b, "f32[n,s,e]"), qkv, o,
          e, f1, f2, e, m);
    refuses(&b, fused_transformer_layer, base, attr.fused_transformer_layer.eps2 = -1, ATTRIBUTE,
            "eps2", x, qkv, o, e, f1, f2, e, m);
    refuses(&b, fused_transformer_layer, base, attr.fused_transformer_layer.intermediate_size = 0,
            ATTRIBUTE, "intermediate_size", x, qkv, o, e, f1, f2, e, m);
    refuses(&b, fused_transformer_layer, base, attr.fused_transformer_layer.activation = RLX_OP_not,
            ATTRIBUTE, "activation not", x, qkv, o, e, f1, f2, e, m);
    build_close(&b);
}
