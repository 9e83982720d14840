/* op_test.c: the op table and what follows from its attribute rows: defaults, equality, hashes. */
#include <math.h>
#include <string.h>

#include "../test.h"
#include "base/str.h"
#include "ir/op.h"

/* ---- ops and families ----------------------------------------------------------------------- */

TEST(op, every_op_is_found_by_its_name)
{
    for (int i = RLX_OP_none + 1; i < RLX_OP_count; i++) {
        const struct op_info *o = op_info((rlx_op)i);
        rlx_op found = RLX_OP_none;
        test_note(t, "%s", o->name);
        expect(t, op_from_name(rlx_cstr(o->name), &found));
        expect_eq(t, found, i);
    }
    test_note(t, "%s", "");
}

TEST(op, names_that_are_no_ops)
{
    static const char *const names[] = {"",    "none", "ad",      "addd",
                                        "Add", "add ", "input\n", "matmu"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        rlx_op found = RLX_OP_tanh;
        test_note(t, "\"%s\"", names[i]);
        expect(t, !op_from_name(rlx_cstr(names[i]), &found));
        expect_eq(t, found, RLX_OP_tanh);
    }
    test_note(t, "%s", "");
    rlx_op found = RLX_OP_tanh;
    expect(t, !op_from_name((rlx_str){NULL, 0}, &found));
    expect(t, !op_from_name((rlx_str){"add\0", 4}, &found));
}

TEST(op, rows_are_complete)
{
    for (int i = RLX_OP_none + 1; i < RLX_OP_count; i++) {
        const struct op_info *o = op_info((rlx_op)i);
        test_note(t, "%s", o->name);
        expect(t, o->family > FAMILY_none && o->family < FAMILY_count);
        expect(t, o->inputs_min >= 0 && (o->inputs_max < 0 || o->inputs_max >= o->inputs_min));
        expect_eq(t, op_is((rlx_op)i, OP_LEAF), o->inputs_max == 0 && o->category == CATEGORY_IO);
        expect(t, o->summary[0] != 0 && strlen(o->summary) < 80);
    }
    test_note(t, "%s", "");
}

TEST(op, unknown_ops_give_the_row_of_none)
{
    const int numbers[] = {RLX_OP_none, RLX_OP_count, RLX_OP_count + 1, -1, INT32_MAX, INT32_MIN};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const struct op_info *o = op_info((rlx_op)numbers[i]);
        expect_str(t, o->name, "none");
        expect_eq(t, o->family, FAMILY_none);
    }
    expect_str(t, family_name(FAMILY_count), "none");
    expect_str(t, family_name((enum op_family) - 1), "none");
    expect_str(t, family_name(FAMILY_const_), "const_");
}

/* ---- operands ---------------------------------------------------------------------------------
 */

static void expect_name(struct test *t, rlx_op op, int32_t i, int32_t count, const char *want)
{
    rlx_str name = op_input_name(op, i, count);

    test_note(t, "%s, operand %d of %d", op_info(op)->name, i, count);
    expect(t, str_eq(name, rlx_cstr(want)));
    test_note(t, "%s", "");
}

TEST(op, operands_have_names)
{
    expect_name(t, RLX_OP_matmul, 1, 2, "b");
    expect_name(t, RLX_OP_matmul, 2, 2, "");
    expect_name(t, RLX_OP_concat, 0, 3, "parts");
    expect_name(t, RLX_OP_concat, 2, 3, "parts");
    expect_name(t, RLX_OP_fused_residual_ln, 2, 5, "bias");
    expect_name(t, RLX_OP_fused_residual_ln, 2, 4, "gamma");
    expect_name(t, RLX_OP_fake_quantize_backward, 1, 3, "scales");
    expect_name(t, RLX_OP_fake_quantize_backward, 1, 2, "dy");
    /* Which of two optional groups is missing is unknown. */
    expect_name(t, RLX_OP_fused_attention_block, 3, 6, "mask");
    expect_name(t, RLX_OP_fused_attention_block, 4, 6, "");
}

TEST(op, operands_have_roles)
{
    expect_eq(t, op_input_role(RLX_OP_gather, 0, 2), ROLE_PLAIN);
    expect_eq(t, op_input_role(RLX_OP_gather, 1, 2), ROLE_INDEX);
    expect_eq(t, op_input_role(RLX_OP_batch_norm_inference, 4, 5), ROLE_VARIANCE);
    expect_eq(t, op_input_role(RLX_OP_batch_norm_inference_backward_gamma, 2, 4), ROLE_VARIANCE);
    expect_eq(t, op_input_role(RLX_OP_fake_quantize_backward, 1, 3), ROLE_EXACT);
    expect_eq(t, op_input_role(RLX_OP_fake_quantize_backward, 1, 2), ROLE_PLAIN);
    expect_eq(t, op_input_role(RLX_OP_add, 1, 2), ROLE_PLAIN);
    expect_eq(t, op_input_role(RLX_OP_where, 0, 3), ROLE_CONDITION);
    expect_eq(t, op_input_role(RLX_OP_where, 1, 3), ROLE_PLAIN);
    expect_eq(t, op_input_role(RLX_OP_matmul, 1, 2), ROLE_WEIGHT);
    expect_eq(t, op_input_role(RLX_OP_gated_delta_net, 5, 6), ROLE_STATE);
}

TEST(op, a_tolerance_is_its_own_or_that_of_the_family)
{
    expect_eq(t, op_tolerance(RLX_OP_exp), TOLERANCE_FUNCTION);
    expect_eq(t, op_tolerance(RLX_OP_relu), TOLERANCE_EXACT);
    expect_eq(t, op_tolerance(RLX_OP_sin), TOLERANCE_TRIG);
    expect_eq(t, op_tolerance(RLX_OP_reduce_sum), TOLERANCE_SUM);
    expect_eq(t, op_tolerance(RLX_OP_reduce_max), TOLERANCE_EXACT);
    expect_eq(t, op_tolerance(RLX_OP_none), TOLERANCE_EXACT);
    expect_eq(t, op_tolerance(RLX_OP_count), TOLERANCE_EXACT);
}

TEST(op, integers_are_found_by_name)
{
    union ir_attr a;

    attr_defaults(RLX_OP_softmax, &a);
    expect_eq(t, attr_integer(RLX_OP_softmax, &a, "axis", 7), -1);
    expect_eq(t, attr_integer(RLX_OP_softmax, &a, "axes", 7), 7);
    attr_defaults(RLX_OP_matmul, &a);
    a.matmul.transpose_b = true;
    expect_eq(t, attr_integer(RLX_OP_matmul, &a, "transpose_a", 7), 0);
    expect_eq(t, attr_integer(RLX_OP_matmul, &a, "transpose_b", 7), 1);
    attr_defaults(RLX_OP_scatter_nd, &a);
    a.scatter_nd.reduction = RLX_SCATTER_REDUCTION_mul;
    expect_eq(t, attr_integer(RLX_OP_scatter_nd, &a, "reduction", -1), RLX_SCATTER_REDUCTION_mul);
    attr_defaults(RLX_OP_clamp, &a);
    expect_eq(t, attr_integer(RLX_OP_clamp, &a, "min", 7), 7); /* not an integer */
    expect_eq(t, attr_integer(RLX_OP_add, &a, "axis", 7), 7);
}

static bool has_operand(enum op_family family, rlx_str name)
{
    bool found = false;

    for (int op = 1; op < RLX_OP_count; op++) {
        int32_t names = op_input_names((rlx_op)op);
        for (int32_t i = 0; i < names && op_info((rlx_op)op)->family == family; i++)
            found |= str_eq(op_input_name((rlx_op)op, i, names), name);
    }
    return found;
}

/* A role whose operand nobody has would be silent. */
TEST(op, every_role_is_that_of_an_operand)
{
    static const struct {
        enum op_family family;
        const char *operand;
    } roles[] = {
#define ROLE(family, operand, role) {FAMILY_##family, #operand},
#include "ir/ops.def"
    };

    for (size_t r = 0; r < sizeof roles / sizeof roles[0]; r++) {
        test_note(t, "%s, %s", family_name(roles[r].family), roles[r].operand);
        expect(t, has_operand(roles[r].family, rlx_cstr(roles[r].operand)));
    }
    test_note(t, "%s", "");
}

TEST(op, rows_are_those_of_operands)
{
    static const struct {
        enum op_family family;
        const char *operands;
    } rows_of[] = {
#define ROWS(family, rule, operands) {FAMILY_##family, operands},
#include "ir/ops.def"
    };

    for (size_t r = 0; r < sizeof rows_of / sizeof rows_of[0]; r++) {
        const char *at = rows_of[r].operands;
        test_note(t, "%s, %s", family_name(rows_of[r].family), at);
        expect(t, *at);
        while (*at) {
            rlx_str word = {at, strcspn(at, " ")};
            expect(t, has_operand(rows_of[r].family, word));
            at += word.len;
            at += *at == ' ';
        }
    }
    test_note(t, "%s", "");
}

/* Every row of ops.def, in its order: each family's must be found at its place. */
static const struct {
    enum op_family family;
    const char *name, *words;
    size_t offset;
} rows[] = {
#define ATTR(family, field, kind, def) \
    {FAMILY_##family, #field, NULL, offsetof(union ir_attr, family.field)},
#define ENUM_ATTR(family, field, words, def) \
    {FAMILY_##family, #field, #words, offsetof(union ir_attr, family.field)},
#include "ir/ops.def"
};
#define ROW_COUNT (sizeof rows / sizeof rows[0])

TEST(op, families_cover_the_attribute_table_once)
{
    size_t at = 0, count;

    family_attrs(FAMILY_none, &count);
    expect_eq_u64(t, count, 0);
    const struct attr_info *next = family_attrs((enum op_family)1, &count);
    for (int f = 1; f < FAMILY_count; f++) {
        const struct attr_info *a = family_attrs((enum op_family)f, &count);
        test_note(t, "%s", family_name((enum op_family)f));
        expect(t, a == next); /* no gap and no overlap */
        next = a + count;
        for (size_t i = 0; i < count && at < ROW_COUNT; i++, at++) {
            expect_eq(t, rows[at].family, f);
            expect_str(t, a[i].name, rows[at].name);
            expect_eq_u64(t, a[i].offset, rows[at].offset);
            expect_eq(t, a[i].kind == ATTR_ENUM, rows[at].words != NULL);
            if (rows[at].words)
                expect_str(t, a[i].words, rows[at].words);
        }
    }
    test_note(t, "%s", "");
    expect_eq_u64(t, at, ROW_COUNT);
}

/* ---- words of enums ---------------------------------------------------------------------------
 */

static const struct {
    const char *words, *word;
    int32_t number;
} all_words[] = {
#define WORD(name, word, number) {#name, #word, number},
#include "ir/enums.def"
};

TEST(op, words_go_both_ways)
{
    for (size_t i = 0; i < sizeof all_words / sizeof all_words[0]; i++) {
        const char *words = all_words[i].words;
        int32_t found = -9, count = 0;

        test_note(t, "%s %s", words, all_words[i].word);
        expect(t, enum_from_word(words, rlx_cstr(all_words[i].word), &found));
        expect_eq(t, found, all_words[i].number);
        require(t, enum_word(words, found) != NULL);
        expect_str(t, enum_word(words, found), all_words[i].word);
        while (enum_word(words, count))
            count++;
        expect(t, found >= 0 && found < count); /* no gaps */
    }
    test_note(t, "%s", "");
}

TEST(op, words_that_do_not_exist)
{
    int32_t found = -9;

    expect(t, enum_word("pad_mode", -1) == NULL);
    expect(t, enum_word("pad_mode", INT32_MAX) == NULL);
    expect(t, enum_word("pad_mode", INT32_MIN) == NULL);
    expect(t, enum_word("no_such_enum", 0) == NULL);
    expect(t, !enum_from_word("pad_mode", STR(""), &found));
    expect(t, !enum_from_word("pad_mode", STR("Constant"), &found));
    expect(t, !enum_from_word("pad_mode", STR("mean"), &found)); /* of another enum */
    expect(t, !enum_from_word("no_such_enum", STR("constant"), &found));
    expect_eq(t, found, -9);
}

/* Every enum attribute has words, and its default is one of them. */
TEST(op, enum_attributes_have_their_words)
{
    for (int f = 1; f < FAMILY_count; f++) {
        size_t count;
        const struct attr_info *a = family_attrs((enum op_family)f, &count);
        for (size_t i = 0; i < count; i++) {
            int32_t found;
            if (a[i].kind != ATTR_ENUM)
                continue;
            test_note(t, "%s %s", family_name((enum op_family)f), a[i].name);
            expect(t, enum_word(a[i].words, 0) != NULL);
            expect(t, strcmp(a[i].default_text, "REQUIRED") == 0 ||
                          enum_from_word(a[i].words, rlx_cstr(a[i].default_text), &found));
        }
    }
    test_note(t, "%s", "");
}

/* ---- defaults ---------------------------------------------------------------------------------
 */

/* The default as C reads it, by kind: what ops.def says must be what a node gets. */
enum { REQUIRED = -77701, ABSENT = -77702, EMPTY = -77703 };
enum { IS_DTYPE_REQUIRED = RLX_DTYPE_count, IS_DTYPE_ABSENT = RLX_DTYPE_count };
#define DTYPE_WORD(name, number, bytes, cls, text) IS_DTYPE_##name = RLX_DTYPE_##name,
enum { RLX_DTYPE_MAP(DTYPE_WORD) IS_UNARY_REQUIRED = RLX_OP_none, IS_UNARY_none = RLX_OP_none };
enum {
#define OP(name, family, category, lo, hi, inputs, flags, summary, number) \
    IS_UNARY_##name = RLX_OP_##name,
#include "ir/ops.def"
};

struct wanted {
    bool marker; /* there is no value */
    double number;
    int32_t word;
};
#define NUMBER(def)                                                           \
    {                                                                         \
        (double)(def) <= REQUIRED && (double)(def) >= EMPTY, (double)(def), 0 \
    }
#define NO_VALUE(def) \
    {                 \
        true, 0, 0    \
    }
#define WANT_BOOL(def) NUMBER(def)
#define WANT_I64(def) NUMBER(def)
#define WANT_U64(def) NUMBER(def)
#define WANT_F32(def) NUMBER(def)
#define WANT_F64(def) NUMBER(def)
#define WANT_DTYPE(def)                   \
    {                                     \
        false, 0, (int32_t)IS_DTYPE_##def \
    }
#define WANT_UNARY(def)                   \
    {                                     \
        false, 0, (int32_t)IS_UNARY_##def \
    }
#define WANT_DIM(def) NUMBER(def)
#define WANT_AXES(def) NO_VALUE(def)
#define WANT_INTS(def) NO_VALUE(def)
#define WANT_DIMS(def) NO_VALUE(def)
#define WANT_FLOATS(def) NO_VALUE(def)
#define WANT_BYTES(def) NO_VALUE(def)
#define WANT_STRING(def) NO_VALUE(def)
#define WANT_GRAPH(def) NO_VALUE(def)
#define WANT_CHAIN(def) NO_VALUE(def)

static const struct wanted wanted[] = {
#define ATTR(family, field, kind, def) WANT_##kind(def),
#define ENUM_ATTR(family, field, words, def) {false, 0, 0},
#include "ir/ops.def"
};

static void check_default(struct test *t, const struct attr_info *a, const void *at,
                          const struct wanted *w)
{
    int32_t word = -1;

    switch (a->kind) {
    case ATTR_BOOL:
        expect(t, !w->marker);
        expect_eq(t, *(const bool *)at, w->number != 0);
        break;
    case ATTR_I64:
        expect_eq(t, *(const int64_t *)at, w->marker ? RLX_ABSENT : (int64_t)w->number);
        break;
    case ATTR_U64:
        expect_eq_u64(t, *(const uint64_t *)at, w->marker ? 0 : (uint64_t)w->number);
        break;
    case ATTR_F32: /* written with an f, so that C rounds it once */
        expect_near(t, *(const float *)at, w->marker ? (double)NAN : w->number, 0);
        break;
    case ATTR_F64:
        expect_near(t, *(const double *)at, w->marker ? (double)NAN : w->number, 0);
        break;
    case ATTR_ENUM:
        enum_from_word(a->words, rlx_cstr(a->default_text), &word);
        expect_eq(t, *(const int32_t *)at, word);
        break;
    case ATTR_DTYPE:
    case ATTR_UNARY: expect_eq(t, *(const int32_t *)at, w->word); break;
    case ATTR_DIM:
        expect_eq(t, *(const ir_dim *)at, w->marker ? RLX_DIM_FAILED : (int64_t)w->number);
        break;
    case ATTR_AXES:
    case ATTR_INTS:
    case ATTR_DIMS: expect_eq(t, ((const rlx_list *)at)->count, 0); break;
    case ATTR_FLOATS:
    case ATTR_BYTES:
    case ATTR_STRING:
    case ATTR_CHAIN:
        expect(t, ((const struct ir_blob *)at)->ptr == NULL);
        expect_eq_u64(t, ((const struct ir_blob *)at)->len, 0);
        break;
    case ATTR_GRAPH: expect_eq(t, *(const int32_t *)at, -1); break;
    }
}

TEST(op, defaults_are_what_the_table_says)
{
    size_t none;
    const struct attr_info *table = family_attrs(FAMILY_none, &none);

    for (int op = RLX_OP_none + 1; op < RLX_OP_count; op++) {
        union ir_attr attr;
        size_t count;
        const struct attr_info *a = family_attrs(op_info((rlx_op)op)->family, &count);
        memset(&attr, 0x5a, sizeof attr);
        attr_defaults((rlx_op)op, &attr);
        for (size_t i = 0; i < count; i++) {
            test_note(t, "%s %s", op_info((rlx_op)op)->name, a[i].name);
            check_default(t, &a[i], (char *)&attr + a[i].offset, &wanted[a + i - table]);
            expect_eq(t, attr_is_default(&a[i], &attr), strcmp(a[i].default_text, "REQUIRED") != 0);
        }
    }
    test_note(t, "%s", "");
}

/* ---- equality and hashes ----------------------------------------------------------------------
 */

static const float some_floats[2] = {1, 2}, other_floats[2] = {1, 3};
static const rlx_chain_step some_steps[2] = {{RLX_OP_exp, 0, {-1}}, {RLX_OP_neg, 0, {0}}};
static const rlx_chain_step other_steps[2] = {{RLX_OP_exp, 0, {-1}}, {RLX_OP_abs, 0, {0}}};

/* Another value than the default; `again` gives yet another. */
static void change(const struct attr_info *a, union ir_attr *attr, bool again)
{
    void *at = (char *)attr + a->offset;

    switch (a->kind) {
    case ATTR_BOOL: *(bool *)at = !*(bool *)at; break;
    case ATTR_I64: *(int64_t *)at = again ? 98765 : 54321; break;
    case ATTR_U64: *(uint64_t *)at = again ? UINT64_MAX : UINT64_C(1) << 63; break;
    case ATTR_F32: *(float *)at = again ? -0.0f : 123.5f; break;
    case ATTR_F64: *(double *)at = again ? -0.0 : 123.5; break;
    case ATTR_ENUM: *(int32_t *)at = again ? 78 : 77; break;
    case ATTR_DTYPE: *(rlx_dtype *)at = again ? RLX_DTYPE_c64 : RLX_DTYPE_u16; break;
    case ATTR_DIM: *(ir_dim *)at = again ? 12 : 11; break;
    case ATTR_AXES:
    case ATTR_INTS:
    case ATTR_DIMS: *(rlx_list *)at = again ? RLX_LIST(0, 0) : RLX_LIST(0); break;
    case ATTR_FLOATS:
        *(struct ir_blob *)at = (struct ir_blob){again ? other_floats : some_floats, 2};
        break;
    case ATTR_BYTES:
    case ATTR_STRING: *(struct ir_blob *)at = (struct ir_blob){again ? "ac" : "ab", 2}; break;
    case ATTR_CHAIN:
        *(struct ir_blob *)at = (struct ir_blob){again ? other_steps : some_steps, 2};
        break;
    case ATTR_GRAPH: *(int32_t *)at = again ? 3 : 2; break;
    case ATTR_UNARY: *(rlx_op *)at = again ? RLX_OP_exp : RLX_OP_relu; break;
    }
}

TEST(op, every_attribute_counts_in_equality_and_hash)
{
    for (int i = RLX_OP_none + 1; i < RLX_OP_count; i++) {
        rlx_op op = (rlx_op)i;
        union ir_attr x, y;
        size_t count;
        const struct attr_info *a = family_attrs(op_info(op)->family, &count);
        memset(&x, 0, sizeof x);
        memset(&y, 0xff, sizeof y); /* what is between the fields does not count */
        attr_defaults(op, &x);
        attr_defaults(op, &y);
        test_note(t, "%s", op_info(op)->name);
        expect(t, attr_same(op, &x, &y));
        expect_eq_u64(t, attr_hash(op, &x), attr_hash(op, &y));
        for (size_t k = 0; k < count; k++) {
            test_note(t, "%s %s", op_info(op)->name, a[k].name);
            attr_defaults(op, &y);
            change(&a[k], &y, false);
            expect(t, !attr_same(op, &x, &y) && !attr_same(op, &y, &x));
            expect(t, attr_hash(op, &x) != attr_hash(op, &y));
            expect(t, !attr_is_default(&a[k], &y));
            union ir_attr z = y;
            change(&a[k], &z, true);
            if (a[k].kind != ATTR_BOOL)
                expect(t, !attr_same(op, &y, &z) && attr_hash(op, &y) != attr_hash(op, &z));
        }
    }
    test_note(t, "%s", "");
}

TEST(op, blobs_are_compared_by_content)
{
    char first[] = "weight", second[] = "weight";
    union ir_attr a, b;

    attr_defaults(RLX_OP_input, &a);
    attr_defaults(RLX_OP_input, &b);
    a.leaf.name = (struct ir_blob){first, 6};
    b.leaf.name = (struct ir_blob){second, 6};
    expect(t, attr_same(RLX_OP_input, &a, &b));
    expect_eq_u64(t, attr_hash(RLX_OP_input, &a), attr_hash(RLX_OP_input, &b));
    b.leaf.name.len = 5;
    expect(t, !attr_same(RLX_OP_input, &a, &b));
    a.leaf.name = (struct ir_blob){NULL, 0};
    b.leaf.name = (struct ir_blob){second, 0};
    expect(t, attr_same(RLX_OP_input, &a, &b));
    expect_eq_u64(t, attr_hash(RLX_OP_input, &a), attr_hash(RLX_OP_input, &b));
}

TEST(op, nan_equals_nan_and_zeros_have_signs)
{
    const uint32_t bits[2] = {0x7fc00001, 0xffc12345};
    union ir_attr a, b;

    attr_defaults(RLX_OP_layer_norm, &a);
    b = a;
    memcpy(&a.layer_norm.eps, &bits[0], 4);
    memcpy(&b.layer_norm.eps, &bits[1], 4);
    expect(t, attr_same(RLX_OP_layer_norm, &a, &b));
    expect_eq_u64(t, attr_hash(RLX_OP_layer_norm, &a), attr_hash(RLX_OP_layer_norm, &b));
    a.layer_norm.eps = 0.0f;
    b.layer_norm.eps = -0.0f;
    expect(t, !attr_same(RLX_OP_layer_norm, &a, &b));

    attr_defaults(RLX_OP_clamp, &a);
    b = a;
    a.clamp.min = (double)NAN;
    b.clamp.min = -(double)NAN;
    expect(t, attr_same(RLX_OP_clamp, &a, &b));
    expect_eq_u64(t, attr_hash(RLX_OP_clamp, &a), attr_hash(RLX_OP_clamp, &b));
}

/* Entries after a list's count are nobody's business. */
TEST(op, lists_are_compared_up_to_their_count)
{
    union ir_attr a, b;

    attr_defaults(RLX_OP_reverse, &a);
    b = a;
    a.reverse.axes = RLX_LIST(1, 2);
    b.reverse.axes = RLX_LIST(1, 2, 3);
    b.reverse.axes.count = 2;
    expect(t, attr_same(RLX_OP_reverse, &a, &b));
    expect_eq_u64(t, attr_hash(RLX_OP_reverse, &a), attr_hash(RLX_OP_reverse, &b));
    b.reverse.axes.count = 3;
    expect(t, !attr_same(RLX_OP_reverse, &a, &b));
}
