/* shape_b_contract_test.c: products, solvers and decompositions: what they give and refuse. */
#include <math.h>

#include "shape_given.h"

TEST(shape_contract, matmul)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_matmul);
    ir_value a = given(&b, "f32[4,8]"), w = given(&b, "f32[8,2]"), wt = given(&b, "f32[2,8]");

    gives(&b, matmul, NULL, "f32[4,2]", a, w);
    gives(&b, matmul, NULL, "f32[2,3,4,6]", given(&b, "f32[2,1,4,5]"), given(&b, "f32[3,5,6]"));
    gives(&b, matmul, NULL, "f32[2,3,4,2]", given(&b, "f32[2,3,4,8]"), w);
    gives(&b, matmul, NULL, "f32[4,2]", given(&b, "f32[4,0]"), given(&b, "f32[0,2]"));
    gives(&b, matmul, NULL, "f32[0,2]", given(&b, "f32[0,8]"), w);
    accepts(&b, matmul, base, attr.matmul.transpose_b = true, "f32[4,2]", a, wt);
    accepts(&b, matmul, base, attr.matmul.transpose_a = true, "f32[8,2]", a, given(&b, "f32[4,2]"));
    gives(&b, matmul, NULL, "f32[n,s,2]", given(&b, "f32[n,s,8]"), w);

    fails(&b, matmul, NULL, SHAPE, "matmul: inner dimensions differ: 8 and 9", a,
          given(&b, "f32[9,2]"));
    fails(&b, matmul, NULL, SHAPE, "inner dimensions differ: 8 and 2", a, wt);
    fails(&b, matmul, NULL, SHAPE, "rank must be at least 2", given(&b, "f32[8]"), w);
    fails(&b, matmul, NULL, SHAPE, "rank must be at least 2", a, given(&b, "f32[8]"));
    fails(&b, matmul, NULL, SHAPE, "2 against 3", given(&b, "f32[2,4,8]"), given(&b, "f32[3,8,2]"));
    fails(&b, matmul, NULL, GRAPH, "takes 2 inputs", a);
    build_close(&b);
}

TEST(shape_contract, matmul_dtypes)
{
    struct build b;
    require(t, build_open(t, &b));
    const char *good[] = {"f16", "bf16", "f32", "f64", "i32", "i64", "c64"};
    const char *bad[] = {"i8", "i16", "u8", "u16", "u32", "u64", "bool"};
    char x[16], want[16];

    for (size_t i = 0; i < 7; i++) {
        test_note(t, "%s and %s", good[i], bad[i]);
        snprintf(x, sizeof x, "%s[3,3]", good[i]);
        snprintf(want, sizeof want, "%s[3,3]", good[i]);
        gives(&b, matmul, NULL, want, given(&b, x), given(&b, x));
        snprintf(x, sizeof x, "%s[3,3]", bad[i]);
        fails(&b, matmul, NULL, DTYPE, bad[i], given(&b, x), given(&b, x));
    }
    test_note(t, "%s", "");
    gives(&b, matmul, NULL, "f32[3,3]", given(&b, "f16[3,3]"), given(&b, "bf16[3,3]"));
    fails(&b, matmul, NULL, DTYPE, "f64", given(&b, "f64[3,3]"), given(&b, "f32[3,3]"));
    fails(&b, matmul, NULL, DTYPE, "i32", given(&b, "i32[3,3]"), given(&b, "f32[3,3]"));
    build_close(&b);
}

TEST(shape_contract, a_symbolic_inner_dimension_is_decided_at_binding)
{
    struct build b;
    struct ir_type type = {0};
    rlx_error err;
    require(t, build_open(t, &b));

    gives(&b, matmul, NULL, "f32[4,2]", given(&b, "f32[4,k]"), given(&b, "f32[8,2]"));
    expect_ok(t, bind_symbols(&b, "k", 8, NULL, 0, &type, NULL));
    expect_status(t, bind_symbols(&b, "k", 7, NULL, 0, NULL, &err), RLX_ERROR_SHAPE);
    expect_contains(t, err.message, "inner dimensions");
    build_close(&b);
}

TEST(shape_contract, the_result_of_a_matmul_must_be_countable)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value tall = given(&b, "f32[4611686018427387904,0]"), wide = given(&b, "f32[0,4]");

    fails(&b, matmul, NULL, LIMIT, "overflow", tall, wide);
    build_close(&b);
}

TEST(shape_contract, dot_general)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = given(&b, "f32[2,3,4]"), y = given(&b, "f32[4,2,5]");
    union ir_attr base = defaults(RLX_OP_dot_general), outer = base;
    base.dot_general.lhs_contracting = RLX_LIST(2);
    base.dot_general.rhs_contracting = RLX_LIST(0);
    base.dot_general.lhs_batch = RLX_LIST(0);
    base.dot_general.rhs_batch = RLX_LIST(1);

    gives(&b, dot_general, &base, "f32[2,3,5]", x, y);
    accepts(&b, dot_general, base, attr.dot_general.lhs_contracting = RLX_LIST(-1), "f32[2,3,5]", x,
            y);
    gives(&b, dot_general, &outer, "f32[2,3,4,4,2,5]", x, y);
    fails(&b, dot_general, &outer, LIMIT, "rank 10", given(&b, "f32[1,1,1,1,1]"),
          given(&b, "f32[1,1,1,1,1]"));
    refuses(&b, dot_general, base, attr.dot_general.lhs_contracting = RLX_LIST(3), ATTRIBUTE,
            "lhs_contracting is 3", x, y);
    refuses(&b, dot_general, base, attr.dot_general.lhs_contracting = RLX_LIST(2, -1), ATTRIBUTE,
            "twice", x, y);
    refuses(&b, dot_general, base, attr.dot_general.lhs_contracting = RLX_LIST(0), ATTRIBUTE,
            "axis 0 is in both lhs_contracting and lhs_batch", x, y);
    refuses(&b, dot_general, base, attr.dot_general.rhs_batch = RLX_LIST(0), ATTRIBUTE,
            "axis 0 is in both rhs_contracting and rhs_batch", x, y);
    refuses(&b, dot_general, base, attr.dot_general.lhs_batch = (rlx_list){0}, ATTRIBUTE,
            "batch axes do not pair up: 0 and 1", x, y);
    refuses(&b, dot_general, base, attr.dot_general.rhs_contracting = (rlx_list){0}, ATTRIBUTE,
            "contracting axes do not pair up: 1 and 0", x, y);
    refuses(&b, dot_general, base, attr.dot_general.rhs_contracting = RLX_LIST(2), SHAPE,
            "contracting axes differ: 4 and 5", x, y);
    refuses(&b, dot_general, base, attr.dot_general.rhs_batch = RLX_LIST(2), SHAPE,
            "batch axes differ: 2 and 5", x, y);
    fails(&b, dot_general, &base, DTYPE, "u8", given(&b, "u8[2,3,4]"), given(&b, "u8[4,2,5]"));
    /* no broadcasting of size 1 */
    fails(&b, dot_general, &base, SHAPE, "contracting axes differ: 1 and 4",
          given(&b, "f32[2,3,1]"), y);
    build_close(&b);
}

TEST(shape_contract, grouped_matmul)
{
    struct build b;
    struct ir_type type = {0};
    require(t, build_open(t, &b));
    ir_value x = given(&b, "f32[6,4]"), w = given(&b, "f32[3,4,5]"), e = given(&b, "i32[6]");

    gives(&b, grouped_matmul, NULL, "f32[6,5]", x, w, e);
    gives(&b, grouped_matmul, NULL, "f32[6,5]", given(&b, "f16[6,4]"), w, given(&b, "f32[6]"));
    gives(&b, grouped_matmul, NULL, "f32[0,5]", given(&b, "f32[0,4]"), w, given(&b, "u8[0]"));
    fails(&b, grouped_matmul, NULL, SHAPE, "inner dimensions differ: 4 and 7", x,
          given(&b, "f32[3,7,5]"), e);
    fails(&b, grouped_matmul, NULL, SHAPE, "expert must be i32[6], not i32[5]", x, w,
          given(&b, "i32[5]"));
    fails(&b, grouped_matmul, NULL, SHAPE, "experts", x, given(&b, "f32[0,4,5]"), e);
    fails(&b, grouped_matmul, NULL, SHAPE, "too many experts: 16777217", x,
          given(&b, "f32[16777217,4,5]"), e);
    fails(&b, grouped_matmul, NULL, SHAPE, "too many rows: 16777217", given(&b, "f32[16777217,4]"),
          w, given(&b, "i32[16777217]"));
    fails(&b, grouped_matmul, NULL, DTYPE, "indices", x, w, given(&b, "f16[6]"));
    fails(&b, grouped_matmul, NULL, DTYPE, "indices", x, w, given(&b, "bool[6]"));
    fails(&b, grouped_matmul, NULL, SHAPE, "rank", given(&b, "f32[1,6,4]"), w, e);
    fails(&b, grouped_matmul, NULL, SHAPE, "rank", x, given(&b, "f32[4,5]"), e);

    gives(&b, grouped_matmul, NULL, "f32[m,5]", given(&b, "f32[m,4]"), w, given(&b, "i32[m]"));
    expect_ok(t, bind_symbols(&b, "m", 9, NULL, 0, &type, NULL));
    expect_eq(t, type.dim[0], 9);
    expect_status(t, bind_symbols(&b, "m", 1 << 25, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);
    build_close(&b);
}

TEST(shape_contract, grouped_matmul_backward_weight)
{
    struct build b;
    struct ir_type type = {0};
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_grouped_matmul_backward_weight);
    ir_value x = given(&b, "f32[6,4]"), dy = given(&b, "f32[6,5]"), e = given(&b, "i32[6]");

    base.grouped_matmul_backward_weight.experts = 3;
    gives(&b, grouped_matmul_backward_weight, &base, "f32[3,4,5]", x, dy, e);
    gives(&b, grouped_matmul_backward_weight, &base, "f16[3,0,2]", given(&b, "f16[0,0]"),
          given(&b, "f16[0,2]"), given(&b, "u8[0]"));
    fails(&b, grouped_matmul_backward_weight, &base, SHAPE, "rows of x and dy differ: 6 and 7", x,
          given(&b, "f32[7,5]"), e);
    fails(&b, grouped_matmul_backward_weight, &base, SHAPE, "expert must be i32[6], not i32[5]", x,
          dy, given(&b, "i32[5]"));
    fails(&b, grouped_matmul_backward_weight, &base, DTYPE, "", x, given(&b, "f16[6,5]"), e);
    fails(&b, grouped_matmul_backward_weight, &base, DTYPE, "", given(&b, "c64[6,4]"),
          given(&b, "c64[6,5]"), e);
    fails(&b, grouped_matmul_backward_weight, &base, DTYPE, "indices", x, dy, given(&b, "f16[6]"));
    fails(&b, grouped_matmul_backward_weight, &base, SHAPE, "rank", given(&b, "f32[1,6,4]"), dy, e);
    base.grouped_matmul_backward_weight.experts = 1 << 25;
    fails(&b, grouped_matmul_backward_weight, &base, SHAPE, "too many experts", x, dy, e);

    base.grouped_matmul_backward_weight.experts = 2;
    gives(&b, grouped_matmul_backward_weight, &base, "f32[2,4,5]", given(&b, "f32[m,4]"),
          given(&b, "f32[m,5]"), given(&b, "i32[m]"));
    expect_ok(t, bind_symbols(&b, "m", 9, NULL, 0, &type, NULL));
    expect_status(t, bind_symbols(&b, "m", 1 << 25, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);
    build_close(&b);
}

TEST(shape_contract, lora_matmul)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_lora_matmul);
    ir_value x = given(&b, "f32[2,7,8]"), w = given(&b, "f32[8,5]"), u = given(&b, "f32[8,3]"),
             v = given(&b, "f32[3,5]");

    gives(&b, lora_matmul, NULL, "f32[2,7,5]", x, w, u, v);
    gives(&b, lora_matmul, NULL, "f32[5]", given(&b, "f32[8]"), w, u, v);
    fails(&b, lora_matmul, NULL, SHAPE, "x and w differ: 8 and 9", x, given(&b, "f32[9,5]"), u, v);
    fails(&b, lora_matmul, NULL, SHAPE, "x and a differ: 8 and 9", x, w, given(&b, "f32[9,3]"), v);
    fails(&b, lora_matmul, NULL, SHAPE, "a and b differ: 3 and 4", x, w, u, given(&b, "f32[4,5]"));
    fails(&b, lora_matmul, NULL, SHAPE, "w and b differ: 5 and 6", x, w, u, given(&b, "f32[3,6]"));
    fails(&b, lora_matmul, NULL, SHAPE, "rank", given(&b, "f32[]"), w, u, v);
    fails(&b, lora_matmul, NULL, SHAPE, "rank", x, given(&b, "f32[1,8,5]"), u, v);
    fails(&b, lora_matmul, NULL, DTYPE, "f16", x, w, given(&b, "f16[8,3]"), v);
    refuses(&b, lora_matmul, base, attr.lora_matmul.scale = INFINITY, ATTRIBUTE, "scale", x, w, u,
            v);
    build_close(&b);
}

TEST(shape_contract, solvers)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value a = given(&b, "f32[3,3]"), batch = given(&b, "f32[5,3,3]"), r = given(&b, "f32[3,2]");

    gives(&b, dense_solve, NULL, "f32[3]", a, given(&b, "f32[3]"));
    gives(&b, dense_solve, NULL, "f32[3,2]", a, r);
    gives(&b, batched_dense_solve, NULL, "f32[5,3]", batch, given(&b, "f32[5,3]"));
    gives(&b, batched_dense_solve, NULL, "f32[5,3,2]", batch, given(&b, "f32[5,3,2]"));
    gives(&b, triangular_solve, NULL, "f32[3,2]", a, r);
    gives(&b, cholesky, NULL, "f64[0,0]", given(&b, "f64[0,0]"));
    gives(&b, det, NULL, "f32[]", a);
    gives(&b, logdet, NULL, "f32[]", a);
    gives(&b, cholesky, NULL, "f32[n,n]", given(&b, "f32[n,n]"));

    fails(&b, dense_solve, NULL, SHAPE, "3 and 4", given(&b, "f32[3,4]"), r);
    fails(&b, dense_solve, NULL, SHAPE, "rows of a and b differ: 3 and 4", a, given(&b, "f32[4]"));
    fails(&b, dense_solve, NULL, SHAPE, "rank", batch, r);
    fails(&b, dense_solve, NULL, SHAPE, "rank", a, given(&b, "f32[3,1,1]"));
    fails(&b, batched_dense_solve, NULL, SHAPE, "batch sizes differ: 5 and 4", batch,
          given(&b, "f32[4,3]"));
    fails(&b, batched_dense_solve, NULL, SHAPE, "rank", a, r);
    fails(&b, triangular_solve, NULL, SHAPE, "rows of a and b differ: 3 and 2", a,
          given(&b, "f32[2]"));
    fails(&b, triangular_solve, NULL, DTYPE, "f64", a, given(&b, "f64[3]"));
    fails(&b, cholesky, NULL, SHAPE, "differ: 3 and 2", r);
    fails(&b, cholesky, NULL, DTYPE, "i32", given(&b, "i32[3,3]"));
    fails(&b, det, NULL, SHAPE, "differ: 3 and 2", r);
    fails(&b, logdet, NULL, SHAPE, "rank", batch);
    build_close(&b);
}

TEST(shape_contract, decompositions)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value tall = given(&b, "f32[5,3]"), wide = given(&b, "f32[3,5]");
    union ir_attr svd = defaults(RLX_OP_svd), qr = defaults(RLX_OP_qr);

    accepts(&b, svd, svd, attr.svd.part = RLX_SVD_PART_u, "f32[5,3]", tall);
    accepts(&b, svd, svd, attr.svd.part = RLX_SVD_PART_s, "f32[3]", tall);
    accepts(&b, svd, svd, attr.svd.part = RLX_SVD_PART_vt, "f32[3,3]", tall);
    accepts(&b, svd, svd, attr.svd.part = RLX_SVD_PART_u, "f32[3,3]", wide);
    accepts(&b, svd, svd, attr.svd.part = RLX_SVD_PART_vt, "f32[3,5]", wide);
    gives(&b, svd, &svd, "f32[n]", given(&b, "f32[n,n]"));
    fails(&b, svd, &svd, SHAPE, "fixed size", given(&b, "f32[n,3]"));
    refuses(&b, svd, svd, attr.svd.part = 3, ATTRIBUTE, "part", tall);
    accepts(&b, qr, qr, attr.qr.part = RLX_QR_PART_q, "f32[3,3]", wide);
    accepts(&b, qr, qr, attr.qr.part = RLX_QR_PART_r, "f32[3,5]", wide);
    accepts(&b, qr, qr, attr.qr.part = RLX_QR_PART_r, "f32[3,3]", tall);
    fails(&b, qr, NULL, SHAPE, "rank", given(&b, "f32[3]"));
    fails(&b, svd, NULL, DTYPE, "c64", given(&b, "c64[3,3]"));

    gives(&b, eigh, NULL, "f32[12]", given(&b, "f32[3,3]"));
    gives(&b, eigh_batch, NULL, "f32[7,12]", given(&b, "f32[7,3,3]"));
    gives(&b, eigh_batch, NULL, "f32[n,12]", given(&b, "f32[n,3,3]"));
    fails(&b, eigh, NULL, SHAPE, "differ: 5 and 3", tall);
    fails(&b, eigh, NULL, SHAPE, "rank", given(&b, "f32[7,3,3]"));
    fails(&b, eigh_batch, NULL, SHAPE, "rank", given(&b, "f32[3,3]"));
    build_close(&b);
}
