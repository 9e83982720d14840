/* shape_leaf_test.c: leaves, the table of rules, deferred checks, and running out of memory. */
#include <string.h>

#include "ir/shape/shape.h"
#include "shape_build.h"

static union ir_attr leaf(rlx_op op, const char *name, rlx_dtype dtype, rlx_list shape)
{
    union ir_attr a = defaults(op);

    a.leaf.name = (struct ir_blob){name, strlen(name)};
    a.leaf.dtype = dtype;
    a.leaf.shape = shape;
    return a;
}

TEST(shape_leaf, inputs_params_states)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_dim s = symbol(&b, "past"), unknown = RLX_DIM_UNKNOWN;
    ir_dim next = dim_add(b.mod->dims, s, 1);

    union ir_attr a = leaf(RLX_OP_input, "x", RLX_DTYPE_f32, RLX_LIST(4, s, next, unknown));
    gives(&b, input, &a, "f32[4,past,past+1,?]", NONE);
    a = leaf(RLX_OP_input, "\xc3\xa9", RLX_DTYPE_c64, SCALAR);
    gives(&b, input, &a, "c64[]", NONE);
    a = leaf(RLX_OP_param, "w", RLX_DTYPE_bf16, RLX_LIST(0, 3));
    gives(&b, param, &a, "bf16[0,3]", NONE);
    a = leaf(RLX_OP_state, "k", RLX_DTYPE_i8, RLX_LIST(1, 2, 3, 4, 5, 6, 7, 8));
    gives(&b, state, &a, "i8[1,2,3,4,5,6,7,8]", NONE);

    a = leaf(RLX_OP_param, "w", RLX_DTYPE_f32, RLX_LIST(1));
    fails(&b, param, &a, GRAPH, "taken", NONE);
    a = leaf(RLX_OP_param, "w2", RLX_DTYPE_f32, RLX_LIST(3, s));
    fails(&b, param, &a, SHAPE, "fixed size, not past", NONE);
    a = leaf(RLX_OP_state, "s2", RLX_DTYPE_f32, RLX_LIST(unknown));
    fails(&b, state, &a, ATTRIBUTE, "?", NONE);
    a = leaf(RLX_OP_input, "", RLX_DTYPE_f32, RLX_LIST(1));
    fails(&b, input, &a, GRAPH, "empty", NONE);
    a = leaf(RLX_OP_input, "\xff\xfe", RLX_DTYPE_f32, RLX_LIST(1));
    fails(&b, input, &a, GRAPH, "UTF-8", NONE);
    a = leaf(RLX_OP_input, "n", RLX_DTYPE_f32, RLX_LIST(-1));
    fails(&b, input, &a, ATTRIBUTE, "negative", NONE);
    a = leaf(RLX_OP_input, "n", RLX_DTYPE_f32, RLX_LIST(RLX_DIM_INFER));
    fails(&b, input, &a, ATTRIBUTE, "-1", NONE);
    a = leaf(RLX_OP_input, "n", RLX_DTYPE_f32, RLX_LIST(-40000000000));
    fails(&b, input, &a, ATTRIBUTE, "negative", NONE);
    a = leaf(RLX_OP_input, "n", RLX_DTYPE_f32, RLX_LIST(INT64_MAX, 2));
    fails(&b, input, &a, LIMIT, "overflow", NONE);
    a = leaf(RLX_OP_input, "n", RLX_DTYPE_f64, RLX_LIST(INT64_MAX / 8 + 1));
    fails(&b, input, &a, LIMIT, "overflow", NONE);
    a = leaf(RLX_OP_input, "n", RLX_DTYPE_i8, RLX_LIST(INT64_MAX));
    gives(&b, input, &a, "i8[9223372036854775807]", NONE);
    a = leaf(RLX_OP_input, "m", RLX_DTYPE_f32, SCALAR);
    a.leaf.shape.count = 9;
    fails(&b, input, &a, LIMIT, "at most 8", NONE);
    a.leaf.shape.count = -1;
    fails(&b, input, &a, LIMIT, "at most 8", NONE);
    a = leaf(RLX_OP_input, "m", (rlx_dtype)99, SCALAR);
    fails(&b, input, &a, ATTRIBUTE, "element type", NONE);
    build_close(&b);
}

static union ir_attr constant(rlx_dtype dtype, rlx_list shape, const void *data, size_t bytes)
{
    union ir_attr a = defaults(RLX_OP_const);

    a.const_.dtype = dtype;
    a.const_.shape = shape;
    a.const_.data = (struct ir_blob){data, bytes};
    return a;
}

TEST(shape_leaf, constants)
{
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    struct build b;
    require(t, build_open(t, &b));

    union ir_attr a = constant(RLX_DTYPE_f32, RLX_LIST(2, 3), data, 24);
    gives(&b, const, &a, "f32[2,3]", NONE);
    a = constant(RLX_DTYPE_u8, SCALAR, data, 1);
    gives(&b, const, &a, "u8[]", NONE);
    a = constant(RLX_DTYPE_f32, RLX_LIST(0, 5), NULL, 0);
    gives(&b, const, &a, "f32[0,5]", NONE);
    a = constant(RLX_DTYPE_f32, RLX_LIST(2, 3), data, 23);
    fails(&b, const, &a, SIZE, "f32[2,3] takes 24 bytes, but 23", NONE);
    a = constant(RLX_DTYPE_f32, RLX_LIST(0), data, 4);
    fails(&b, const, &a, SIZE, "takes 0 bytes, but 4", NONE);
    a = constant(RLX_DTYPE_f32, RLX_LIST(INT64_MAX, INT64_MAX), data, 4);
    fails(&b, const, &a, LIMIT, "overflow", NONE);
    a = constant(RLX_DTYPE_f32, RLX_LIST(symbol(&b, "n")), data, 4);
    fails(&b, const, &a, SHAPE, "fixed size", NONE);
    build_close(&b);
}

TEST(shape_leaf, every_family_has_a_rule)
{
    shape_rule none = shape_rule_of(FAMILY_none);

    for (int f = FAMILY_none + 1; f < FAMILY_count; f++) {
        test_note(t, "family %s", family_name((enum op_family)f));
        expect(t, shape_rule_of((enum op_family)f) != none);
    }
    expect(t, shape_rule_of((enum op_family)9999) == none);
}

/* Noted checks need memory; so do chains longer than a few steps. */
static rlx_status build_symbolic(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct build b = {.t = t};
    struct diag d;
    rlx_chain_step step[40];
    ir_value sum, x[2] = {0};
    rlx_status s;

    (void)ctx;
    diag_init(&d, "build");
    if ((s = ir_module_create(mem, &b.mod, &d)) != RLX_OK)
        return s;
    s = ir_graph_add(b.mod, STR("main"), &b.g, &d);
    for (int i = 0; s == RLX_OK && i < 2; i++) {
        union ir_attr a = leaf(RLX_OP_input, i ? "y" : "x", RLX_DTYPE_f32, RLX_LIST(0, 4));
        a.leaf.shape.at[0] = symbol(&b, i ? "n" : "m");
        struct ir_new_node n = {.op = RLX_OP_input, .attr = a};
        s = a.leaf.shape.at[0] == RLX_DIM_FAILED ? RLX_ERROR_MEMORY : ir_add(b.g, &n, &x[i], &d);
    }
    if (s == RLX_OK) {
        struct ir_new_node n = {.op = RLX_OP_add, .in = x, .in_count = 2};
        n.attr = defaults(RLX_OP_add);
        s = ir_add(b.g, &n, &sum, &d);
    }
    if (s == RLX_OK) {
        for (int i = 0; i < 40; i++)
            step[i] = (rlx_chain_step){.op = RLX_OP_exp, .in = {i ? i - 1 : RLX_CHAIN_INPUT(0)}};
        struct ir_new_node n = {.op = RLX_OP_elementwise_region, .in = x, .in_count = 2};
        n.attr = defaults(n.op);
        n.attr.elementwise_region.chain = (struct ir_blob){step, 40};
        s = ir_add(b.g, &n, &sum, &d);
    }
    if (s == RLX_OK)
        expect(t, b.mod->check.len == 2);
    ir_module_destroy(b.mod);
    return s;
}

TEST(shape_leaf, no_memory)
{
    expect_survives_no_memory(t, build_symbolic, NULL);
}
