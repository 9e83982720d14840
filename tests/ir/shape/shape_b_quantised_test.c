/* shape_b_quantised_test.c: packed weights, the gate, neighbours; and the table of schemes. */
#include <math.h>

#include "ir/quant/quant_scheme.h"
#include "shape_given.h"

TEST(quant_scheme, table)
{
    static const struct {
        int32_t scheme;
        int elems, bytes;
    } rows[] = {
        {RLX_QUANT_SCHEME_q4_0, 32, 18},   {RLX_QUANT_SCHEME_q4_1, 32, 20},
        {RLX_QUANT_SCHEME_q5_0, 32, 22},   {RLX_QUANT_SCHEME_q5_1, 32, 24},
        {RLX_QUANT_SCHEME_q8_0, 32, 34},   {RLX_QUANT_SCHEME_q8_1, 32, 36},
        {RLX_QUANT_SCHEME_q2_k, 256, 84},  {RLX_QUANT_SCHEME_q3_k, 256, 110},
        {RLX_QUANT_SCHEME_q4_k, 256, 144}, {RLX_QUANT_SCHEME_q5_k, 256, 176},
        {RLX_QUANT_SCHEME_q6_k, 256, 210}, {RLX_QUANT_SCHEME_q8_k, 256, 292},
        {RLX_QUANT_SCHEME_iq4_nl, 32, 18}, {RLX_QUANT_SCHEME_iq4_xs, 256, 136},
        {RLX_QUANT_SCHEME_mxfp4, 32, 17},  {RLX_QUANT_SCHEME_nvfp4, 64, 36},
        {RLX_QUANT_SCHEME_tq1_0, 256, 54}, {RLX_QUANT_SCHEME_tq2_0, 256, 66},
    };
    int32_t words = 0, gguf = 0, scaled = 0, zero_points = 0;

    for (; enum_word("quant_scheme", words); words++) {
        const struct quant_scheme *s = quant_scheme(words);
        test_note(t, "%s", enum_word("quant_scheme", words));
        require(t, s != NULL);
        expect(t, s->display != NULL);
        expect_eq(t, s->is_gguf, s->block_elems > 0);
        expect_eq(t, s->is_gguf, s->block_bytes > 0);
        gguf += s->is_gguf;
        scaled += s->has_scale;
        zero_points += s->has_zero_point;
    }
    test_note(t, "%s", "");
    expect_eq(t, words, 24);
    expect_eq(t, gguf, 18);
    expect_eq(t, scaled, 4);
    expect_eq(t, zero_points, 1);
    expect(t, quant_scheme(-1) == NULL);
    expect(t, quant_scheme(words) == NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct quant_scheme *s = quant_scheme(rows[i].scheme);
        int64_t bytes = -1;
        expect_eq(t, s->block_elems, rows[i].elems);
        expect_eq(t, s->block_bytes, rows[i].bytes);
        expect(t, quant_row_bytes(s, 3 * rows[i].elems, &bytes));
        expect_eq(t, bytes, 3 * rows[i].bytes);
        expect(t, !quant_row_bytes(s, rows[i].elems + 1, &bytes));
        expect(t, !quant_row_bytes(s, -rows[i].elems, &bytes));
    }
    int64_t bytes;
    expect(t, !quant_row_bytes(quant_scheme(RLX_QUANT_SCHEME_q8_0), INT64_MAX - 31, &bytes));
    expect(t, !quant_row_bytes(quant_scheme(RLX_QUANT_SCHEME_int8_block), 32, &bytes));
    expect_str(t, quant_scheme(RLX_QUANT_SCHEME_q4_k)->display, "gguf_q4k");
    expect(t, quant_scheme(RLX_QUANT_SCHEME_nvfp4_block)->scale_is_fp8);
}

TEST(shape_quantised, qmatmul)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_qmatmul);
    base.qmatmul.mult = 0.1f;
    ir_value x = given(&b, "i8[n,4,8]"), w = given(&b, "i8[8,3]"), bias = given(&b, "i32[3]");

    gives(&b, qmatmul, &base, "i8[n,4,3]", x, w, bias);
    fails(&b, qmatmul, &base, SHAPE, "inner dimensions differ: 8 and 9", x, given(&b, "i8[9,3]"),
          bias);
    fails(&b, qmatmul, &base, SHAPE, "bias", x, w, given(&b, "i32[4]"));
    fails(&b, qmatmul, &base, DTYPE, "w must be i8, not u8", x, given(&b, "u8[8,3]"), bias);
    fails(&b, qmatmul, &base, DTYPE, "bias must be i32, not i64", x, w, given(&b, "i64[3]"));
    fails(&b, qmatmul, &base, SHAPE, "rank", given(&b, "i8[]"), w, bias);
    refuses(&b, qmatmul, base, attr.qmatmul.w_zp = 200, ATTRIBUTE, "w_zp is 200", x, w, bias);
    refuses(&b, qmatmul, base, attr.qmatmul.mult = INFINITY, ATTRIBUTE, "mult", x, w, bias);
    build_close(&b);
}

static union ir_attr dequant(int32_t scheme, int64_t k)
{
    union ir_attr a = defaults(RLX_OP_dequant_matmul);

    a.dequant_matmul.scheme = scheme;
    a.dequant_matmul.k = k;
    return a;
}

TEST(shape_quantised, dequant_matmul_of_blocks)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr q4 = dequant(RLX_QUANT_SCHEME_q4_0, 64), none = dequant(RLX_QUANT_SCHEME_q4_0, 0);
    ir_value x = given(&b, "f32[n,s,64]"), w = given(&b, "u8[5,36]");

    gives(&b, dequant_matmul, &q4, "f32[n,s,5]", x, w);
    gives(&b, dequant_matmul, &q4, "f32[5]", given(&b, "f32[64]"), w);
    gives(&b, dequant_matmul, &none, "f32[3,5]", given(&b, "f32[3,0]"), given(&b, "u8[5,0]"));
    accepts(&b, dequant_matmul, q4, attr.dequant_matmul.act = RLX_ACT_PRECISION_q8, "f32[n,s,5]", x,
            w);
    refuses(&b, dequant_matmul, q4, attr.dequant_matmul.k = 65, ATTRIBUTE,
            "k 65 is not a multiple of the block of 32", x, w);
    refuses(&b, dequant_matmul, q4, attr.dequant_matmul.k = -32, ATTRIBUTE, "k is -32", x, w);
    refuses(&b, dequant_matmul, q4, attr.dequant_matmul.k = 96, SHAPE,
            "row bytes of the packed weight differ: 36 and 54", x, w);
    refuses(&b, dequant_matmul, q4, attr.dequant_matmul.k = INT64_MAX - 31, SHAPE, "row bytes", x,
            w);
    refuses(&b, dequant_matmul, q4, attr.dequant_matmul.n = 5, ATTRIBUTE, "n 5 is superfluous", x,
            w);
    refuses(&b, dequant_matmul, q4, attr.dequant_matmul.block_size = 0, ATTRIBUTE,
            "block_size is 0", x, w);
    refuses(&b, dequant_matmul, q4, attr.dequant_matmul.scheme = 24, ATTRIBUTE, "scheme", x, w);
    refuses(&b, dequant_matmul, q4, attr.dequant_matmul.scheme = -1, ATTRIBUTE, "scheme", x, w);
    fails(&b, dequant_matmul, &q4, SHAPE, "last axes of x and k differ: 32 and 64",
          given(&b, "f32[2,32]"), w);
    fails(&b, dequant_matmul, &q4, SHAPE, "rank", given(&b, "f32[]"), w);
    fails(&b, dequant_matmul, &q4, SHAPE, "rank must be 2", x, given(&b, "u8[1,5,36]"));
    fails(&b, dequant_matmul, &q4, DTYPE, "w must be u8, not i8", x, given(&b, "i8[5,36]"));
    fails(&b, dequant_matmul, &q4, DTYPE, "x must be f32, not f16", given(&b, "f16[2,64]"), w);
    fails(&b, dequant_matmul, &q4, GRAPH, "takes 2 inputs", x, w, x, x);
    build_close(&b);
}

TEST(shape_quantised, dequant_matmul_with_side_tensors)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr i8 = dequant(RLX_QUANT_SCHEME_int8_block, 70),
                  asym = dequant(RLX_QUANT_SCHEME_int8_block_asym, 70),
                  i4 = dequant(RLX_QUANT_SCHEME_int4_block, 7),
                  fp8 = dequant(RLX_QUANT_SCHEME_fp8_e5m2, 70),
                  nv = dequant(RLX_QUANT_SCHEME_nvfp4_block, 17);
    i4.dequant_matmul.n = 5;
    i4.dequant_matmul.block_size = 2;
    nv.dequant_matmul.n = 3;
    ir_value x = given(&b, "f32[n,70]"), w = given(&b, "u8[70,5]"), s = given(&b, "f32[3,5]"),
             none = given(&b, "f32[0]"), one = given(&b, "f32[1]");

    gives(&b, dequant_matmul, &i8, "f32[n,5]", x, w, s, none);
    gives(&b, dequant_matmul, &asym, "f32[n,5]", x, w, s, s);
    gives(&b, dequant_matmul, &fp8, "f32[n,5]", x, w, none, none);
    gives(&b, dequant_matmul, &fp8, "f32[n,5]", x, w, one, none);
    gives(&b, dequant_matmul, &fp8, "f32[n,5]", x, w, given(&b, "f32[1,5]"), none);
    /* 7 * 5 nibbles in 18 bytes, four groups of at most 2 rows */
    gives(&b, dequant_matmul, &i4, "f32[5]", given(&b, "f32[7]"), given(&b, "u8[18]"),
          given(&b, "f32[4,5]"), none);
    gives(&b, dequant_matmul, &nv, "f32[3]", given(&b, "f32[17]"), given(&b, "u8[26]"),
          given(&b, "u8[2,3]"), one);

    fails(&b, dequant_matmul, &i8, GRAPH, "takes 4 inputs", x, w);
    fails(&b, dequant_matmul, &i8, GRAPH, "takes 4 inputs", x, w, s);
    fails(&b, dequant_matmul, &i8, SHAPE, "scale must be f32[3,5], not f32[1]", x, w, one, none);
    fails(&b, dequant_matmul, &i8, SHAPE, "w must be u8[70,5], not u8[69,5]", x,
          given(&b, "u8[69,5]"), s, none);
    fails(&b, dequant_matmul, &asym, SHAPE, "zp must be f32[3,5], not f32[0]", x, w, s, none);
    fails(&b, dequant_matmul, &asym, DTYPE, "zp must be f32", x, w, s, given(&b, "i8[3,5]"));
    fails(&b, dequant_matmul, &i8, DTYPE, "scale must be f32", x, w, given(&b, "f16[3,5]"), none);
    fails(&b, dequant_matmul, &fp8, SHAPE, "scale", x, w, given(&b, "f32[2]"), none);
    fails(&b, dequant_matmul, &fp8, SHAPE, "scale must be f32[1,5]", x, w, given(&b, "f32[1,4]"),
          none);
    fails(&b, dequant_matmul, &nv, DTYPE, "scale must be u8", given(&b, "f32[17]"),
          given(&b, "u8[26]"), given(&b, "f32[2,3]"), one);
    fails(&b, dequant_matmul, &nv, SHAPE, "zp must be f32[1]", given(&b, "f32[17]"),
          given(&b, "u8[26]"), given(&b, "u8[2,3]"), none);
    fails(&b, dequant_matmul, &i4, SHAPE, "w must be u8[18], not u8[17]", given(&b, "f32[7]"),
          given(&b, "u8[17]"), given(&b, "f32[4,5]"), none);
    refuses(&b, dequant_matmul, i4, attr.dequant_matmul.n = RLX_ABSENT, ATTRIBUTE, "needs n",
            given(&b, "f32[7]"), given(&b, "u8[18]"), given(&b, "f32[4,5]"), none);
    refuses(&b, dequant_matmul, i4, attr.dequant_matmul.n = -1, ATTRIBUTE, "n is -1",
            given(&b, "f32[7]"), given(&b, "u8[18]"), given(&b, "f32[4,5]"), none);
    refuses(&b, dequant_matmul, i4, attr.dequant_matmul.n = INT64_MAX, LIMIT, "overflows",
            given(&b, "f32[7]"), given(&b, "u8[18]"), given(&b, "f32[4,5]"), none);
    refuses(&b, dequant_matmul, i8, attr.dequant_matmul.n = 5, ATTRIBUTE, "superfluous", x, w, s,
            none);
    refuses(&b, dequant_matmul, i8, attr.dequant_matmul.block_size = -1, ATTRIBUTE, "block_size", x,
            w, s, none);
    refuses(&b, dequant_matmul, i8, attr.dequant_matmul.act = RLX_ACT_PRECISION_q8, ATTRIBUTE,
            "act q8 needs a block format, not int8", x, w, s, none);
    build_close(&b);
}

TEST(shape_quantised, grouped_gather_and_experts)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr group = defaults(RLX_OP_dequant_grouped_matmul),
                  moe = defaults(RLX_OP_dequant_moe_weights),
                  look = defaults(RLX_OP_dequant_gather);
    group.dequant_grouped_matmul.scheme = moe.dequant_moe_weights.scheme = RLX_QUANT_SCHEME_q4_k;
    look.dequant_gather.scheme = RLX_QUANT_SCHEME_q4_k;
    group.dequant_grouped_matmul.k = moe.dequant_moe_weights.k = look.dequant_gather.k = 256;
    ir_value x = given(&b, "f32[m,256]"), w = given(&b, "u8[3,5,144]"), e = given(&b, "i32[m]"),
             table = given(&b, "u8[9,144]"), ids = given(&b, "i64[n,4]");

    gives(&b, dequant_grouped_matmul, &group, "f32[m,5]", x, w, e);
    fails(&b, dequant_grouped_matmul, &group, SHAPE, "columns of x and k differ: 255 and 256",
          given(&b, "f32[2,255]"), w, given(&b, "i32[2]"));
    fails(&b, dequant_grouped_matmul, &group, SHAPE, "row bytes", x, given(&b, "u8[3,5,143]"), e);
    fails(&b, dequant_grouped_matmul, &group, SHAPE, "experts", x, given(&b, "u8[0,5,144]"), e);
    fails(&b, dequant_grouped_matmul, &group, SHAPE, "too many experts", x,
          given(&b, "u8[16777217,5,144]"), e);
    fails(&b, dequant_grouped_matmul, &group, SHAPE, "expert must be", given(&b, "f32[2,256]"), w,
          given(&b, "i32[3]"));
    fails(&b, dequant_grouped_matmul, &group, DTYPE, "indices", x, w, given(&b, "bool[m]"));
    refuses(&b, dequant_grouped_matmul, group,
            attr.dequant_grouped_matmul.scheme = RLX_QUANT_SCHEME_int8_block, ATTRIBUTE,
            "scheme int8_block is not a block format", x, w, e);
    refuses(&b, dequant_grouped_matmul, group, attr.dequant_grouped_matmul.k = 32, ATTRIBUTE,
            "k 32", x, w, e);

    gives(&b, dequant_moe_weights, &moe, "f32[3,256,5]", w);
    fails(&b, dequant_moe_weights, &moe, SHAPE, "rank must be 3", table);
    fails(&b, dequant_moe_weights, &moe, DTYPE, "w must be u8", given(&b, "i8[3,5,144]"));
    refuses(&b, dequant_moe_weights, moe, attr.dequant_moe_weights.k = 512, SHAPE, "144 and 288",
            w);

    gives(&b, dequant_gather, &look, "f32[n,4,256]", table, ids);
    gives(&b, dequant_gather, &look, "f32[256]", table, given(&b, "u8[]"));
    gives(&b, dequant_gather, &look, "f32[0,256]", given(&b, "u8[0,144]"), given(&b, "i32[0]"));
    fails(&b, dequant_gather, &look, SHAPE, "empty", given(&b, "u8[0,144]"), given(&b, "i32[1]"));
    fails(&b, dequant_gather, &look, LIMIT, "rank 9", table, given(&b, "i32[1,1,1,1,1,1,1,1]"));
    fails(&b, dequant_gather, &look, DTYPE, "indices", table, given(&b, "f16[1]"));
    fails(&b, dequant_gather, &look, SHAPE, "rank must be 2", w, ids);
    refuses(&b, dequant_gather, look, attr.dequant_gather.scheme = RLX_QUANT_SCHEME_fp8_e4m3,
            ATTRIBUTE, "not a block format", table, ids);
    build_close(&b);
}

TEST(shape_quantised, group_limited_gate)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_group_limited_gate);
    ir_value x = given(&b, "f32[n,32]"), small = given(&b, "f32[4]");

    gives(&b, group_limited_gate, NULL, "f32[n,16]", x, x);
    accepts(&b, group_limited_gate, base,
            (attr.group_limited_gate.n_group = 2, attr.group_limited_gate.topk_group = 1,
             attr.group_limited_gate.top_k = 2),
            "f32[4]", small, small);
    refuses(&b, group_limited_gate, base, attr.group_limited_gate.n_group = 5, ATTRIBUTE,
            "n_group 5 does not divide the 32 experts", x, x);
    refuses(&b, group_limited_gate, base, attr.group_limited_gate.n_group = 0, ATTRIBUTE,
            "n_group is 0", x, x);
    refuses(&b, group_limited_gate, base, attr.group_limited_gate.topk_group = 0, ATTRIBUTE,
            "topk_group is 0", x, x);
    refuses(&b, group_limited_gate, base, attr.group_limited_gate.topk_group = 9, ATTRIBUTE,
            "topk_group is 9", x, x);
    refuses(&b, group_limited_gate, base, attr.group_limited_gate.top_k = 0, ATTRIBUTE,
            "top_k is 0", x, x);
    refuses(&b, group_limited_gate, base, attr.group_limited_gate.top_k = 17, ATTRIBUTE,
            "top_k is 17, must be between 1 and 16", x, x);
    refuses(&b, group_limited_gate, base, attr.group_limited_gate.scaling = NAN, ATTRIBUTE,
            "scaling", x, x);
    fails(&b, group_limited_gate, NULL, SHAPE, "experts", given(&b, "f32[2,0]"),
          given(&b, "f32[2,0]"));
    fails(&b, group_limited_gate, NULL, SHAPE, "too many experts", given(&b, "f32[16777224]"),
          given(&b, "f32[16777224]"));
    fails(&b, group_limited_gate, NULL, SHAPE, "sig and route", x, given(&b, "f32[n,16]"));
    fails(&b, group_limited_gate, NULL, SHAPE, "rank", given(&b, "f32[]"), given(&b, "f32[]"));
    fails(&b, group_limited_gate, NULL, DTYPE, "route must be f32", x, given(&b, "f16[n,32]"));
    fails(&b, group_limited_gate, NULL, SHAPE, "fixed size", given(&b, "f32[e]"),
          given(&b, "f32[e]"));
    build_close(&b);
}

TEST(shape_quantised, knn)
{
    struct build b;
    struct ir_type type = {0};
    rlx_error err;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_knn);
    base.knn.k = 3; /* its gradient's k as well: one attribute, at the same place */
    ir_value d = given(&b, "f32[4,4]");

    gives(&b, knn, &base, "f32[4,6]", d);
    gives(&b, knn_backward, &base, "f32[4,4]", d, given(&b, "f32[4,3]"));
    refuses(&b, knn, base, attr.knn.k = 4, ATTRIBUTE, "k 4 is not below the 4 points", d);
    refuses(&b, knn, base, attr.knn.k = 0, ATTRIBUTE, "k is 0", d);
    refuses(&b, knn, base, attr.knn.k = INT64_MAX, ATTRIBUTE, "k is", d);
    fails(&b, knn, &base, SHAPE, "differ: 4 and 5", given(&b, "f32[4,5]"));
    fails(&b, knn, &base, SHAPE, "rank must be 2", given(&b, "f32[4]"));
    fails(&b, knn, &base, DTYPE, "f64", given(&b, "f64[4,4]"));
    fails(&b, knn, &base, SHAPE, "too many points", given(&b, "f32[16777217,16777217]"));
    fails(&b, knn_backward, &base, SHAPE, "dd must be f32[4,3]", d, d);
    fails(&b, knn_backward, &base, DTYPE, "dd must be f32", d, given(&b, "f16[4,3]"));

    gives(&b, knn, &base, "f32[n,6]", given(&b, "f32[n,n]"));
    expect_ok(t, bind_symbols(&b, "n", 4, NULL, 0, &type, NULL));
    expect_status(t, bind_symbols(&b, "n", 3, NULL, 0, NULL, &err), RLX_ERROR_ATTRIBUTE);
    build_close(&b);
}
