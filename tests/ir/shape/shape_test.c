/* shape_test.c: what the shape rules are written with, called without a rule around it. */
#include "ir/shape/shape.h"

#include <string.h>

#include "shape_build.h"

static struct shape_call call_of(struct build *b, rlx_op op, const struct ir_type *const *in,
                                 int32_t in_count, struct ir_type *out, struct diag *d)
{
    diag_init(d, "test");
    return (struct shape_call){.graph = b->g,
                               .mod = b->mod,
                               .op = op,
                               .name = op_info(op)->name,
                               .in_count = in_count,
                               .in = in,
                               .out = out,
                               .diag = d,
                               .note_checks = true,
                               .node_id = 7};
}

TEST(shape, operand_names)
{
    static const struct {
        rlx_op op;
        int32_t count, operand;
        const char *want;
    } rows[] = {
        {RLX_OP_where, 3, 0, "cond"},
        {RLX_OP_where, 3, 2, "b"},
        {RLX_OP_sample, 1, 0, "logits"},
        {RLX_OP_sample, 2, 1, "offset"},
        {RLX_OP_fused_residual_ln, 5, 2, "bias"},
        {RLX_OP_fused_residual_ln, 5, 4, "beta"},
        {RLX_OP_fused_residual_ln, 4, 2, "gamma"},
        {RLX_OP_fused_transformer_layer, 14, 13, "mask"},
        {RLX_OP_fused_transformer_layer, 8, 7, "mask"},
        {RLX_OP_fused_attention_block, 8, 7, "sin"},
        {RLX_OP_fused_attention_block, 6, 3, "mask"},
        {RLX_OP_fused_attention_block, 6, 4, "input 4"}, /* qkv_b or cos */
        {RLX_OP_concat, 9, 0, "parts[0]"},
        {RLX_OP_concat, 9, 8, "parts[8]"},
        {RLX_OP_if, 4, 0, "predicate"},
        {RLX_OP_if, 4, 3, "captures[2]"},
        {RLX_OP_exp, 1, 5, "input 5"},
    };
    struct build b;
    struct diag d;
    struct ir_type out;
    require(t, build_open(t, &b));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct shape_call c = call_of(&b, rows[i].op, NULL, rows[i].count, &out, &d);
        expect_str(t, shape_operand_name(&c, rows[i].operand), rows[i].want);
    }
    build_close(&b);
}

TEST(shape, texts)
{
    struct build b;
    struct diag d;
    struct ir_type out, type = {.dtype = RLX_DTYPE_bf16, .rank = 8};
    require(t, build_open(t, &b));
    struct shape_call c = call_of(&b, RLX_OP_add, NULL, 0, &out, &d);
    ir_dim long_one = symbol(&b, "a_symbol_with_quite_a_long_name");
    rlx_list ints = RLX_LIST(1, -2, INT64_MIN);

    expect_str(t, dim_text(&c, 12), "12");
    expect_str(t, dim_text(&c, RLX_DIM_UNKNOWN), "?");
    expect_str(t, dim_text(&c, RLX_DIM_INFER), "-1");
    expect_str(t, ints_text(&c, &ints), "[1,-2,-9223372036854775808]");
    expect_str(t, dims_text(&c, NULL, 0), "[]");
    const char *first = dim_text(&c, 1);
    for (int i = 0; i < 7; i++)
        dim_text(&c, 2);
    expect_str(t, first, "1"); /* eight are kept */
    for (int i = 0; i < 8; i++)
        type.dim[i] = long_one;
    const char *cut = type_text(&c, &type);
    expect_eq_u64(t, strlen(cut), sizeof c.text[0] - 1);
    expect_str(t, cut + strlen(cut) - 3, "...");
    build_close(&b);
}

TEST(shape, checks)
{
    struct build b;
    struct diag d;
    struct ir_type out;
    require(t, build_open(t, &b));
    struct shape_call c = call_of(&b, RLX_OP_add, NULL, 0, &out, &d);
    ir_dim s = symbol(&b, "s"), unknown = RLX_DIM_UNKNOWN;

    expect(t, shape_check(&c, CHECK_DIVIDES, 12, 4, RLX_ERROR_SHAPE, "sizes"));
    expect(t, !shape_check(&c, CHECK_DIVIDES, 12, 5, RLX_ERROR_SHAPE, "sizes"));
    expect(t, !shape_check(&c, CHECK_DIVIDES, 0, 0, RLX_ERROR_SHAPE, "sizes"));
    expect(t, shape_at_least(&c, 3, 3, "sizes") && !shape_at_least(&c, 2, 3, "sizes"));
    expect(t, shape_agree(&c, 0, 0, "sizes") && !shape_agree(&c, 0, 1, "sizes"));
    expect(t, shape_agree(&c, s, s, "sizes") && shape_at_least(&c, s, 0, "sizes"));
    expect(t, shape_agree(&c, unknown, 4, "sizes") && shape_agree(&c, s, unknown, "sizes"));
    expect_eq_u64(t, b.mod->check.len, 0);

    expect(t, shape_check(&c, CHECK_DIVIDES, s, 4, RLX_ERROR_ATTRIBUTE, "groups"));
    require(t, b.mod->check.len == 1);
    const struct ir_check *note = &b.mod->check.at[0];
    expect(t, note->a == s && note->b == 4 && note->kind == CHECK_DIVIDES);
    expect(t, note->node == 7 && note->graph == 0 && note->status == RLX_ERROR_ATTRIBUTE);
    expect_str(t, note->what, "groups");
    c.note_checks = false;
    expect(t, shape_agree(&c, s, 4, "sizes"));
    expect_eq_u64(t, b.mod->check.len, 1);

    expect_eq(t, shape_meet(s, 4), 4);
    expect_eq(t, shape_meet(4, s), 4);
    expect_eq(t, shape_meet(unknown, s), s);
    expect_eq(t, shape_meet(s, unknown), s);
    build_close(&b);
}

/* A size that overflowed is LIMIT, whatever the caller would have said. */
TEST(shape, overflow_is_a_limit)
{
    struct build b;
    struct diag d;
    struct ir_type out;
    require(t, build_open(t, &b));
    struct shape_call c = call_of(&b, RLX_OP_add, NULL, 0, &out, &d);
    const ir_dim dim[] = {INT64_MAX, 2};

    expect(t, !shape_agree(&c, shape_product(&c, dim, 2), 4, "counts"));
    expect(t, !shape_agree(&c, 4, 4, "counts")); /* it stays failed */
    expect_status(t, SHAPE_FAIL(&c, SHAPE, "counts differ"), RLX_ERROR_LIMIT);
    expect_eq(t, d.count, 1);
    expect_contains(t, d.first.message, "overflow");

    c = call_of(&b, RLX_OP_add, NULL, 0, &out, &d);
    expect_status(t, shape_need_size(&c, "len", RLX_DIM_FAILED), RLX_ERROR_LIMIT);
    build_close(&b);
}

TEST(shape, operands)
{
    static const struct ir_type x = {RLX_DTYPE_f32, 3, {2, 1, 4}}, y = {RLX_DTYPE_u8, 2, {3, 4}};
    static const struct ir_type to = {RLX_DTYPE_f32, 3, {2, 3, 4}};
    const struct ir_type *const in[] = {&x, &y};
    struct build b;
    struct diag d;
    struct ir_type out = {0};
    require(t, build_open(t, &b));
    struct shape_call c = call_of(&b, RLX_OP_add, in, 2, &out, &d);

    expect_ok(t, shape_need_rank(&c, 0, 3, 3));
    expect_status(t, shape_need_rank(&c, 1, 3, 5), RLX_ERROR_SHAPE);
    expect_str(t, d.first.message, "add: b is u8[3,4]; its rank must be 3 to 5");
    diag_init(&d, "test");
    expect_status(t, shape_need_class(&c, 1, CLASS_F | CLASS_I | CLASS_B), RLX_ERROR_DTYPE);
    expect_str(t, d.first.message,
               "add: b has element type u8; allowed: floats, signed integers, bool");
    expect_ok(t, shape_broadcasts_to(&c, &x, &to, "x"));
    expect_ok(t, shape_broadcasts_to(&c, &y, &to, "y"));
    expect_status(t, shape_broadcasts_to(&c, &to, &x, "x"), RLX_ERROR_SHAPE);
    expect_status(t, shape_broadcasts_to(&c, &x, &y, "x"), RLX_ERROR_SHAPE);
    expect_status(t, shape_rule_of(FAMILY_none)(&c), RLX_ERROR_INTERNAL);
    build_close(&b);
}
