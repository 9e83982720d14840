/* shape_elementwise_test.c: broadcasting, promotion, and which types each elementwise op takes. */
#include <math.h>

#include "shape_build.h"

TEST(shape_elementwise, broadcasting)
{
    static const struct {
        int64_t a[3], b[3];
        int32_t a_rank, b_rank;
        const char *want; /* NULL: refused */
    } rows[] = {
        {{2, 1, 3}, {4, 1}, 3, 2, "f32[2,4,3]"},
        {{0, 3}, {1, 3}, 2, 2, "f32[0,3]"},
        {{2, 3}, {2}, 2, 1, NULL},
        {{0}, {3}, 1, 1, NULL},
        {{0}, {1}, 1, 1, "f32[0]"},
        {{0}, {0}, 1, 1, "f32[0]"},
        {{0}, {0}, 0, 0, "f32[]"},
        {{0}, {1}, 0, 1, "f32[1]"},
        {{5}, {0}, 1, 0, "f32[5]"},
        {{1, 1, 1}, {7}, 3, 1, "f32[1,1,7]"},
    };
    struct build b;
    require(t, build_open(t, &b));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ir_value x = build_input(&b, RLX_DTYPE_f32, list_of(rows[i].a_rank, rows[i].a));
        ir_value y = build_input(&b, RLX_DTYPE_f32, list_of(rows[i].b_rank, rows[i].b));
        test_note(t, "row %zu", i);
        if (rows[i].want) {
            gives(&b, add, NULL, rows[i].want, x, y);
            gives(&b, add, NULL, rows[i].want, y, x);
        } else {
            fails(&b, add, NULL, SHAPE, "do not broadcast", x, y);
            fails(&b, add, NULL, SHAPE, "do not broadcast", y, x);
        }
    }
    build_close(&b);
}

/* Every line of the table of symbolic axes, with the check it leaves behind. */
TEST(shape_elementwise, symbolic_broadcasting)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_dim s = symbol(&b, "s"), u = symbol(&b, "u"), unknown = RLX_DIM_UNKNOWN;
    const struct {
        ir_dim a, b;
        const char *want;
        size_t checks;
    } rows[] = {
        {s, s, "f32[s]", 0},
        {s, 1, "f32[s]", 0},
        {1, s, "f32[s]", 0},
        {s, 4, "f32[4]", 1},
        {4, s, "f32[4]", 1},
        {s, 0, "f32[0]", 1},
        {s, u, "f32[s]", 1},
        {u, s, "f32[u]", 1},
        {unknown, 1, "f32[?]", 0},
        {unknown, 7, "f32[7]", 0},
        {unknown, s, "f32[s]", 0},
        {s, unknown, "f32[s]", 0},
        {unknown, unknown, "f32[?]", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(rows[i].a));
        ir_value y = build_input(&b, RLX_DTYPE_f32, RLX_LIST(rows[i].b));
        size_t before = b.mod->check.len;
        test_note(t, "row %zu", i);
        gives(&b, mul, NULL, rows[i].want, x, y);
        expect_eq_u64(t, b.mod->check.len - before, rows[i].checks);
    }
    build_close(&b);
}

TEST(shape_elementwise, a_symbol_bound_to_one_does_not_stretch)
{
    struct build b;
    struct ir_type type = {0};
    rlx_error err;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(symbol(&b, "s"), 2));
    ir_value y = build_input(&b, RLX_DTYPE_f32, RLX_LIST(3, 2));

    gives(&b, add, NULL, "f32[3,2]", x, y);
    expect_ok(t, bind_symbols(&b, "s", 3, NULL, 0, &type, NULL));
    expect_eq(t, type.dim[0], 3);
    expect_status(t, bind_symbols(&b, "s", 1, NULL, 0, NULL, &err), RLX_ERROR_SHAPE);
    expect_contains(t, err.message, "add");
    expect_status(t, bind_symbols(&b, "s", 4, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);
    build_close(&b);
}

/* Which of some types an op takes: one letter each of f32 i32 u32 bool c64, '-' where it does not.
 */
TEST(shape_elementwise, classes)
{
    static const rlx_dtype dtype[] = {RLX_DTYPE_f32, RLX_DTYPE_i32, RLX_DTYPE_u32, RLX_DTYPE_bool,
                                      RLX_DTYPE_c64};
    static const struct {
        rlx_op op;
        const char *takes;
    } rows[] = {
        {RLX_OP_add, "fiu-c"},
        {RLX_OP_sub, "fiu-c"},
        {RLX_OP_mul, "fiu-c"},
        {RLX_OP_div, "fiu-c"},
        {RLX_OP_max, "fiub-"},
        {RLX_OP_min, "fiub-"},
        {RLX_OP_pow, "f----"},
        {RLX_OP_mod, "fiu--"},
        {RLX_OP_atan2, "f----"},
        {RLX_OP_bit_and, "-iub-"},
        {RLX_OP_bit_or, "-iub-"},
        {RLX_OP_bit_xor, "-iub-"},
        {RLX_OP_shl, "-iu--"},
        {RLX_OP_shr, "-iu--"},
        {RLX_OP_eq, "fiubc"},
        {RLX_OP_ne, "fiubc"},
        {RLX_OP_lt, "fiu--"},
        {RLX_OP_le, "fiu--"},
        {RLX_OP_gt, "fiu--"},
        {RLX_OP_ge, "fiu--"},
        {RLX_OP_relu, "fiu--"},
        {RLX_OP_neg, "fi--c"},
        {RLX_OP_abs, "fiu--"},
        {RLX_OP_sign, "fiu--"},
        {RLX_OP_not, "---b-"},
        {RLX_OP_exp, "f----"},
        {RLX_OP_gelu, "f----"},
        {RLX_OP_round, "f----"},
        {RLX_OP_floor, "f----"},
        {RLX_OP_log_sigmoid, "f----"},
        {RLX_OP_clamp, "fiu--"},
        {RLX_OP_fma, "f----"},
        {RLX_OP_stop_gradient, "fiubc"},
        {RLX_OP_conjugate, "----c"},
        {RLX_OP_complex_norm_sq, "----c"},
        {RLX_OP_complex_real, "----c"},
        {RLX_OP_cast, "fiub-"}, /* to f16 */
    };
    struct build b;
    ir_value x[5];
    require(t, build_open(t, &b));
    for (int i = 0; i < 5; i++)
        x[i] = build_input(&b, dtype[i], RLX_LIST(2));
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        rlx_op op = rows[r].op;
        union ir_attr a = defaults(op);
        if (op == RLX_OP_cast)
            a.cast.to = RLX_DTYPE_f16;
        for (int i = 0; i < 5; i++) {
            struct diag d;
            ir_value v, in[4] = {x[i], x[i], x[i], RLX_NO_VALUE};
            in[op_info(op)->inputs_min] = RLX_NO_VALUE;
            rlx_status s = build_node(&b, op, &a, in, &v, &d);
            test_note(t, "%s of %s", op_info(op)->name, rlx_dtype_name(dtype[i]));
            expect_status(t, s, rows[r].takes[i] == '-' ? RLX_ERROR_DTYPE : RLX_OK);
            if (s != RLX_OK)
                expect_contains(t, d.first.message, rlx_dtype_name(dtype[i]));
            else if (op_info(op)->family == FAMILY_compare)
                expect_eq(t, ir_type_of(b.g, v)->dtype, RLX_DTYPE_bool);
        }
    }
    build_close(&b);
}

TEST(shape_elementwise, operands_meet)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value f = build_input(&b, RLX_DTYPE_f16, RLX_LIST(3));
    ir_value i = build_input(&b, RLX_DTYPE_i8, RLX_LIST(2, 1));
    ir_value p = build_input(&b, RLX_DTYPE_bool, RLX_LIST(3));
    ir_value u = build_input(&b, RLX_DTYPE_u64, RLX_LIST(3));
    ir_value z = build_input(&b, RLX_DTYPE_c64, RLX_LIST(3));

    gives(&b, add, NULL, "f32[2,3]", f, i);
    gives(&b, add, NULL, "f16[3]", f, p);
    gives(&b, mul, NULL, "c64[3]", p, z);
    gives(&b, lt, NULL, "bool[2,3]", f, i);
    gives(&b, pow, NULL, "f64[3]", f, u);
    fails(&b, add, NULL, DTYPE, "i8", i, u);
    fails(&b, add, NULL, DTYPE, "bool", p, p);
    fails(&b, lt, NULL, DTYPE, "c64", z, f);
    gives(&b, eq, NULL, "bool[3]", z, f);
    gives(&b, where, NULL, "f32[2,3]", p, f, i);
    gives(&b, where, NULL, "bool[2,3]", i, p, p);
    gives(&b, where, NULL, "c64[3]", f, z, z);
    fails(&b, where, NULL, DTYPE, "cond", z, f, f);
    gives(&b, fma, NULL, "f32[2,3]", f, f, i);
    fails(&b, fma, NULL, DTYPE, "i8", i, i, i);
    fails(&b, add, NULL, GRAPH, "takes 2 inputs, got 1", f);
    fails(&b, exp, NULL, GRAPH, "got 2", f, f);
    build_close(&b);
}

TEST(shape_elementwise, where_broadcasts_three)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value c = build_input(&b, RLX_DTYPE_bool, RLX_LIST(4, 1, 1));
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(5, 1));
    ir_value y = build_input(&b, RLX_DTYPE_f32, RLX_LIST(6));
    ir_value bad = build_input(&b, RLX_DTYPE_f32, RLX_LIST(4, 6));

    gives(&b, where, NULL, "f32[4,5,6]", c, x, y);
    fails(&b, where, NULL, SHAPE, "[4,5,1] and [4,6]", c, x, bad);
    build_close(&b);
}

TEST(shape_elementwise, cast)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 0));
    ir_value z = build_input(&b, RLX_DTYPE_c64, SCALAR);
    ir_value p = build_input(&b, RLX_DTYPE_bool, SCALAR);
    union ir_attr a = defaults(RLX_OP_cast);

    fails(&b, cast, &a, ATTRIBUTE, "to is not an element type", x);
    for (int d = 0; d < RLX_DTYPE_count; d++) {
        char want[32];
        a.cast.to = (rlx_dtype)d;
        snprintf(want, sizeof want, "%s[2,0]", rlx_dtype_name(a.cast.to));
        gives(&b, cast, &a, want, x);
        if (a.cast.to != RLX_DTYPE_c64)
            fails(&b, cast, &a, DTYPE, "c64 does not convert", z);
    }
    a.cast.to = RLX_DTYPE_c64;
    gives(&b, cast, &a, "c64[]", z);
    gives(&b, cast, &a, "c64[]", p);
    build_close(&b);
}

/* As large as one another, and no bool of what may be none. */
TEST(shape_elementwise, bitcast)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr a = defaults(RLX_OP_bitcast);
    ir_value x[RLX_DTYPE_count];

    for (int d = 0; d < RLX_DTYPE_count; d++)
        x[d] = build_input(&b, (rlx_dtype)d, RLX_LIST(2, 0));
    fails(&b, bitcast, &a, ATTRIBUTE, "to is not an element type", x[0]);
    for (int from = 0; from < RLX_DTYPE_count; from++)
        for (int to = 0; to < RLX_DTYPE_count; to++) {
            char want[32];
            a.bitcast.to = (rlx_dtype)to;
            snprintf(want, sizeof want, "%s[2,0]", rlx_dtype_name(a.bitcast.to));
            if (rlx_dtype_size((rlx_dtype)from) != rlx_dtype_size((rlx_dtype)to))
                fails(&b, bitcast, &a, DTYPE, " bytes, ", x[from]);
            else if (to == RLX_DTYPE_bool && from != to)
                fails(&b, bitcast, &a, DTYPE, "are a bool", x[from]);
            else
                gives(&b, bitcast, &a, want, x[from]);
        }
    build_close(&b);
}

TEST(shape_elementwise, clamp)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_f16, RLX_LIST(2));
    union ir_attr a = defaults(RLX_OP_clamp);

    gives(&b, clamp, &a, "f16[2]", x);
    a.clamp.min = a.clamp.max = 0;
    gives(&b, clamp, &a, "f16[2]", x);
    a.clamp.min = 1.5;
    fails(&b, clamp, &a, ATTRIBUTE, "min 1.5 and max 0", x);
    a.clamp.min = (double)NAN;
    fails(&b, clamp, &a, ATTRIBUTE, "min", x);
    a = defaults(RLX_OP_clamp);
    a.clamp.max = (double)NAN;
    fails(&b, clamp, &a, ATTRIBUTE, "max", x);
    build_close(&b);
}

TEST(shape_elementwise, complex)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value z = build_input(&b, RLX_DTYPE_c64, RLX_LIST(2, 3));

    gives(&b, complex_norm_sq, NULL, "f32[2,3]", z);
    gives(&b, complex_real, NULL, "f32[2,3]", z);
    gives(&b, conjugate, NULL, "c64[2,3]", z);
    gives(&b, stop_gradient, NULL, "c64[2,3]", z);
    build_close(&b);
}

TEST(shape_elementwise, gradients_of_activations)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_dim s = symbol(&b, "s");
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, s));
    ir_value dy = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 5));
    ir_value half = build_input(&b, RLX_DTYPE_f16, RLX_LIST(2, 5));
    ir_value flat = build_input(&b, RLX_DTYPE_f32, RLX_LIST(10));
    ir_value i = build_input(&b, RLX_DTYPE_i32, RLX_LIST(2, 5));
    ir_value z = build_input(&b, RLX_DTYPE_c64, RLX_LIST(2));
    union ir_attr a = defaults(RLX_OP_activation_backward);

    gives(&b, relu_backward, NULL, "f32[2,s]", x, dy);
    expect_eq_u64(t, b.mod->check.len, 1);
    fails(&b, relu_backward, NULL, DTYPE, "f32 but dy is f16", dy, half);
    fails(&b, relu_backward, NULL, SHAPE, "f32[2,5] and f32[10]", dy, flat);
    fails(&b, relu_backward, NULL, DTYPE, "i32", i, i);
    fails(&b, activation_backward, &a, ATTRIBUTE, "kind", x, dy);
    a.activation_backward.kind = RLX_OP_gelu;
    gives(&b, activation_backward, &a, "f32[2,s]", x, dy);
    fails(&b, activation_backward, &a, DTYPE, "c64", z, z);
    a.activation_backward.kind = RLX_OP_neg;
    gives(&b, activation_backward, &a, "c64[2]", z, z);
    a.activation_backward.kind = RLX_OP_not;
    fails(&b, activation_backward, &a, ATTRIBUTE, "not not", x, dy);
    a.activation_backward.kind = RLX_OP_add;
    fails(&b, activation_backward, &a, ATTRIBUTE, "add", x, dy);
    build_close(&b);
}
