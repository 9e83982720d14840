/* shape_movement_test.c: reshape, expand, cuts, joins and repeats, static and symbolic. */
#include <math.h>

#include "shape_build.h"

#define INFER RLX_DIM_INFER

TEST(shape_movement, reshape)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(4, 15));
    ir_value big = build_input(&b, RLX_DTYPE_f32, RLX_LIST(4, 15, 384));
    ir_value none = build_input(&b, RLX_DTYPE_f32, RLX_LIST(0, 3));
    ir_value one = build_input(&b, RLX_DTYPE_bool, SCALAR);
    union ir_attr a = defaults(RLX_OP_reshape);

    a.reshape.shape = RLX_LIST(60, INFER);
    ir_value v = gives(&b, reshape, &a, "f32[60,384]", big);
    expect_eq(t, ir_node(b.g, v)->attr.reshape.shape.at[1], 384);
    gives(&b, reshape, &a, "f32[60,1]", x);
    a.reshape.shape = RLX_LIST(-1, 3); /* the plain number means the same */
    gives(&b, reshape, &a, "f32[0,3]", none);
    a.reshape.shape = RLX_LIST(INFER, 0);
    fails(&b, reshape, &a, ATTRIBUTE, "[-1,0]", none);
    a.reshape.shape = RLX_LIST(7, INFER);
    fails(&b, reshape, &a, SHAPE, "cannot turn 60 elements of f32[4,15] into [7,-1]", x);
    a.reshape.shape = RLX_LIST(61);
    fails(&b, reshape, &a, SHAPE, "60 elements of f32[4,15] into [61]", x);
    a.reshape.shape = RLX_LIST(0);
    fails(&b, reshape, &a, SHAPE, "into [0]", x);
    gives(&b, reshape, &a, "f32[0]", none);
    a.reshape.shape = RLX_LIST(INFER, 2, INFER);
    fails(&b, reshape, &a, ATTRIBUTE, "entries 0 and 2", x);
    a.reshape.shape = RLX_LIST(-2, 30);
    fails(&b, reshape, &a, ATTRIBUTE, "negative", x);
    a.reshape.shape = RLX_LIST(1, 1, 1, 1, 1, 1, 1, 1);
    gives(&b, reshape, &a, "bool[1,1,1,1,1,1,1,1]", one);
    a.reshape.shape = SCALAR;
    gives(&b, reshape, &a, "bool[]", one);
    fails(&b, reshape, &a, SHAPE, "into []", x);
    a.reshape.shape = RLX_LIST(INT64_MAX, INT64_MAX);
    fails(&b, reshape, &a, LIMIT, "overflow", x);
    a.reshape.shape = RLX_LIST(RLX_DIM_UNKNOWN);
    fails(&b, reshape, &a, ATTRIBUTE, "?", x);
    a.reshape.shape = RLX_LIST(RLX_DIM_FAILED);
    fails(&b, reshape, &a, LIMIT, "overflow", x);
    build_close(&b);
}

TEST(shape_movement, reshape_symbolic)
{
    struct build b;
    struct ir_type type = {0};
    require(t, build_open(t, &b));
    struct dim_table *dims = b.mod->dims;
    ir_dim n = symbol(&b, "batch"), s = symbol(&b, "seq"), next = dim_add(dims, s, 1);
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(n, s, 12));
    ir_value y = build_input(&b, RLX_DTYPE_f32, RLX_LIST(s));
    ir_value u = build_input(&b, RLX_DTYPE_f32, RLX_LIST(RLX_DIM_UNKNOWN, 3));
    union ir_attr a = defaults(RLX_OP_reshape);

    a.reshape.shape = RLX_LIST(INFER, 4, 3);
    gives(&b, reshape, &a, "f32[batch*seq,4,3]", x);
    a.reshape.shape = RLX_LIST(n, INFER);
    gives(&b, reshape, &a, "f32[batch,12*seq]", x);
    a.reshape.shape = RLX_LIST(s, 6, INFER);
    gives(&b, reshape, &a, "f32[seq,6,2*batch]", x);
    a.reshape.shape = RLX_LIST(next, INFER);
    fails(&b, reshape, &a, SHAPE, "do not cancel", x);
    a.reshape.shape = RLX_LIST(5, INFER);
    fails(&b, reshape, &a, SHAPE, "12*batch*seq elements", x);
    a.reshape.shape = RLX_LIST(INFER, next);
    fails(&b, reshape, &a, SHAPE, "do not cancel", y);
    a.reshape.shape = RLX_LIST(next); /* never equal */
    fails(&b, reshape, &a, SHAPE, "seq elements", y);
    expect_eq_u64(t, b.mod->check.len, 0);

    /* Unknown sizes: -1 waits for them. */
    a.reshape.shape = RLX_LIST(INFER, 3);
    ir_value v = gives(&b, reshape, &a, "f32[?,3]", u);
    expect_eq(t, ir_node(b.g, v)->attr.reshape.shape.at[0], INFER);

    /* A product too large to write down. */
    ir_dim cube = dim_mul(dims, s, dim_mul(dims, s, s));
    ir_value deep =
        build_input(&b, RLX_DTYPE_f32, RLX_LIST(cube, cube, cube, cube, cube, cube, cube, cube));
    fails(&b, reshape, &a, LIMIT, "overflow", deep);
    build_close(&b);

    require(t, build_open(t, &b));
    s = symbol(&b, "seq");
    y = build_input(&b, RLX_DTYPE_f32, RLX_LIST(s));
    a.reshape.shape = RLX_LIST(2, 3);
    gives(&b, reshape, &a, "f32[2,3]", y);
    expect_eq_u64(t, b.mod->check.len, 1);
    expect_ok(t, bind_symbols(&b, "seq", 6, NULL, 0, &type, NULL));
    expect_status(t, bind_symbols(&b, "seq", 7, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);
    a.reshape.shape = RLX_LIST(INFER, 1);
    gives(&b, reshape, &a, "f32[seq,1]", y);
    expect_ok(t, bind_symbols(&b, "seq", 6, NULL, 0, &type, NULL));
    expect_eq(t, type.dim[0], 6);
    build_close(&b);
}

TEST(shape_movement, expand)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_dim s = symbol(&b, "s"), u = symbol(&b, "u");
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(3, 1));
    ir_value y = build_input(&b, RLX_DTYPE_f32, RLX_LIST(s, 1));
    ir_value q = build_input(&b, RLX_DTYPE_f32, RLX_LIST(RLX_DIM_UNKNOWN));
    ir_value one = build_input(&b, RLX_DTYPE_f32, SCALAR);
    union ir_attr a = defaults(RLX_OP_expand);

    a.expand.shape = RLX_LIST(2, 3, 4);
    gives(&b, expand, &a, "f32[2,3,4]", x);
    gives(&b, expand, &a, "f32[2,3,4]", one);
    gives(&b, expand, &a, "f32[2,3,4]", y); /* s is 1 or 3: binding tells */
    a.expand.shape = RLX_LIST(INFER, 0);
    ir_value v = gives(&b, expand, &a, "f32[3,0]", x);
    expect_eq(t, ir_node(b.g, v)->attr.expand.shape.at[0], 3);
    gives(&b, expand, &a, "f32[s,0]", y);
    a.expand.shape = RLX_LIST(-1, -1);
    gives(&b, expand, &a, "f32[3,1]", x);
    a.expand.shape = RLX_LIST(INFER);
    gives(&b, expand, &a, "f32[?]", q);
    a.expand.shape = RLX_LIST(u, 3, s);
    gives(&b, expand, &a, "f32[u,3,s]", x);
    a.expand.shape = RLX_LIST(s, 2);
    gives(&b, expand, &a, "f32[s,2]", x);
    expect_eq_u64(t, b.mod->check.len, 2); /* s is 1 or 3, and s = 3 */
    a.expand.shape = SCALAR;
    gives(&b, expand, &a, "f32[]", one);

    a.expand.shape = RLX_LIST(3);
    fails(&b, expand, &a, SHAPE, "more axes", x);
    a.expand.shape = RLX_LIST(4, 4);
    fails(&b, expand, &a, SHAPE, "3 against 4", x);
    a.expand.shape = RLX_LIST(1, 4);
    fails(&b, expand, &a, SHAPE, "3 against 1", x);
    a.expand.shape = RLX_LIST(0, 4);
    fails(&b, expand, &a, SHAPE, "3 against 0", x);
    a.expand.shape = RLX_LIST(INFER, 3, 4);
    fails(&b, expand, &a, ATTRIBUTE, "no such axis", x);
    a.expand.shape = RLX_LIST(-7, 3, 4);
    fails(&b, expand, &a, ATTRIBUTE, "negative", x);
    a.expand.shape = RLX_LIST(INT64_MAX, 3, 4);
    fails(&b, expand, &a, LIMIT, "overflow", x);
    build_close(&b);
}

TEST(shape_movement, expand_may_stretch_a_symbol)
{
    struct build b;
    struct ir_type type = {0};
    require(t, build_open(t, &b));
    ir_value y = build_input(&b, RLX_DTYPE_f32, RLX_LIST(symbol(&b, "s")));
    union ir_attr a = defaults(RLX_OP_expand);

    a.expand.shape = RLX_LIST(3);
    gives(&b, expand, &a, "f32[3]", y);
    expect_ok(t, bind_symbols(&b, "s", 1, NULL, 0, &type, NULL));
    expect_eq(t, type.dim[0], 3);
    expect_ok(t, bind_symbols(&b, "s", 3, NULL, 0, NULL, NULL));
    expect_status(t, bind_symbols(&b, "s", 2, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);
    build_close(&b);
}

TEST(shape_movement, transpose_reverse)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_i64, RLX_LIST(2, symbol(&b, "s"), 4));
    ir_value one = build_input(&b, RLX_DTYPE_i64, SCALAR);
    union ir_attr a = defaults(RLX_OP_transpose);

    gives(&b, transpose, &a, "i64[]", one);
    fails(&b, transpose, &a, ATTRIBUTE, "rank 3", x);
    a.transpose.perm = RLX_LIST(2, -3, 1);
    ir_value v = gives(&b, transpose, &a, "i64[4,2,s]", x);
    expect_eq(t, ir_node(b.g, v)->attr.transpose.perm.at[1], 0);
    a.transpose.perm = RLX_LIST(2, 0, -1);
    fails(&b, transpose, &a, ATTRIBUTE, "[2,0,-1] names axis 2 twice", x);
    a.transpose.perm = RLX_LIST(0, 1, 3);
    fails(&b, transpose, &a, ATTRIBUTE, "rank 3 allows -3 to 2", x);
    a.transpose.perm = RLX_LIST(0, 1, INT64_MIN);
    fails(&b, transpose, &a, ATTRIBUTE, "perm is -9223372036854775808", x);
    a.transpose.perm = RLX_LIST(0, 1, 2, 3);
    fails(&b, transpose, &a, ATTRIBUTE, "4 entries", x);

    a = defaults(RLX_OP_reverse);
    gives(&b, reverse, &a, "i64[2,s,4]", x);
    a.reverse.axes = RLX_LIST(-1, 0);
    gives(&b, reverse, &a, "i64[2,s,4]", x);
    fails(&b, reverse, &a, ATTRIBUTE, "no axes", one);
    a.reverse.axes = RLX_LIST(-1, 2);
    fails(&b, reverse, &a, ATTRIBUTE, "twice", x);
    build_close(&b);
}

static union ir_attr narrow(int64_t axis, ir_dim start, ir_dim len)
{
    union ir_attr a = defaults(RLX_OP_narrow);

    a.narrow.axis = axis;
    a.narrow.start = start;
    a.narrow.len = len;
    return a;
}

TEST(shape_movement, narrow)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(10));
    union ir_attr a = narrow(0, 3, 4);

    gives(&b, narrow, &a, "f32[4]", x);
    a = narrow(-1, 10, 0);
    gives(&b, narrow, &a, "f32[0]", x);
    a = narrow(0, 0, 10);
    gives(&b, narrow, &a, "f32[10]", x);
    a = narrow(0, 7, 4);
    fails(&b, narrow, &a, ATTRIBUTE, "start 7 and len 4 go past axis 0 of f32[10]", x);
    a = narrow(0, 11, 0);
    fails(&b, narrow, &a, ATTRIBUTE, "past", x);
    a = narrow(0, INT64_MAX, INT64_MAX);
    fails(&b, narrow, &a, ATTRIBUTE, "past", x);
    a = narrow(0, -1, 2);
    fails(&b, narrow, &a, ATTRIBUTE, "start is -1", x);
    a = narrow(0, 1, -2);
    fails(&b, narrow, &a, ATTRIBUTE, "len is -2", x);
    a = narrow(1, 0, 1);
    fails(&b, narrow, &a, ATTRIBUTE, "rank 1 allows -1 to 0", x);
    build_close(&b);
}

TEST(shape_movement, narrow_symbolic)
{
    struct build b;
    struct ir_type type = {0};
    rlx_error err;
    require(t, build_open(t, &b));
    ir_dim past = symbol(&b, "past"), next = dim_add(b.mod->dims, past, 1);
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(16, 4));
    union ir_attr a = narrow(0, 0, next);

    gives(&b, narrow, &a, "f32[past+1,4]", x);
    expect_ok(t, bind_symbols(&b, "past", 15, NULL, 0, &type, NULL));
    expect_eq(t, type.dim[0], 16);
    expect_status(t, bind_symbols(&b, "past", 16, NULL, 0, NULL, &err), RLX_ERROR_ATTRIBUTE);
    expect_contains(t, err.message, "narrow");
    ir_value y = build_input(&b, RLX_DTYPE_f32, RLX_LIST(next));
    a = narrow(0, past, 1);
    size_t checks = b.mod->check.len;
    gives(&b, narrow, &a, "f32[1]", y); /* past + 1 <= past + 1: decided */
    expect_eq_u64(t, b.mod->check.len, checks);
    build_close(&b);
}

static union ir_attr slice(ir_dim start, ir_dim len, int64_t step)
{
    union ir_attr a = defaults(RLX_OP_slice);

    a.slice.axis = -1;
    a.slice.start = start;
    a.slice.len = len;
    a.slice.step = step;
    return a;
}

TEST(shape_movement, slice)
{
    static const struct {
        int64_t start, len, step;
        bool ok;
    } rows[] = {
        {0, 10, 1, true},          {0, 5, 2, true},
        {1, 5, 2, true},           {2, 5, 2, false},
        {9, 10, -1, true},         {9, 5, -2, true},
        {8, 5, -2, true},          {7, 5, -2, false},
        {9, 1, 100, true},         {10, 1, 1, false},
        {10, 0, 1, true},          {50, 0, -3, true},
        {0, 1, -1, true},          {0, 2, -1, false},
        {9, 2, 1, false},          {0, INT64_MAX, INT64_MAX, false},
        {0, 2, INT64_MAX, false},  {9, 2, -INT64_MAX, false},
        {INT64_MAX, 1, 1, false},  {1, INT64_MAX, 1, false},
        {INT64_MAX, 2, -1, false},
    };
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(3, 10));
    union ir_attr a;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char want[48];
        test_note(t, "row %zu", i);
        a = slice(rows[i].start, rows[i].len, rows[i].step);
        snprintf(want, sizeof want, "f32[3,%lld]", (long long)rows[i].len);
        if (rows[i].ok)
            gives(&b, slice, &a, want, x);
        else
            fails(&b, slice, &a, ATTRIBUTE, "leave axis 1 of f32[3,10]", x);
    }
    test_note(t, "%s", "");
    a = slice(0, 1, 0);
    fails(&b, slice, &a, ATTRIBUTE, "step", x);
    a = slice(-3, 1, 1);
    fails(&b, slice, &a, ATTRIBUTE, "start is -3", x);
    a = slice(0, 1, 1);
    a.slice.axis = 2;
    fails(&b, slice, &a, ATTRIBUTE, "axis is 2", x);
    build_close(&b);
}

TEST(shape_movement, slice_symbolic)
{
    struct build b;
    struct ir_type type = {0};
    require(t, build_open(t, &b));
    ir_dim n = symbol(&b, "n");
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(n));
    ir_dim last = dim_sub(b.mod->dims, n, 1);
    union ir_attr a = slice(last, n, -1);

    gives(&b, slice, &a, "f32[n]", x); /* back to front */
    a = slice(last, 3, -1);
    gives(&b, slice, &a, "f32[3]", x);
    expect_ok(t, bind_symbols(&b, "n", 3, NULL, 0, &type, NULL));
    expect_status(t, bind_symbols(&b, "n", 2, NULL, 0, NULL, NULL), RLX_ERROR_ATTRIBUTE);
    a = slice(2, 3, -2); /* wrong whatever n is */
    fails(&b, slice, &a, ATTRIBUTE, "leave", x);
    build_close(&b);
}

TEST(shape_movement, concat)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_dim s = symbol(&b, "s"), u = symbol(&b, "u");
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 3));
    ir_value y = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 0));
    ir_value z = build_input(&b, RLX_DTYPE_f32, RLX_LIST(s, u));
    ir_value h = build_input(&b, RLX_DTYPE_f16, RLX_LIST(2, 3));
    ir_value flat = build_input(&b, RLX_DTYPE_f32, RLX_LIST(6));
    ir_value one = build_input(&b, RLX_DTYPE_f32, SCALAR);
    ir_value big = build_input(&b, RLX_DTYPE_i8, RLX_LIST(INT64_MAX));
    union ir_attr a = defaults(RLX_OP_concat);

    fails(&b, concat, &a, ATTRIBUTE, "axis is missing", x);
    a.concat.axis = -1;
    gives(&b, concat, &a, "f32[2,3]", x);
    gives(&b, concat, &a, "f32[2,6]", x, y, x);
    gives(&b, concat, &a, "f32[2,u+6]", z, x, x); /* s = 2 */
    expect_eq_u64(t, b.mod->check.len, 1);
    fails(&b, concat, &a, GRAPH, "at least 1", NONE);
    fails(&b, concat, &a, SHAPE, "rank must be at least 1", one);
    fails(&b, concat, &a, SHAPE, "parts[1] is f32[6]", x, flat);
    fails(&b, concat, &a, DTYPE, "f16", x, h);
    fails(&b, concat, &a, LIMIT, "overflow", big, big);
    a.concat.axis = 0;
    fails(&b, concat, &a, SHAPE, "f32[2,0]", x, y);
    gives(&b, concat, &a, "f32[4,3]", x, x);
    a.concat.axis = 2;
    fails(&b, concat, &a, ATTRIBUTE, "axis is 2", x);
    build_close(&b);
}

static union ir_attr pad(rlx_list before, rlx_list after, int32_t mode)
{
    union ir_attr a = defaults(RLX_OP_pad);

    a.pad.before = before;
    a.pad.after = after;
    a.pad.mode = mode;
    return a;
}

TEST(shape_movement, pad)
{
    enum { CONST = RLX_PAD_MODE_constant, REFLECT = RLX_PAD_MODE_reflect };
    enum { REPLICATE = RLX_PAD_MODE_replicate, CIRCULAR = RLX_PAD_MODE_circular };
    struct build b;
    require(t, build_open(t, &b));
    ir_dim s = symbol(&b, "s");
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 3));
    ir_value none = build_input(&b, RLX_DTYPE_f32, RLX_LIST(0, 3));
    ir_value v = build_input(&b, RLX_DTYPE_f32, RLX_LIST(s));
    ir_value u8 = build_input(&b, RLX_DTYPE_u8, RLX_LIST(1));
    ir_value i8 = build_input(&b, RLX_DTYPE_i8, RLX_LIST(1));
    union ir_attr a = pad(RLX_LIST(0, 5), RLX_LIST(9, 0), CONST);

    gives(&b, pad, &a, "f32[11,8]", x);
    gives(&b, pad, &a, "f32[9,8]", none);
    a.pad.value = -(double)INFINITY;
    gives(&b, pad, &a, "f32[11,8]", x);
    a.pad.value = (double)NAN;
    fails(&b, pad, &a, ATTRIBUTE, "value", x);
    a = pad(RLX_LIST(1, 2), RLX_LIST(1, 2), REFLECT);
    gives(&b, pad, &a, "f32[4,7]", x);
    a = pad(RLX_LIST(2, 0), RLX_LIST(0, 0), REFLECT);
    fails(&b, pad, &a, ATTRIBUTE, "axis 0 of f32[2,3] is too short to pad by 2 and 0 (reflect)", x);
    a = pad(RLX_LIST(0, INT64_MAX), RLX_LIST(0, 0), REFLECT);
    fails(&b, pad, &a, ATTRIBUTE, "too short", x);
    a = pad(RLX_LIST(2, 3), RLX_LIST(2, 3), CIRCULAR);
    gives(&b, pad, &a, "f32[6,9]", x);
    a = pad(RLX_LIST(0, 0), RLX_LIST(3, 0), CIRCULAR);
    fails(&b, pad, &a, ATTRIBUTE, "circular", x);
    a = pad(RLX_LIST(7, 0), RLX_LIST(0, 7), REPLICATE);
    gives(&b, pad, &a, "f32[9,10]", x);
    fails(&b, pad, &a, ATTRIBUTE, "axis 0 of f32[0,3]", none);
    a = pad(RLX_LIST(0, 1), RLX_LIST(0, 1), REPLICATE);
    gives(&b, pad, &a, "f32[0,5]", none); /* nothing to copy on axis 1 either */
    a = pad(RLX_LIST(1), RLX_LIST(1, 1), CONST);
    fails(&b, pad, &a, ATTRIBUTE, "before has 1 and after 2", x);
    a = pad(RLX_LIST(1, -1), RLX_LIST(1, 1), CONST);
    fails(&b, pad, &a, ATTRIBUTE, "an entry of before is -1", x);
    a = pad(RLX_LIST(1, 1), RLX_LIST(1, INT64_MAX), CONST);
    fails(&b, pad, &a, LIMIT, "overflow", x);
    a = pad(RLX_LIST(1, 1), RLX_LIST(1, 1), 4);
    fails(&b, pad, &a, ATTRIBUTE, "mode", x);

    a = pad(RLX_LIST(s), RLX_LIST(1), CONST);
    gives(&b, pad, &a, "f32[2*s+1]", v);
    expect_eq_u64(t, b.mod->check.len, 0);
    a = pad(RLX_LIST(2), RLX_LIST(0), REFLECT);
    gives(&b, pad, &a, "f32[s+2]", v);
    expect_ok(t, bind_symbols(&b, "s", 3, NULL, 0, NULL, NULL));
    expect_status(t, bind_symbols(&b, "s", 2, NULL, 0, NULL, NULL), RLX_ERROR_ATTRIBUTE);

    a = pad(RLX_LIST(1), RLX_LIST(1), CONST);
    a.pad.value = 255;
    gives(&b, pad, &a, "u8[3]", u8);
    a.pad.value = 256;
    fails(&b, pad, &a, ATTRIBUTE, "value 256 is not a valid u8", u8);
    a.pad.value = 0.5;
    fails(&b, pad, &a, ATTRIBUTE, "value 0.5", u8);
    a.pad.value = -128;
    gives(&b, pad, &a, "i8[3]", i8);
    a.pad.value = 128;
    fails(&b, pad, &a, ATTRIBUTE, "value 128 is not a valid i8", i8);
    a.pad.mode = REPLICATE;
    gives(&b, pad, &a, "u8[3]", u8);
    build_close(&b);
}

TEST(shape_movement, tile_trilu)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, symbol(&b, "s")));
    ir_value v = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2));
    ir_value one = build_input(&b, RLX_DTYPE_f32, SCALAR);
    union ir_attr a = defaults(RLX_OP_tile);

    gives(&b, tile, &a, "f32[]", one);
    a.tile.reps = RLX_LIST(3, 2);
    gives(&b, tile, &a, "f32[6,2*s]", x);
    fails(&b, tile, &a, ATTRIBUTE, "reps [3,2] has 2 entries", v);
    a.tile.reps = RLX_LIST(0);
    gives(&b, tile, &a, "f32[0]", v);
    a.tile.reps = RLX_LIST(-1);
    fails(&b, tile, &a, ATTRIBUTE, "negative", v);
    a.tile.reps = RLX_LIST(INT64_MAX);
    fails(&b, tile, &a, LIMIT, "overflow", v);
    a.tile.reps = RLX_LIST(INT64_MAX / 2); /* the count fits, the bytes do not */
    fails(&b, tile, &a, LIMIT, "overflow", v);

    gives(&b, trilu, NULL, "f32[2,s]", x);
    fails(&b, trilu, NULL, SHAPE, "x is f32[2]; its rank must be at least 2", v);
    a = defaults(RLX_OP_trilu);
    a.trilu.diagonal = INT64_MIN + 1;
    gives(&b, trilu, &a, "f32[2,s]", x);
    build_close(&b);
}

TEST(shape_movement, resize)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_f16, RLX_LIST(1, 3, symbol(&b, "h"), 5));
    ir_value vol = build_input(&b, RLX_DTYPE_f16, RLX_LIST(1, 3, 4, 0, 6));
    ir_value big = build_input(&b, RLX_DTYPE_i8, RLX_LIST(1, 1, 1, INT64_MAX));
    ir_value open = build_input(&b, RLX_DTYPE_f16, RLX_LIST(1, 3, 4, symbol(&b, "h"), 6));
    union ir_attr a = defaults(RLX_OP_interpolate_3d);

    gives(&b, resize_nearest_2x, NULL, "f16[1,3,2*h,10]", x);
    fails(&b, resize_nearest_2x, NULL, SHAPE, "rank must be 4", vol);
    fails(&b, resize_nearest_2x, NULL, LIMIT, "overflow", big);
    fails(&b, interpolate_3d, &a, ATTRIBUTE, "3 entries", vol);
    a.interpolate_3d.size = RLX_LIST(8, 0, 3);
    gives(&b, interpolate_3d, &a, "f16[1,3,8,0,3]", vol);
    gives(&b, interpolate_3d, &a, "f16[1,3,8,0,3]", open);
    expect_eq_u64(t, b.mod->check.len, 0);
    fails(&b, interpolate_3d, &a, SHAPE, "rank must be 5", x);
    a.interpolate_3d.size = RLX_LIST(8, 1, 3);
    fails(&b, interpolate_3d, &a, SHAPE, "axis 3 of f16[1,3,4,0,6] is empty", vol);
    gives(&b, interpolate_3d, &a, "f16[1,3,8,1,3]", open);
    expect_status(t, bind_symbols(&b, "h", 0, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);
    a.interpolate_3d.size = RLX_LIST(8, -1, 3);
    fails(&b, interpolate_3d, &a, ATTRIBUTE, "negative", vol);
    build_close(&b);
}
