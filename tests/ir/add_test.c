/* add_test.c: adding a node: common types, casts, attribute ranges, and nothing left of a failure.
 */
#include <math.h>
#include <string.h>

#include "ir/shape/shape_given.h"

/* ---- common types (ops-core.md 2.2) ---------------------------------------------------------- */

/* Row and column in the order of the dtypes; "-": there is none. */
static const char *const promotion[RLX_DTYPE_count] = {
    /*         f32 f16 bf16 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool c64 */
    [RLX_DTYPE_f32] = "f32 f32 f32 f64 f32 f32 f32 f64 f32 f32 f32 f64 f32 c64",
    [RLX_DTYPE_f16] = "f32 f16 f32 f64 f32 f32 f32 f64 f32 f32 f32 f64 f16 c64",
    [RLX_DTYPE_bf16] = "f32 f32 bf16 f64 f32 f32 f32 f64 f32 f32 f32 f64 bf16 c64",
    [RLX_DTYPE_f64] = "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c64",
    [RLX_DTYPE_i8] = "f32 f32 f32 f64 i8 i16 i32 i64 i16 i32 i64 - i8 c64",
    [RLX_DTYPE_i16] = "f32 f32 f32 f64 i16 i16 i32 i64 i16 i32 i64 - i16 c64",
    [RLX_DTYPE_i32] = "f32 f32 f32 f64 i32 i32 i32 i64 i32 i32 i64 - i32 c64",
    [RLX_DTYPE_i64] = "f64 f64 f64 f64 i64 i64 i64 i64 i64 i64 i64 - i64 c64",
    [RLX_DTYPE_u8] = "f32 f32 f32 f64 i16 i16 i32 i64 u8 u16 u32 u64 u8 c64",
    [RLX_DTYPE_u16] = "f32 f32 f32 f64 i32 i32 i32 i64 u16 u16 u32 u64 u16 c64",
    [RLX_DTYPE_u32] = "f32 f32 f32 f64 i64 i64 i64 i64 u32 u32 u32 u64 u32 c64",
    [RLX_DTYPE_u64] = "f64 f64 f64 f64 - - - - u64 u64 u64 u64 u64 c64",
    [RLX_DTYPE_bool] = "f32 f16 bf16 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool c64",
    [RLX_DTYPE_c64] = "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64",
};

static rlx_dtype table_at(rlx_dtype a, rlx_dtype b) /* RLX_DTYPE_count: none */
{
    const char *at = promotion[a];
    rlx_dtype out = RLX_DTYPE_count;

    for (int i = 0; i < (int)b; i++)
        at = strchr(at, ' ') + 1;
    dtype_from_name((rlx_str){at, strcspn(at, " ")}, &out);
    return out;
}

/* Operand i of a node is v itself, or a cast of it to dtype if it has another type. */
static void expect_operand(struct build *b, ir_value node, int32_t i, ir_value v, rlx_dtype dtype)
{
    struct test *t = b->t;
    ir_value got = ir_node(b->g, node)->in[i];

    if (ir_type_of(b->g, v)->dtype == dtype) {
        expect_eq(t, got, v);
        return;
    }
    const struct ir_node *cast = ir_node(b->g, got);
    expect_eq(t, cast->op, RLX_OP_cast);
    expect_eq(t, cast->attr.cast.to, dtype);
    expect_eq(t, cast->type.dtype, dtype);
    expect_eq(t, cast->in[0], v);
    expect(t, got < node && cast->label.len == 0);
}

TEST(add, every_pair_of_types_meets_as_the_table_says)
{
    struct build b;

    require(t, build_open(t, &b));
    for (int x = 0; x < RLX_DTYPE_count; x++) {
        for (int y = 0; y < RLX_DTYPE_count; y++) {
            rlx_dtype want = table_at((rlx_dtype)x, (rlx_dtype)y);
            ir_value in[3] = {build_input(&b, (rlx_dtype)x, RLX_LIST(3)),
                              build_input(&b, (rlx_dtype)y, RLX_LIST(3)), NONE};
            size_t nodes = b.g->node.len;
            ir_value v = -7;
            struct diag d;
            test_note(t, "%s + %s", rlx_dtype_name((rlx_dtype)x), rlx_dtype_name((rlx_dtype)y));
            rlx_status s = build_node(&b, RLX_OP_add, NULL, in, &v, &d);
            if (want == RLX_DTYPE_count || want == RLX_DTYPE_bool) { /* add takes no two bools */
                expect_status(t, s, RLX_ERROR_DTYPE);
                expect_contains(t, d.first.message, rlx_dtype_name((rlx_dtype)x));
                expect_eq_u64(t, b.g->node.len, nodes);
                expect_eq(t, v, -7);
                continue;
            }
            expect_ok(t, s);
            expect_eq(t, ir_type_of(b.g, v)->dtype, want);
            expect_eq_u64(t, b.g->node.len, nodes + 1 + (x != (int)want) + (y != (int)want));
            expect_operand(&b, v, 0, in[0], want);
            expect_operand(&b, v, 1, in[1], want);
            expect_eq(t, table_at((rlx_dtype)y, (rlx_dtype)x), want);
        }
    }
    test_note(t, "%s", "");
    build_close(&b);
}

TEST(add, three_operands_meet_in_one_type)
{
    struct build b;

    require(t, build_open(t, &b));
    ir_value h = given(&b, "f16[3]"), bf = given(&b, "bf16[3]"), i = given(&b, "i8[3]");
    ir_value f = given(&b, "f32[3]"), cond = given(&b, "i64[3]"), yes = given(&b, "bool[3]");
    ir_value v = gives(&b, fma, NULL, "f32[3]", h, bf, i);
    expect_operand(&b, v, 0, h, RLX_DTYPE_f32);
    expect_operand(&b, v, 2, i, RLX_DTYPE_f32);
    v = gives(&b, fma, NULL, "f16[3]", h, h, yes);
    expect_eq(t, ir_node(b.g, v)->in[0], h);
    expect_operand(&b, v, 2, yes, RLX_DTYPE_f16);

    v = gives(&b, where, NULL, "f32[3]", cond, h, f); /* the condition keeps its type */
    expect_eq(t, ir_node(b.g, v)->in[0], cond);
    expect_operand(&b, v, 1, h, RLX_DTYPE_f32);
    expect_eq(t, ir_node(b.g, v)->in[2], f);
    v = gives(&b, lt, NULL, "bool[3]", i, h);
    expect_operand(&b, v, 0, i, RLX_DTYPE_f32);
    expect_operand(&b, v, 1, h, RLX_DTYPE_f32);
    build_close(&b);
}

TEST(add, contractions_mix_small_floats_only)
{
    struct build b;

    require(t, build_open(t, &b));
    ir_value h = given(&b, "f16[2,3]"), bf = given(&b, "bf16[3,4]"), f = given(&b, "f32[3,4]");
    ir_value d = given(&b, "f64[3,4]"), i = given(&b, "i32[3,4]"), bias = given(&b, "bf16[4]");
    ir_value w = given(&b, "f32[5,3,4]"), expert = given(&b, "i32[2]");
    ir_value v = gives(&b, matmul, NULL, "f32[2,4]", h, bf);

    expect_operand(&b, v, 0, h, RLX_DTYPE_f32);
    expect_operand(&b, v, 1, bf, RLX_DTYPE_f32);
    v = gives(&b, fused_matmul_bias_act, NULL, "f32[2,4]", h, f, bias);
    expect_operand(&b, v, 0, h, RLX_DTYPE_f32);
    expect_eq(t, ir_node(b.g, v)->in[1], f);
    expect_operand(&b, v, 2, bias, RLX_DTYPE_f32);
    v = gives(&b, grouped_matmul, NULL, "f32[2,4]", h, w, expert);
    expect_eq(t, ir_node(b.g, v)->in[2], expert);
    fails(&b, matmul, NULL, DTYPE, "", h, d);
    fails(&b, matmul, NULL, DTYPE, "", h, i);
    fails(&b, fused_matmul_bias_act, NULL, DTYPE, "", h, f, given(&b, "i32[4]"));
    build_close(&b);
}

TEST(add, other_ops_do_not_cast)
{
    struct build b;
    union ir_attr a = defaults(RLX_OP_concat);

    require(t, build_open(t, &b));
    ir_value h = given(&b, "f16[3]"), f = given(&b, "f32[3]");
    a.concat.axis = 0;
    fails(&b, concat, &a, DTYPE, "f16", h, f);
    gives(&b, concat, &a, "f16[6]", h, h);
    build_close(&b);
}

/* ---- operands -------------------------------------------------------------------------------- */

TEST(add, operands_must_be_nodes)
{
    struct build b;
    struct diag d;

    require(t, build_open(t, &b));
    ir_value x = given(&b, "f32[3]"), out = -7;
    const ir_value bad[] = {-1, -2, INT32_MIN, 1, INT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ir_value in[2] = {x, bad[i]};
        struct ir_new_node n = {
            .op = RLX_OP_add, .in = in, .in_count = 2, .attr = defaults(RLX_OP_add)};
        diag_init(&d, "build");
        expect_status(t, ir_add(b.g, &n, &out, &d), RLX_ERROR_GRAPH);
        expect_error(t, RLX_ERROR_GRAPH, "add: input 1 is not a node", &d.first);
    }
    struct ir_new_node n = {.op = RLX_OP_add, .in_count = 2, .attr = defaults(RLX_OP_add)};
    diag_init(&d, "build");
    expect_status(t, ir_add(b.g, &n, &out, &d), RLX_ERROR_ARGUMENT);
    n.in_count = -1;
    expect_status(t, ir_add(b.g, &n, &out, &d), RLX_ERROR_ARGUMENT);
    expect_eq(t, out, -7);
    expect_eq_u64(t, b.g->node.len, 1);
    build_close(&b);
}

TEST(add, arity)
{
    struct build b;
    union ir_attr a = defaults(RLX_OP_concat);

    require(t, build_open(t, &b));
    ir_value x = given(&b, "f32[3]"), h = given(&b, "f16[3]");
    fails(&b, add, NULL, GRAPH, "takes 2 inputs, got 0", NONE);
    fails(&b, add, NULL, GRAPH, "takes 2 inputs, got 1", x);
    fails(&b, add, NULL, GRAPH, "takes 2 inputs, got 3", x, h, h); /* casts and all are gone */
    fails(&b, where, NULL, GRAPH, "takes 3 inputs, got 1", x);
    fails(&b, where, NULL, GRAPH, "takes 3 inputs, got 2", x, h);
    fails(&b, grouped_matmul, NULL, GRAPH, "takes 3 inputs, got 1", x);
    fails(&b, attention, NULL, GRAPH, "takes 3 to 5 inputs, got 2", x, h);
    fails(&b, exp, NULL, GRAPH, "takes 1 inputs, got 2", x, x);
    a.concat.axis = 0;
    fails(&b, concat, &a, GRAPH, "takes at least 1 inputs, got 0", NONE);
    union ir_attr leaf = ir_node(b.g, x)->attr;
    leaf.leaf.name = (struct ir_blob){"other", 5};
    fails(&b, input, &leaf, GRAPH, "takes 0 inputs, got 1", x);
    build_close(&b);
}

TEST(add, op_numbers_that_do_not_exist)
{
    struct build b;
    const int numbers[] = {RLX_OP_none, RLX_OP_count, -1, INT32_MAX, INT32_MIN};

    require(t, build_open(t, &b));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct ir_new_node n = {.op = (rlx_op)numbers[i]};
        ir_value out = -7;
        struct diag d;
        diag_init(&d, "build");
        expect_status(t, ir_add(b.g, &n, &out, &d), RLX_ERROR_GRAPH);
        expect_contains(t, d.first.message, "no op number");
        expect_eq(t, out, -7);
    }
    build_close(&b);
}

static void check_concat(struct build *b, int32_t count)
{
    struct test *t = b->t;
    ir_value in[64], v = NONE;
    struct ir_new_node n = {
        .op = RLX_OP_concat, .in = in, .in_count = count, .attr = defaults(RLX_OP_concat)};
    struct diag d;
    int64_t total = 0;

    diag_init(&d, "build");
    n.attr.concat.axis = -1;
    for (int32_t i = 0; i < count; i++) {
        in[i] = build_input(b, RLX_DTYPE_i8, RLX_LIST(2, i));
        total += i;
    }
    if (!expect_ok(t, ir_add(b->g, &n, &v, &d)))
        return;
    const struct ir_node *made = ir_node(b->g, v);
    expect_eq(t, made->in_count, count);
    expect_bytes(t, made->in, in, (size_t)count * sizeof in[0]);
    expect(t, made->in != in);
    expect_eq(t, made->type.dim[1], total);
    expect_eq(t, made->attr.concat.axis, 1);

    in[count - 1] = build_input(b, RLX_DTYPE_f16, RLX_LIST(2, 1)); /* the last one is looked at */
    size_t nodes = b->g->node.len;
    expect_status(t, ir_add(b->g, &n, &v, &d), RLX_ERROR_DTYPE);
    expect_eq_u64(t, b->g->node.len, nodes);
}

TEST(add, many_inputs)
{
    struct build b;

    require(t, build_open(t, &b));
    check_concat(&b, 16);
    check_concat(&b, 17);
    check_concat(&b, 40);
    build_close(&b);
}

/* ---- attributes ------------------------------------------------------------------------------ */

TEST(add, floats_must_be_finite)
{
    struct build b;
    union ir_attr norm = defaults(RLX_OP_rms_norm), clamp = defaults(RLX_OP_clamp);
    union ir_attr pad = defaults(RLX_OP_pad), attention = defaults(RLX_OP_attention);

    require(t, build_open(t, &b));
    ir_value x = given(&b, "f32[2,4]"), gamma = given(&b, "f32[4]"), q = given(&b, "f32[1,2,4]");
    refuses(&b, rms_norm, norm, attr.rms_norm.eps = NAN, ATTRIBUTE, "eps must be a number", x,
            gamma);
    refuses(&b, rms_norm, norm, attr.rms_norm.eps = INFINITY, ATTRIBUTE, "eps must be finite", x,
            gamma);
    refuses(&b, rms_norm, norm, attr.rms_norm.eps = -INFINITY, ATTRIBUTE, "eps must be finite", x,
            gamma);
    accepts(&b, clamp, clamp, attr.clamp.min = -(double)INFINITY, "f32[2,4]", x);
    accepts(&b, clamp, clamp, attr.clamp.min = (double)INFINITY, "f32[2,4]", x);
    refuses(&b, clamp, clamp, attr.clamp.max = (double)NAN, ATTRIBUTE, "max must be a number", x);
    pad.pad.before = pad.pad.after = RLX_LIST(0, 1);
    accepts(&b, pad, pad, attr.pad.value = -(double)INFINITY, "f32[2,6]", x);
    attention.attention.num_heads = attention.attention.head_dim = 2;
    accepts(&b, attention, attention, attr.attention.score_scale = NAN, "f32[1,2,4]", q, q, q);
    refuses(&b, attention, attention, attr.attention.score_scale = INFINITY, ATTRIBUTE,
            "score_scale must be finite", q, q, q);
    build_close(&b);
}

TEST(add, numbers_must_exist)
{
    struct build b;
    union ir_attr pad = defaults(RLX_OP_pad), cast = defaults(RLX_OP_cast), none;
    union ir_attr region = defaults(RLX_OP_activation_backward);

    require(t, build_open(t, &b));
    ir_value x = given(&b, "f32[2,4]");
    pad.pad.before = pad.pad.after = RLX_LIST(0, 1);
    refuses(&b, pad, pad, attr.pad.mode = -1, ATTRIBUTE, "mode has no word number -1", x);
    refuses(&b, pad, pad, attr.pad.mode = 4, ATTRIBUTE, "mode has no word number 4", x);
    refuses(&b, pad, pad, attr.pad.mode = INT32_MIN, ATTRIBUTE, "no word number", x);
    refuses(&b, pad, pad, attr.pad.mode = INT32_MAX, ATTRIBUTE, "no word number", x);
    accepts(&b, pad, pad, attr.pad.mode = 3, "f32[2,6]", x);

    refuses(&b, cast, cast, attr.cast.to = RLX_ABSENT_DTYPE, ATTRIBUTE, "to is not an element type",
            x);
    refuses(&b, cast, cast, attr.cast.to = (rlx_dtype)77, ATTRIBUTE, "not an element type (77)", x);
    refuses(&b, cast, cast, attr.cast.to = (rlx_dtype)-1, ATTRIBUTE, "not an element type (-1)", x);
    none = defaults(RLX_OP_fused_swiglu);
    accepts(&b, fused_swiglu, none, attr.fused_swiglu.cast_to = RLX_ABSENT_DTYPE, "f32[2,2]", x);
    refuses(&b, fused_swiglu, none, attr.fused_swiglu.cast_to = (rlx_dtype)(RLX_DTYPE_count + 1),
            ATTRIBUTE, "cast_to is not an element type", x);

    region.activation_backward.kind = RLX_OP_exp;
    accepts(&b, activation_backward, region, (void)attr, "f32[2,4]", x, x);
    refuses(&b, activation_backward, region, attr.activation_backward.kind = RLX_OP_add, ATTRIBUTE,
            "kind must be a unary op, not add", x, x);
    refuses(&b, activation_backward, region, attr.activation_backward.kind = (rlx_op)-3, ATTRIBUTE,
            "kind must be a unary op", x, x);
    build_close(&b);
}

TEST(add, required_attributes_must_be_given)
{
    struct build b;
    union ir_attr narrow = defaults(RLX_OP_narrow);

    require(t, build_open(t, &b));
    ir_value x = given(&b, "f32[2,4]");
    fails(&b, narrow, NULL, ATTRIBUTE, "axis is missing", x);
    narrow.narrow.axis = 0;
    fails(&b, narrow, &narrow, ATTRIBUTE, "start is missing", x);
    narrow.narrow.start = 0;
    fails(&b, narrow, &narrow, ATTRIBUTE, "len is missing", x);
    fails(&b, cast, NULL, ATTRIBUTE, "to is not an element type", x);
    fails(&b, pool, NULL, ATTRIBUTE, "kind has no word", x);
    fails(&b, topk, NULL, ATTRIBUTE, "k is missing", x);
    fails(&b, input, NULL, ATTRIBUTE, "dtype is not an element type", NONE);
    build_close(&b);
}

TEST(add, lists_hold_eight_entries)
{
    struct build b;
    union ir_attr a = defaults(RLX_OP_reshape), r = defaults(RLX_OP_reverse);

    require(t, build_open(t, &b));
    ir_value x = given(&b, "f32[2,4]");
    refuses(&b, reshape, a, attr.reshape.shape.count = 9, LIMIT, "shape has 9 entries", x);
    refuses(&b, reshape, a, attr.reshape.shape.count = -1, LIMIT, "shape has -1 entries", x);
    refuses(&b, reshape, a, attr.reshape.shape.count = INT32_MAX, LIMIT, "at most 8 fit", x);
    refuses(&b, reverse, r, attr.reverse.axes.count = INT32_MIN, LIMIT, "at most 8 fit", x);
    accepts(&b, reshape, a, attr.reshape.shape = RLX_LIST(1, 1, 1, 1, 1, 1, 2, 4),
            "f32[1,1,1,1,1,1,2,4]", x);
    refuses(&b, reshape, a, attr.reshape.shape = RLX_LIST(2, RLX_DIM_FAILED), LIMIT,
            "shape[1] overflows", x);
    build_close(&b);
}

TEST(add, graphs_must_be_sub_graphs)
{
    struct build b;
    struct ir_graph *sub;
    struct diag d;
    union ir_attr a = defaults(RLX_OP_while);

    require(t, build_open(t, &b));
    diag_init(&d, "build");
    require_ok(t, ir_graph_add(b.mod, STR("body"), &sub, &d));
    ir_value x = given(&b, "bool[]");
    const int32_t bad[] = {-1, 0, 2, -2, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        a.while_.cond_graph = a.while_.body_graph = bad[i];
        fails(&b, while, &a, GRAPH, "is not a sub-graph", x);
    }
    a.while_.cond_graph = a.while_.body_graph = sub->id;
    fails(&b, while, &a, GRAPH, "", x); /* it is one, but empty */
    build_close(&b);
}

TEST(add, results_must_have_a_size)
{
    struct build b;
    const int64_t big = INT64_C(1) << 62;

    require(t, build_open(t, &b));
    union ir_attr a = defaults(RLX_OP_input);
    a.leaf.name = (struct ir_blob){"x", 1};
    a.leaf.dtype = RLX_DTYPE_f32;
    refuses(&b, input, a, attr.leaf.shape = RLX_LIST(big), LIMIT, "byte count overflows", NONE);
    refuses(&b, input, a, attr.leaf.shape = RLX_LIST(0, big, 4), LIMIT, "overflows", NONE);
    accepts(&b, input, a, attr.leaf.shape = RLX_LIST(0, big / 4), "f32[0,1152921504606846976]",
            NONE);
    build_close(&b);
}

/* ---- strings and bytes ----------------------------------------------------------------------- */

TEST(add, text_is_copied_and_data_if_asked)
{
    struct build b;
    char name[] = "weight", label[] = "first";
    float data[3] = {1, 2, 3};
    struct ir_new_node n = {.op = RLX_OP_input, .attr = defaults(RLX_OP_input)};
    ir_value v;
    struct diag d;

    require(t, build_open(t, &b));
    diag_init(&d, "build");
    n.attr.leaf.name = (struct ir_blob){name, 6};
    n.attr.leaf.dtype = RLX_DTYPE_f32;
    n.label = rlx_cstr(label);
    require_ok(t, ir_add(b.g, &n, &v, &d));
    memset(name, 'x', 6);
    memset(label, 'y', 5);
    expect_str(t, ir_leaf_name(ir_node(b.g, v)).ptr, "weight");
    expect_str(t, ir_node(b.g, v)->label.ptr, "first");
    expect(t, ir_find_leaf(b.g, STR("weight"), &v));

    n = (struct ir_new_node){.op = RLX_OP_const, .attr = defaults(RLX_OP_const)};
    n.attr.const_.dtype = RLX_DTYPE_f32;
    n.attr.const_.shape = RLX_LIST(3);
    n.attr.const_.data = (struct ir_blob){data, sizeof data};
    require_ok(t, ir_add(b.g, &n, &v, &d));
    const float *own = ir_node(b.g, v)->attr.const_.data.ptr;
    expect(t, own != data && own[2] == 3 && (uintptr_t)own % 16 == 0);
    n.borrow_data = true;
    require_ok(t, ir_add(b.g, &n, &v, &d));
    expect(t, ir_node(b.g, v)->attr.const_.data.ptr == data);
    build_close(&b);
}

TEST(add, data_that_is_not_there)
{
    struct build b;
    union ir_attr leaf = defaults(RLX_OP_input), data = defaults(RLX_OP_const);
    union ir_attr q = defaults(RLX_OP_quantize);
    struct ir_new_node n = {.op = RLX_OP_const, .borrow_data = true};
    struct diag d;
    ir_value v;

    require(t, build_open(t, &b));
    ir_value x = given(&b, "f32[2]");
    leaf.leaf.dtype = RLX_DTYPE_f32;
    leaf.leaf.name.len = 4;
    fails(&b, input, &leaf, ARGUMENT, "name is NULL", NONE);
    leaf.leaf.name.len = 0;
    fails(&b, input, &leaf, GRAPH, "name is empty", NONE);
    data.const_.dtype = RLX_DTYPE_u8;
    data.const_.shape = RLX_LIST(2);
    data.const_.data.len = 2;
    fails(&b, const, &data, ARGUMENT, "data is NULL", NONE);
    n.attr = data;
    diag_init(&d, "build");
    expect_status(t, ir_add(b.g, &n, &v, &d), RLX_ERROR_ARGUMENT);
    data.const_.data = (struct ir_blob){"abc", 3};
    fails(&b, const, &data, SIZE, "takes 2 bytes, but 3", NONE);
    data.const_.data.len = 0;
    fails(&b, const, &data, SIZE, "takes 2 bytes, but 0", NONE);
    q.quantize.scales.len = 1;
    fails(&b, quantize, &q, ARGUMENT, "scales is NULL", x);
    build_close(&b);
}

/* ---- what a failure leaves behind ------------------------------------------------------------ */

struct snapshot {
    size_t nodes, outputs, leaves, written, checks, graphs;
};

static struct snapshot snapshot_of(const struct ir_graph *g)
{
    return (struct snapshot){g->node.len,    g->output.len,     g->leaves.len,
                             g->written.len, g->mod->check.len, g->mod->graph.len};
}

static void expect_unchanged(struct test *t, const struct ir_graph *g, struct snapshot was)
{
    struct snapshot now = snapshot_of(g);

    expect_eq_u64(t, now.nodes, was.nodes);
    expect_eq_u64(t, now.outputs, was.outputs);
    expect_eq_u64(t, now.leaves, was.leaves);
    expect_eq_u64(t, now.written, was.written);
    expect_eq_u64(t, now.checks, was.checks);
    expect_eq_u64(t, now.graphs, was.graphs);
}

TEST(add, failures_leave_the_graph_as_it_was)
{
    struct build b;
    struct diag d;
    union ir_attr concat = defaults(RLX_OP_concat), taken = defaults(RLX_OP_input);

    require(t, build_open(t, &b));
    ir_value h = given(&b, "f16[4]"), f = given(&b, "f32[5]"), u = given(&b, "u64[4]");
    ir_value i = given(&b, "i8[4]"), s = given(&b, "f32[1,s,3]"), c = given(&b, "f32[1,4,5]");
    ir_value state = given_leaf(&b, RLX_OP_state, "f32[8,2]"), rows = given(&b, "f32[1,2]");
    ir_value at = given(&b, "i32[]");
    gives(&b, cache_append, NULL, "f32[8,2]", state, rows, at);
    struct snapshot was = snapshot_of(b.g);

    fails(&b, add, NULL, SHAPE, "do not broadcast", h, f); /* after a cast */
    fails(&b, add, NULL, DTYPE, "u64 and i8 have no common type", u, i);
    concat.concat.axis = 0;
    fails(&b, concat, &concat, SHAPE, "", s, c); /* after a check on s was noted */
    fails(&b, cache_append, NULL, GRAPH, "already has a writer", state, rows, at);
    fails(&b, cache_append, NULL, GRAPH, "must be a state leaf", f, rows, at);
    taken.leaf.dtype = RLX_DTYPE_f32;
    taken.leaf.name = (struct ir_blob){"leaf0", 5};
    fails(&b, input, &taken, GRAPH, "the name \"leaf0\" is taken", NONE);
    fails(&b, param, &taken, GRAPH, "the name \"leaf0\" is taken", NONE);
    fails(&b, state, &taken, GRAPH, "the name \"leaf0\" is taken", NONE);
    expect_unchanged(t, b.g, was);

    diag_init(&d, "build");
    expect_status(t, ir_add_output(b.g, -1, &d), RLX_ERROR_GRAPH);
    expect_status(t, ir_add_output(b.g, (ir_value)b.g->node.len, &d), RLX_ERROR_GRAPH);
    expect_unchanged(t, b.g, was);
    expect_ok(t, ir_add_output(b.g, f, &d));
    diag_init(&d, "verify");
    expect_ok(t, ir_verify(b.mod, &d));
    build_close(&b);
}

TEST(add, sub_graphs_hold_no_params_or_states)
{
    struct build b;
    union ir_attr a = defaults(RLX_OP_input);
    struct diag d;

    require(t, build_open(t, &b));
    diag_init(&d, "build");
    require_ok(t, ir_graph_add(b.mod, STR("body"), &b.g, &d));
    a.leaf.name = (struct ir_blob){"x", 1};
    a.leaf.dtype = RLX_DTYPE_f32;
    fails(&b, param, &a, GRAPH, "inputs and constants only", NONE);
    fails(&b, state, &a, GRAPH, "inputs and constants only", NONE);
    gives(&b, input, &a, "f32[]", NONE);
    expect_eq_u64(t, b.g->leaves.len, 1);
    build_close(&b);
}

TEST(add, failures_say_where)
{
    struct build b;
    struct diag d;
    ir_value v;

    require(t, build_open(t, &b));
    ir_value in[2] = {given(&b, "f32[2]"), given(&b, "f32[3]")};
    struct ir_new_node n = {.op = RLX_OP_mul, .in = in, .in_count = 2, .label = STR("scaled")};
    n.attr = defaults(RLX_OP_mul);
    diag_init(&d, "build");
    expect_status(t, ir_add(b.g, &n, &v, &d), RLX_ERROR_SHAPE);
    expect_str(t, d.first.op, "mul");
    expect_str(t, d.first.label, "scaled");
    expect_str(t, d.first.stage, "build");
    expect_eq(t, d.first.node, 2);
    build_close(&b);
}

/* ---- no memory ------------------------------------------------------------------------------- */

/* A leaf, promotion, many inputs, a check for binding, a writer: the steps that allocate. */
static rlx_status add_some(struct test *t, struct ir_graph *g, struct diag *d)
{
    ir_value v[8], many[24];
    const struct {
        rlx_op op;
        int32_t in[3], in_count;
        rlx_dtype dtype;
        rlx_list shape;
    } step[] = {
        {RLX_OP_input, {0}, 0, RLX_DTYPE_f16, {1, {dim_symbol(g->mod->dims, STR("s"))}}},
        {RLX_OP_input, {0}, 0, RLX_DTYPE_f32, {1, {4}}},
        {RLX_OP_state, {0}, 0, RLX_DTYPE_f32, {1, {8}}},
        {RLX_OP_input, {0}, 0, RLX_DTYPE_i32, {0}},
        {RLX_OP_add, {0, 1}, 2, RLX_DTYPE_f32, {0}},
        {RLX_OP_concat, {0}, 24, RLX_DTYPE_f32, {0}},
        {RLX_OP_cache_append, {2, 1, 3}, 3, RLX_DTYPE_f32, {0}},
    };
    const char *names[] = {"first", "second", "kept", "position"};

    for (size_t i = 0; i < sizeof step / sizeof step[0]; i++) {
        ir_value in[3];
        struct ir_new_node n = {.op = step[i].op, .in = in, .in_count = step[i].in_count};
        struct snapshot was = snapshot_of(g);
        n.attr = defaults(n.op);
        n.label = STR("label");
        for (int32_t k = 0; k < 3 && k < n.in_count; k++)
            in[k] = v[step[i].in[k]];
        if (op_is(n.op, OP_LEAF)) {
            n.attr.leaf.name = (struct ir_blob){names[i], strlen(names[i])};
            n.attr.leaf.dtype = step[i].dtype;
            n.attr.leaf.shape = step[i].shape;
        }
        if (n.op == RLX_OP_concat) {
            for (int32_t k = 0; k < n.in_count; k++)
                many[k] = v[1];
            n.in = many;
            n.attr.concat.axis = 0;
        }
        rlx_status s = ir_add(g, &n, &v[i], d);
        if (s != RLX_OK) {
            expect_unchanged(t, g, was);
            /* The symbol could not be made: the leaf says so in its own way. */
            return dim_no_memory(g->mod->dims) ? RLX_ERROR_MEMORY : s;
        }
    }
    return ir_add_output(g, v[4], d);
}

static rlx_status build_some(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct ir_module *m;
    struct ir_graph *g;
    struct diag d;

    (void)ctx;
    diag_init(&d, "build");
    TRY(ir_module_create(mem, &m, &d));
    rlx_status s = ir_graph_add(m, STR("main"), &g, &d);
    if (s == RLX_OK)
        s = add_some(t, g, &d);
    if (s == RLX_OK)
        s = ir_verify(m, &d);
    ir_module_destroy(m);
    return s;
}

TEST(add, no_memory_leaves_the_graph_as_it_was)
{
    expect_survives_no_memory(t, build_some, NULL);
}
