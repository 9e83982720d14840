/* shape_reduce_test.c: reductions, orderings, scans, losses and random numbers. */
#include <math.h>

#include "shape_build.h"

TEST(shape_reduce, reduce)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_f16, RLX_LIST(2, symbol(&b, "s"), 4));
    ir_value one = build_input(&b, RLX_DTYPE_f16, SCALAR);
    union ir_attr a = defaults(RLX_OP_reduce_sum);

    gives(&b, reduce_sum, &a, "f16[2,s,4]", x);
    gives(&b, reduce_sum, &a, "f16[]", one);
    a.reduce.axes = RLX_LIST(-1, 0);
    ir_value v = gives(&b, reduce_mean, &a, "f16[s]", x);
    expect_eq(t, ir_node(b.g, v)->attr.reduce.axes.at[0], 0);
    expect_eq(t, ir_node(b.g, v)->attr.reduce.axes.at[1], 2);
    a.reduce.keep_dim = true;
    gives(&b, reduce_max, &a, "f16[1,s,1]", x);
    a.reduce.axes = RLX_LIST(2, 1, 0);
    a.reduce.keep_dim = false;
    gives(&b, reduce_prod, &a, "f16[]", x);
    fails(&b, reduce_min, &a, ATTRIBUTE, "no axes", one);
    a.reduce.axes = RLX_LIST(1, -2);
    fails(&b, reduce_min, &a, ATTRIBUTE, "twice", x);
    a.reduce.axes = RLX_LIST(3);
    fails(&b, reduce_sum, &a, ATTRIBUTE, "axes is 3", x);
    build_close(&b);
}

TEST(shape_reduce, classes)
{
    static const rlx_dtype dtype[] = {RLX_DTYPE_f32, RLX_DTYPE_i32, RLX_DTYPE_u8, RLX_DTYPE_bool,
                                      RLX_DTYPE_c64};
    static const struct {
        rlx_op op;
        const char *takes; /* a letter per dtype, '-' where it is refused */
    } rows[] = {
        {RLX_OP_reduce_sum, "fiu-c"},  {RLX_OP_reduce_mean, "f---c"},
        {RLX_OP_reduce_max, "fiub-"},  {RLX_OP_reduce_min, "fiub-"},
        {RLX_OP_reduce_prod, "fiu-c"}, {RLX_OP_argmax, "fiub-"},
        {RLX_OP_argmin, "fiub-"},      {RLX_OP_sort, "fiu--"},
        {RLX_OP_argsort, "fiu--"},     {RLX_OP_softmax, "f----"},
        {RLX_OP_cumsum, "fiu--"},      {RLX_OP_cumprod, "fiu--"},
        {RLX_OP_cummax, "fiu--"},      {RLX_OP_cumsum_backward, "fiu--"},
    };
    struct build b;
    require(t, build_open(t, &b));
    for (int i = 0; i < 5; i++) {
        ir_value in[] = {build_input(&b, dtype[i], RLX_LIST(3)), RLX_NO_VALUE};
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
            struct diag d;
            ir_value v;
            test_note(t, "%s of %s", op_info(rows[r].op)->name, rlx_dtype_name(dtype[i]));
            expect_status(t, build_node(&b, rows[r].op, NULL, in, &v, &d),
                          rows[r].takes[i] == '-' ? RLX_ERROR_DTYPE : RLX_OK);
        }
    }
    build_close(&b);
}

TEST(shape_reduce, extremes)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_dim s = symbol(&b, "s");
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 3));
    ir_value none = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 0));
    ir_value all = build_input(&b, RLX_DTYPE_f32, RLX_LIST(0, 0));
    ir_value wide = build_input(&b, RLX_DTYPE_bool, RLX_LIST((1 << 24) + 1));
    ir_value huge = build_input(&b, RLX_DTYPE_bool, RLX_LIST((INT64_C(1) << 31) + 1));
    ir_value one = build_input(&b, RLX_DTYPE_f32, SCALAR);
    ir_value open = build_input(&b, RLX_DTYPE_f32, RLX_LIST(4, s));
    union ir_attr a = defaults(RLX_OP_argmax);

    gives(&b, argmax, &a, "i32[2]", x);
    gives(&b, argmin, &a, "i32[0]", all);
    fails(&b, argmax, &a, SHAPE, "empty, but the result i32[2] is not", none);
    fails(&b, argmax, &a, ATTRIBUTE, "no axes", one);
    gives(&b, argmax, &a, "i32[]", wide);
    fails(&b, argmax, &a, ATTRIBUTE, "index_dtype i32 cannot count", huge);
    a.arg_extreme.axis = 0;
    a.arg_extreme.keep_dim = true;
    a.arg_extreme.index_dtype = RLX_DTYPE_i64;
    gives(&b, argmin, &a, "i64[1,3]", x);
    gives(&b, argmin, &a, "i64[1]", huge);
    a.arg_extreme.index_dtype = RLX_DTYPE_f32;
    fails(&b, argmin, &a, ATTRIBUTE, "16777217; at most 16777216", wide);
    a.arg_extreme.index_dtype = RLX_DTYPE_u32;
    fails(&b, argmin, &a, ATTRIBUTE, "not u32", x);

    expect_eq_u64(t, b.mod->check.len, 0);
    a = defaults(RLX_OP_argmax);
    a.arg_extreme.index_dtype = RLX_DTYPE_f32;
    gives(&b, argmax, &a, "f32[4]", open);
    expect_eq_u64(t, b.mod->check.len, 2); /* 1 <= s <= 2^24 */
    expect_status(t, bind_symbols(&b, "s", 0, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);
    expect_status(t, bind_symbols(&b, "s", 1 << 25, NULL, 0, NULL, NULL), RLX_ERROR_ATTRIBUTE);
    expect_ok(t, bind_symbols(&b, "s", 1 << 24, NULL, 0, NULL, NULL));
    build_close(&b);
}

TEST(shape_reduce, orderings)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_f16, RLX_LIST(5, 4));
    ir_value flags = build_input(&b, RLX_DTYPE_bool, RLX_LIST(4));
    ir_value open = build_input(&b, RLX_DTYPE_f16, RLX_LIST(symbol(&b, "s")));
    ir_value one = build_input(&b, RLX_DTYPE_f16, SCALAR);
    union ir_attr a = defaults(RLX_OP_topk);

    fails(&b, topk, &a, ATTRIBUTE, "k is missing", x);
    a.topk.k = 3;
    gives(&b, topk, &a, "i32[5,3]", x);
    fails(&b, topk, &a, DTYPE, "bool", flags);
    a.topk.result = RLX_TOPK_RESULT_values;
    a.topk.axis = 0;
    gives(&b, topk, &a, "f16[3,4]", x);
    a.topk.k = 0;
    gives(&b, topk, &a, "f16[0,4]", x);
    a.topk.k = 5;
    gives(&b, topk, &a, "f16[5,4]", x);
    a.topk.k = 6;
    fails(&b, topk, &a, ATTRIBUTE, "k is 6; axis 0 of f16[5,4] allows 0 to 5", x);
    a.topk.k = -1;
    fails(&b, topk, &a, ATTRIBUTE, "k is -1", x);
    a.topk.k = 2;
    a.topk.axis = -3;
    fails(&b, topk, &a, ATTRIBUTE, "axis is -3", x);
    a.topk.axis = -1;
    a.topk.index_dtype = RLX_DTYPE_i8;
    fails(&b, topk, &a, ATTRIBUTE, "i8", x);
    a.topk.index_dtype = RLX_DTYPE_i64;
    gives(&b, topk, &a, "f16[2]", open);
    expect_ok(t, bind_symbols(&b, "s", 2, NULL, 0, NULL, NULL));
    expect_status(t, bind_symbols(&b, "s", 1, NULL, 0, NULL, NULL), RLX_ERROR_ATTRIBUTE);

    gives(&b, sort, NULL, "f16[5,4]", x);
    fails(&b, sort, NULL, ATTRIBUTE, "no axes", one);
    a = defaults(RLX_OP_argsort);
    a.argsort.axis = 0;
    gives(&b, argsort, &a, "i32[5,4]", x);
    a.argsort.index_dtype = RLX_DTYPE_f16;
    fails(&b, argsort, &a, ATTRIBUTE, "f16", x);
    a.argsort.axis = 2;
    fails(&b, argsort, &a, ATTRIBUTE, "axis is 2", x);
    build_close(&b);
}

TEST(shape_reduce, rows_and_scans)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_bf16, RLX_LIST(5, 0));
    ir_value one = build_input(&b, RLX_DTYPE_bf16, SCALAR);
    union ir_attr a = defaults(RLX_OP_softmax);

    ir_value v = gives(&b, softmax, &a, "bf16[5,0]", x);
    expect_eq(t, ir_node(b.g, v)->attr.softmax.axis, 1);
    fails(&b, softmax, &a, SHAPE, "rank must be at least 1", one);
    a.softmax.axis = 7;
    fails(&b, softmax, &a, ATTRIBUTE, "axis is 7", x);

    a = defaults(RLX_OP_cumsum);
    a.cumulative.axis = -2;
    a.cumulative.exclusive = true;
    v = gives(&b, cumsum, &a, "bf16[5,0]", x);
    expect_eq(t, ir_node(b.g, v)->attr.cumulative.axis, 0);
    fails(&b, cummax, &a, ATTRIBUTE, "no axes", one);
    a = defaults(RLX_OP_cumsum_backward);
    v = gives(&b, cumsum_backward, &a, "bf16[5,0]", x);
    expect_eq(t, ir_node(b.g, v)->attr.cumsum_backward.axis, 1);
    a.cumsum_backward.axis = 2;
    fails(&b, cumsum_backward, &a, ATTRIBUTE, "axis is 2", x);
    build_close(&b);
}

TEST(shape_reduce, cross_entropy)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_dim s = symbol(&b, "s");
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(4, 10));
    ir_value open = build_input(&b, RLX_DTYPE_f32, RLX_LIST(s, 10));
    ir_value cube = build_input(&b, RLX_DTYPE_f32, RLX_LIST(4, 10, 1));
    ir_value labels = build_input(&b, RLX_DTYPE_i32, RLX_LIST(4));
    ir_value five = build_input(&b, RLX_DTYPE_i32, RLX_LIST(5));
    ir_value column = build_input(&b, RLX_DTYPE_i32, RLX_LIST(4, 1));
    ir_value flags = build_input(&b, RLX_DTYPE_bool, RLX_LIST(4));
    ir_value half = build_input(&b, RLX_DTYPE_f16, RLX_LIST(4, 10));
    ir_value nine = build_input(&b, RLX_DTYPE_f32, RLX_LIST(4, 9));
    ir_value dloss = build_input(&b, RLX_DTYPE_f32, RLX_LIST(4));
    ir_value dloss5 = build_input(&b, RLX_DTYPE_f32, RLX_LIST(5));

    gives(&b, softmax_cross_entropy_with_logits, NULL, "f32[4]", x, labels);
    gives(&b, softmax_cross_entropy_with_logits, NULL, "f32[s]", open, labels);
    fails(&b, softmax_cross_entropy_with_logits, NULL, SHAPE, "i32[5]", x, five);
    fails(&b, softmax_cross_entropy_with_logits, NULL, SHAPE, "rank must be 1", x, column);
    fails(&b, softmax_cross_entropy_with_logits, NULL, SHAPE, "rank must be 2", cube, labels);
    fails(&b, softmax_cross_entropy_with_logits, NULL, DTYPE, "bool", x, flags);
    fails(&b, softmax_cross_entropy_with_logits, NULL, DTYPE, "logits", column, labels);

    gives(&b, softmax_cross_entropy, NULL, "f32[4]", x, x);
    fails(&b, softmax_cross_entropy, NULL, DTYPE, "f16", x, half);
    fails(&b, softmax_cross_entropy, NULL, SHAPE, "f32[4,9]", x, nine);
    fails(&b, softmax_cross_entropy, NULL, SHAPE, "rank must be 2", cube, cube);

    gives(&b, softmax_cross_entropy_backward, NULL, "f32[4,10]", x, labels, dloss);
    gives(&b, softmax_cross_entropy_backward, NULL, "f16[4,10]", half, labels,
          build_input(&b, RLX_DTYPE_f16, RLX_LIST(4)));
    fails(&b, softmax_cross_entropy_backward, NULL, SHAPE, "dloss f32[5]", x, labels, dloss5);
    fails(&b, softmax_cross_entropy_backward, NULL, DTYPE, "f16", half, labels, dloss);
    fails(&b, softmax_cross_entropy_backward, NULL, SHAPE, "rank must be 1", x, labels, x);
    build_close(&b);
}

TEST(shape_random, sample)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_dim s = symbol(&b, "s");
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 3, 100));
    ir_value row = build_input(&b, RLX_DTYPE_bf16, RLX_LIST(100));
    ir_value open = build_input(&b, RLX_DTYPE_f32, RLX_LIST(s, s));
    ir_value none = build_input(&b, RLX_DTYPE_f32, RLX_LIST(3, 0));
    ir_value wide = build_input(&b, RLX_DTYPE_f32, RLX_LIST(1, (1 << 24) + 1));
    ir_value tall = build_input(&b, RLX_DTYPE_f32, RLX_LIST(1 << 13, (1 << 11) + 1, 4));
    ir_value ints = build_input(&b, RLX_DTYPE_i32, RLX_LIST(4));
    ir_value one = build_input(&b, RLX_DTYPE_f32, SCALAR);
    ir_value step = build_input(&b, RLX_DTYPE_u64, SCALAR);
    union ir_attr a = defaults(RLX_OP_sample);

    gives(&b, sample, &a, "i32[2,3]", x);
    gives(&b, sample, &a, "i32[]", row, step);
    fails(&b, sample, &a, DTYPE, "i32", ints);
    fails(&b, sample, &a, SHAPE, "rank must be at least 1", one);
    fails(&b, sample, &a, SHAPE, "rows of logits f32[3,0] are empty", none);
    fails(&b, sample, &a, SHAPE, "16777216", wide);
    fails(&b, sample, &a, SHAPE, "16777216", tall);
    fails(&b, sample, &a, DTYPE, "offset", x, one);
    fails(&b, sample, &a, SHAPE, "offset must have one element", x, ints);
    a.sample.top_k = -1;
    fails(&b, sample, &a, ATTRIBUTE, "top_k", x);
    a.sample.top_k = INT64_MAX;
    a.sample.temperature = 0;
    a.sample.index_dtype = RLX_DTYPE_i64;
    gives(&b, sample, &a, "i64[2,3]", x);
    static const float bad_p[] = {0, -0.5f, 1.5f, (float)NAN, INFINITY};
    for (size_t i = 0; i < sizeof bad_p / sizeof bad_p[0]; i++) {
        a.sample.top_p = bad_p[i];
        fails(&b, sample, &a, ATTRIBUTE, "top_p", x);
    }
    a.sample.top_p = 1;
    static const float bad_m[] = {-0.01f, 1.01f, (float)NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof bad_m / sizeof bad_m[0]; i++) {
        a.sample.min_p = bad_m[i];
        fails(&b, sample, &a, ATTRIBUTE, "min_p", x);
    }
    a.sample.min_p = 1;
    gives(&b, sample, &a, "i64[2,3]", x);
    static const float bad_t[] = {-1, (float)NAN, INFINITY};
    for (size_t i = 0; i < sizeof bad_t / sizeof bad_t[0]; i++) {
        a.sample.temperature = bad_t[i];
        fails(&b, sample, &a, ATTRIBUTE, "temperature", x);
    }
    a = defaults(RLX_OP_sample);
    a.sample.index_dtype = RLX_DTYPE_u8;
    fails(&b, sample, &a, ATTRIBUTE, "u8", x);
    a = defaults(RLX_OP_sample);
    gives(&b, sample, &a, "i32[s]", open);
    expect_ok(t, bind_symbols(&b, "s", 7, NULL, 0, NULL, NULL));
    expect_status(t, bind_symbols(&b, "s", 0, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);
    expect_status(t, bind_symbols(&b, "s", 1 << 25, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);
    build_close(&b);
}

TEST(shape_random, rng)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value step = build_input(&b, RLX_DTYPE_i32, SCALAR);
    ir_value pair = build_input(&b, RLX_DTYPE_i32, RLX_LIST(2));
    ir_value real = build_input(&b, RLX_DTYPE_f32, SCALAR);
    union ir_attr a = defaults(RLX_OP_rng_normal);

    gives(&b, rng_normal, &a, "f32[]", NONE);
    a.rng_normal.shape = RLX_LIST(symbol(&b, "s"), 0);
    gives(&b, rng_normal, &a, "f32[s,0]", NONE);
    gives(&b, rng_normal, &a, "f32[s,0]", step);
    fails(&b, rng_normal, &a, SHAPE, "one element", pair);
    fails(&b, rng_normal, &a, DTYPE, "offset", real);
    a.rng_normal.scale = INFINITY;
    fails(&b, rng_normal, &a, ATTRIBUTE, "scale", NONE);
    a = defaults(RLX_OP_rng_uniform);
    a.rng_uniform.shape = RLX_LIST(3, 4);
    a.rng_uniform.high = -1;
    gives(&b, rng_uniform, &a, "f32[3,4]", step);
    a.rng_uniform.low = (float)NAN;
    fails(&b, rng_uniform, &a, ATTRIBUTE, "low", NONE);
    a = defaults(RLX_OP_rng_uniform);
    a.rng_uniform.shape = RLX_LIST(-1);
    fails(&b, rng_uniform, &a, ATTRIBUTE, "negative", NONE);
    a.rng_uniform.shape = RLX_LIST(INT64_MAX);
    fails(&b, rng_uniform, &a, LIMIT, "overflow", NONE);
    build_close(&b);
}
