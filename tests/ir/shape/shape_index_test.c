/* shape_index_test.c: gathers, scatters and the cache. */
#include "shape_build.h"

TEST(shape_index, gather)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_dim s = symbol(&b, "s");
    ir_value table = build_input(&b, RLX_DTYPE_bf16, RLX_LIST(100, 8));
    ir_value idx = build_input(&b, RLX_DTYPE_i64, RLX_LIST(2, s));
    ir_value one = build_input(&b, RLX_DTYPE_u8, SCALAR);
    ir_value f = build_input(&b, RLX_DTYPE_f32, RLX_LIST(3));
    ir_value h = build_input(&b, RLX_DTYPE_f16, RLX_LIST(3));
    ir_value p = build_input(&b, RLX_DTYPE_bool, RLX_LIST(3));
    ir_value wide = build_input(&b, RLX_DTYPE_i32, RLX_LIST(1, 1, 1, 1, 1, 1, 1, 1));
    ir_value none = build_input(&b, RLX_DTYPE_f32, RLX_LIST(0, 4));
    ir_value zero = build_input(&b, RLX_DTYPE_i32, RLX_LIST(0));
    ir_value open = build_input(&b, RLX_DTYPE_f32, RLX_LIST(s, 4));
    union ir_attr a = defaults(RLX_OP_gather);

    gives(&b, gather, &a, "bf16[2,s,8]", table, idx);
    gives(&b, gather, &a, "bf16[8]", table, one);
    gives(&b, gather, &a, "bf16[3,8]", table, f);
    gives(&b, gather, &a, "f32[0,4]", none, zero);
    gives(&b, gather, &a, "f32[2,s,4]", none, idx); /* may yet be empty */
    fails(&b, gather, &a, SHAPE, "empty, but the result f32[3,4] is not", none, f);
    fails(&b, gather, &a, DTYPE, "f16", table, h);
    fails(&b, gather, &a, DTYPE, "bool", table, p);
    fails(&b, gather, &a, LIMIT, "rank 9", table, wide);
    fails(&b, gather, &a, SHAPE, "rank must be at least 1", one, f);
    gives(&b, gather, &a, "f32[3,4]", open, f);
    expect_eq_u64(t, b.mod->check.len, 2); /* s = 0 for none, s > 0 for open */
    a.gather.axis = -1;
    ir_value v = gives(&b, gather, &a, "bf16[100,2,s]", table, idx);
    expect_eq(t, ir_node(b.g, v)->attr.gather.axis, 1);
    a.gather.axis = 2;
    fails(&b, gather, &a, ATTRIBUTE, "axis is 2", table, idx);
    build_close(&b);
}

TEST(shape_index, gather_backward)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_dim s = symbol(&b, "s");
    ir_value dy = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 3, 5));
    ir_value idx = build_input(&b, RLX_DTYPE_i32, RLX_LIST(3));
    ir_value idx2 = build_input(&b, RLX_DTYPE_i32, RLX_LIST(3, 5));
    ir_value one = build_input(&b, RLX_DTYPE_i32, SCALAR);
    ir_value flags = build_input(&b, RLX_DTYPE_bool, RLX_LIST(3));
    ir_value full = build_input(&b, RLX_DTYPE_f32, RLX_LIST(1, 1, 1, 1, 1, 1, 1, 1));
    union ir_attr a = defaults(RLX_OP_gather_backward);

    fails(&b, gather_backward, &a, ATTRIBUTE, "table_dim", dy, idx);
    a.gather_backward.axis = 1;
    a.gather_backward.table_dim = 7;
    gives(&b, gather_backward, &a, "f32[2,7,5]", dy, idx);
    gives(&b, gather_backward, &a, "f32[2,7]", dy, idx2);
    gives(&b, gather_backward, &a, "f32[2,7,3,5]", dy, one);
    fails(&b, gather_backward, &a, LIMIT, "rank 9", full, one);
    a.gather_backward.axis = -2;
    ir_value v = gives(&b, gather_backward, &a, "f32[2,7,5]", dy, idx);
    expect_eq(t, ir_node(b.g, v)->attr.gather_backward.axis, 1);
    a.gather_backward.axis = 0;
    fails(&b, gather_backward, &a, SHAPE, "at axis 0", dy, idx);
    a.gather_backward.axis = 3;
    fails(&b, gather_backward, &a, ATTRIBUTE, "axis is 3", dy, idx);
    a.gather_backward.axis = 1;
    a.gather_backward.table_dim = s;
    gives(&b, gather_backward, &a, "f32[2,s,5]", dy, idx);
    fails(&b, gather_backward, &a, DTYPE, "bool", flags, idx);
    a.gather_backward.axis = 0;
    fails(&b, gather_backward, &a, SHAPE, "rank", idx, idx2);
    build_close(&b);
}

TEST(shape_index, scatter_add)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value up = build_input(&b, RLX_DTYPE_f32, RLX_LIST(4, 2));
    ir_value idx = build_input(&b, RLX_DTYPE_i32, RLX_LIST(4));
    ir_value other = build_input(&b, RLX_DTYPE_i32, RLX_LIST(5));
    ir_value deep = build_input(&b, RLX_DTYPE_i32, RLX_LIST(4, 2, 1));
    ir_value one = build_input(&b, RLX_DTYPE_i32, SCALAR);
    union ir_attr a = defaults(RLX_OP_scatter_add);

    fails(&b, scatter_add, &a, ATTRIBUTE, "out_dim", up, idx);
    a.scatter_add.out_dim = 3;
    gives(&b, scatter_add, &a, "f32[3,2]", up, idx);
    gives(&b, scatter_add, &a, "f32[3,4,2]", up, one);
    gives(&b, scatter_add, &a, "i32[3]", idx, idx);
    fails(&b, scatter_add, &a, SHAPE, "does not start with", up, other);
    fails(&b, scatter_add, &a, SHAPE, "does not start with", up, deep);
    a.scatter_add.out_dim = -3;
    fails(&b, scatter_add, &a, ATTRIBUTE, "out_dim is -3", up, idx);
    a.scatter_add.out_dim = symbol(&b, "n");
    gives(&b, scatter_add, &a, "f32[n,2]", up, idx);
    build_close(&b);
}

TEST(shape_index, elements)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value data = build_input(&b, RLX_DTYPE_f32, RLX_LIST(4, 5));
    ir_value idx = build_input(&b, RLX_DTYPE_i64, RLX_LIST(3, 9));
    ir_value tall = build_input(&b, RLX_DTYPE_i64, RLX_LIST(5, 2));
    ir_value up = build_input(&b, RLX_DTYPE_f32, RLX_LIST(3, 9));
    ir_value flat = build_input(&b, RLX_DTYPE_i64, RLX_LIST(3));
    ir_value flags = build_input(&b, RLX_DTYPE_bool, RLX_LIST(4, 5));
    ir_value flag_up = build_input(&b, RLX_DTYPE_bool, RLX_LIST(3, 9));
    ir_value none = build_input(&b, RLX_DTYPE_f32, RLX_LIST(4, 0));
    union ir_attr a = defaults(RLX_OP_gather_elements);

    a.gather_elements.axis = 1;
    gives(&b, gather_elements, &a, "f32[3,9]", data, idx);
    fails(&b, gather_elements, &a, SHAPE, "i64[5,2]", data, tall);
    fails(&b, gather_elements, &a, SHAPE, "rank of data", data, flat);
    fails(&b, gather_elements, &a, SHAPE, "empty", none, idx);
    fails(&b, gather_elements, &a, DTYPE, "bool", data, flags);
    a.gather_elements.axis = 0;
    gives(&b, gather_elements, &a, "f32[5,2]", data, tall);
    fails(&b, gather_elements, &a, SHAPE, "i64[3,9]", data, idx);
    a.gather_elements.axis = -3;
    fails(&b, gather_elements, &a, ATTRIBUTE, "axis is -3", data, idx);

    a = defaults(RLX_OP_scatter_elements);
    a.scatter_elements.axis = -1;
    gives(&b, scatter_elements, &a, "f32[4,5]", data, idx, up);
    gives(&b, scatter_elements, &a, "bool[4,5]", flags, idx, flag_up);
    fails(&b, scatter_elements, &a, DTYPE, "bool", data, idx, flag_up);
    fails(&b, scatter_elements, &a, SHAPE, "indices and updates", data, idx, data);
    fails(&b, scatter_elements, &a, SHAPE, "i64[5,2]", data, tall, up);
    a.scatter_elements.reduction = RLX_SCATTER_REDUCTION_add;
    fails(&b, scatter_elements, &a, DTYPE, "bool", flags, idx, flag_up);
    a.scatter_elements.reduction = RLX_SCATTER_REDUCTION_max;
    gives(&b, scatter_elements, &a, "bool[4,5]", flags, idx, flag_up);
    a.scatter_elements.reduction = 5;
    fails(&b, scatter_elements, &a, ATTRIBUTE, "reduction", data, idx, up);
    build_close(&b);
}

TEST(shape_index, coordinates)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_dim s = symbol(&b, "s");
    ir_value data = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 3, 4));
    ir_value idx = build_input(&b, RLX_DTYPE_i32, RLX_LIST(2, 7, 2));
    ir_value deep = build_input(&b, RLX_DTYPE_i32, RLX_LIST(7, 4));
    ir_value three = build_input(&b, RLX_DTYPE_i32, RLX_LIST(3, 1));
    ir_value half = build_input(&b, RLX_DTYPE_f16, RLX_LIST(1, 1));
    ir_value open = build_input(&b, RLX_DTYPE_i32, RLX_LIST(s, 2));
    ir_value bad = build_input(&b, RLX_DTYPE_i32, RLX_LIST(2, s));
    ir_value one = build_input(&b, RLX_DTYPE_i32, SCALAR);
    ir_value whole = build_input(&b, RLX_DTYPE_i32, RLX_LIST(5, 0));
    ir_value none = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 0, 4));
    ir_value up = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 7, 4));
    ir_value up_bad = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 7, 3));
    ir_value wide = build_input(&b, RLX_DTYPE_i32, RLX_LIST(1, 1, 1, 1, 1, 1, 1, 1));
    union ir_attr a = defaults(RLX_OP_gather_nd);

    gives(&b, gather_nd, &a, "f32[2,7,4]", data, idx);
    gives(&b, gather_nd, &a, "f32[s,4]", data, open);
    gives(&b, gather_nd, &a, "f32[5,2,3,4]", data, whole);
    fails(&b, gather_nd, &a, SHAPE, "coordinates of length 4", data, deep);
    fails(&b, gather_nd, &a, SHAPE, "fixed size", data, bad);
    fails(&b, gather_nd, &a, SHAPE, "rank must be at least 1", data, one);
    fails(&b, gather_nd, &a, SHAPE, "empty", none, idx);
    fails(&b, gather_nd, &a, LIMIT, "rank 9", data, wide);
    fails(&b, gather_nd, &a, DTYPE, "indices", data, half);
    a.gather_nd.batch_dims = 1;
    gives(&b, gather_nd, &a, "f32[2,7]", data, idx);
    fails(&b, gather_nd, &a, SHAPE, "first 1 axes", data, three);
    a.gather_nd.batch_dims = 2;
    fails(&b, gather_nd, &a, SHAPE, "has 1 axes", data, idx);
    a.gather_nd.batch_dims = 3;
    fails(&b, gather_nd, &a, ATTRIBUTE, "batch_dims is 3", data, idx);
    a.gather_nd.batch_dims = -1;
    fails(&b, gather_nd, &a, ATTRIBUTE, "batch_dims is -1", data, idx);

    a = defaults(RLX_OP_scatter_nd);
    gives(&b, scatter_nd, &a, "f32[2,3,4]", data, idx, up);
    fails(&b, scatter_nd, &a, SHAPE, "must have the shape [2,7,4]", data, idx, up_bad);
    fails(&b, scatter_nd, &a, SHAPE, "must have the shape [2,7,4]", data, idx, data);
    fails(&b, scatter_nd, &a, DTYPE, "i32", data, idx, idx);
    a.scatter_nd.reduction = RLX_SCATTER_REDUCTION_min;
    gives(&b, scatter_nd, &a, "f32[2,3,4]", data, idx, up);
    build_close(&b);
}

TEST(shape_index, cache_append)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_dim n = symbol(&b, "n");
    rlx_list shape = RLX_LIST(2, 16, 8);
    ir_value cache = build_leaf(&b, RLX_OP_state, RLX_DTYPE_f16, shape);
    ir_value param = build_leaf(&b, RLX_OP_param, RLX_DTYPE_f16, shape);
    ir_value rows = build_input(&b, RLX_DTYPE_f16, RLX_LIST(2, n, 8));
    ir_value many = build_input(&b, RLX_DTYPE_f16, RLX_LIST(2, 17, 8));
    ir_value thin = build_input(&b, RLX_DTYPE_f16, RLX_LIST(2, 1, 7));
    ir_value flat = build_input(&b, RLX_DTYPE_f16, RLX_LIST(2, 8));
    ir_value f32 = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 1, 8));
    ir_value pos = build_input(&b, RLX_DTYPE_i64, SCALAR);
    ir_value pos1 = build_input(&b, RLX_DTYPE_i32, RLX_LIST(1));
    ir_value pos2 = build_input(&b, RLX_DTYPE_i32, RLX_LIST(2));
    ir_value posf = build_input(&b, RLX_DTYPE_f32, SCALAR);
    union ir_attr a = defaults(RLX_OP_cache_append);

    a.cache_append.axis = -2;
    fails(&b, cache_append, &a, SHAPE, "f16[2,17,8]", cache, many, pos);
    fails(&b, cache_append, &a, SHAPE, "f16[2,1,7]", cache, thin, pos);
    fails(&b, cache_append, &a, SHAPE, "f16[2,8]", cache, flat, pos);
    fails(&b, cache_append, &a, DTYPE, "f32", cache, f32, pos);
    fails(&b, cache_append, &a, SHAPE, "one element", cache, rows, pos2);
    fails(&b, cache_append, &a, DTYPE, "position has element type f32", cache, rows, posf);
    fails(&b, cache_append, &a, GRAPH, "a result of param", param, rows, pos);
    fails(&b, cache_append, &a, GRAPH, "a result of input", rows, rows, pos);
    a.cache_append.axis = 3;
    fails(&b, cache_append, &a, ATTRIBUTE, "axis is 3", cache, rows, pos);
    a.cache_append.axis = -2;
    ir_value v = gives(&b, cache_append, &a, "f16[2,16,8]", cache, rows, pos1);
    expect_eq(t, ir_node(b.g, v)->attr.cache_append.axis, 1);
    expect_ok(t, bind_symbols(&b, "n", 16, NULL, 0, NULL, NULL));
    expect_ok(t, bind_symbols(&b, "n", 0, NULL, 0, NULL, NULL));
    expect_status(t, bind_symbols(&b, "n", 17, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);
    build_close(&b);
}

/* The shapes of the manual's worked examples. */
TEST(shape_index, worked_examples)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value table = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 3));
    ir_value three = build_input(&b, RLX_DTYPE_i32, RLX_LIST(3));
    ir_value updates = build_input(&b, RLX_DTYPE_f32, RLX_LIST(4, 2));
    ir_value four = build_input(&b, RLX_DTYPE_i32, RLX_LIST(4));
    union ir_attr a = defaults(RLX_OP_gather);

    a.gather.axis = 1;
    gives(&b, gather, &a, "f32[2,3]", table, three);
    a = defaults(RLX_OP_gather_backward);
    a.gather_backward.axis = 1;
    a.gather_backward.table_dim = 3;
    gives(&b, gather_backward, &a, "f32[2,3]", table, three);
    a = defaults(RLX_OP_scatter_add);
    a.scatter_add.out_dim = 3;
    gives(&b, scatter_add, &a, "f32[3,2]", updates, four);
    a = defaults(RLX_OP_topk);
    a.topk.k = 3;
    gives(&b, topk, &a, "i32[3]", four);
    gives(&b, argmax, NULL, "i32[]", four);
    build_close(&b);
}
