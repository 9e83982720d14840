/* onnx_elementwise.c: ONNX ops that compute each element on its own. */
#include <math.h>

#include "base/str.h"
#include "import/onnx/read/onnx_build.h"

static struct formula *begin(struct onnx_call *c)
{
    c->f.dtype = onnx_type(c, 0)->dtype;
    return &c->f;
}

/* ---- one operand, and an op of ours ---- */

static const struct {
    const char *name;
    rlx_op op;
} direct[] = {
    {"Abs", RLX_OP_abs},           {"Atan", RLX_OP_atan},
    {"Ceil", RLX_OP_ceil},         {"Cos", RLX_OP_cos},
    {"Erf", RLX_OP_erf},           {"Exp", RLX_OP_exp},
    {"Floor", RLX_OP_floor},       {"Log", RLX_OP_log},
    {"Mish", RLX_OP_mish},         {"Neg", RLX_OP_neg},
    {"Not", RLX_OP_not},           {"Reciprocal", RLX_OP_recip},
    {"Relu", RLX_OP_relu},         {"Round", RLX_OP_round},
    {"Sigmoid", RLX_OP_sigmoid},   {"Sign", RLX_OP_sign},
    {"Sin", RLX_OP_sin},           {"Softplus", RLX_OP_softplus},
    {"Softsign", RLX_OP_softsign}, {"Sqrt", RLX_OP_sqrt},
    {"Tan", RLX_OP_tan},           {"Tanh", RLX_OP_tanh},
    {"Add", RLX_OP_add},           {"Sub", RLX_OP_sub},
    {"Mul", RLX_OP_mul},           {"Div", RLX_OP_div},
    {"And", RLX_OP_bit_and},       {"Or", RLX_OP_bit_or},
    {"Xor", RLX_OP_bit_xor},       {"BitwiseAnd", RLX_OP_bit_and},
    {"BitwiseOr", RLX_OP_bit_or},  {"BitwiseXor", RLX_OP_bit_xor},
    {"Equal", RLX_OP_eq},          {"Less", RLX_OP_lt},
    {"Greater", RLX_OP_gt},        {"LessOrEqual", RLX_OP_le},
    {"GreaterOrEqual", RLX_OP_ge}, {"HardSwish", RLX_OP_hard_swish},
    {"Max", RLX_OP_max},           {"Min", RLX_OP_min},
    {"Sum", RLX_OP_add},           {"Mean", RLX_OP_add},
};

static rlx_op direct_op(struct onnx_call *c)
{
    for (size_t i = 0; i < sizeof direct / sizeof direct[0]; i++)
        if (str_eq(c->node->op, rlx_cstr(direct[i].name)))
            return direct[i].op;
    return RLX_OP_none;
}

void onnx_unary(struct onnx_call *c)
{
    onnx_give(c, 0, formula_1(&c->f, direct_op(c), onnx_in(c, 0)));
}

/* Before opset 7 the second operand was put at an axis of the first one. */
static ir_value second_operand(struct onnx_call *c)
{
    const struct ir_type b = *onnx_type(c, 1);
    int32_t rank = onnx_type(c, 0)->rank;
    rlx_list shape = formula_shape(&b);

    if (c->opset >= 7 || !onnx_attr(c, "axis"))
        return onnx_in(c, 1);
    int32_t axis = onnx_axis(c, onnx_int(c, "axis", 0), rank);
    while (shape.count < rank - axis)
        shape.at[shape.count++] = 1;
    return formula_reshape(&c->f, onnx_in(c, 1), shape);
}

void onnx_binary(struct onnx_call *c)
{
    onnx_give(c, 0, formula_2(&c->f, direct_op(c), onnx_in(c, 0), second_operand(c)));
}

/* Max, Min, Sum, Mean of any number of operands. */
void onnx_variadic(struct onnx_call *c)
{
    struct formula *f = begin(c);
    ir_value y = onnx_in(c, 0);

    for (size_t i = 1; i < c->in_count; i++)
        y = formula_2(f, direct_op(c), y, onnx_in(c, i));
    if (str_eq(c->node->op, STR("Mean")))
        y = formula_2(f, RLX_OP_div, y, formula_number(f, (double)c->in_count));
    onnx_give(c, 0, y);
}

/* ---- by a formula ---- */

static ir_value is_above(struct formula *f, ir_value x, double n)
{
    return formula_2(f, RLX_OP_gt, x, formula_number(f, n));
}

/* sqrt((1 - x)(1 + x)), which keeps its digits near 1 */
static ir_value other_leg(struct formula *f, ir_value x)
{
    ir_value less = formula_2(f, RLX_OP_sub, formula_number(f, 1), x);

    return formula_1(f, RLX_OP_sqrt, formula_2(f, RLX_OP_mul, less, onnx_plus(f, x, 1)));
}

void onnx_asin(struct onnx_call *c)
{
    struct formula *f = begin(c);
    ir_value x = onnx_in(c, 0);

    onnx_give(c, 0, formula_2(f, RLX_OP_atan2, x, other_leg(f, x)));
}

void onnx_acos(struct onnx_call *c)
{
    struct formula *f = begin(c);
    ir_value x = onnx_in(c, 0);

    onnx_give(c, 0, formula_2(f, RLX_OP_atan2, other_leg(f, x), x));
}

static void half_sum(struct onnx_call *c, rlx_op op)
{
    struct formula *f = begin(c);
    ir_value x = onnx_in(c, 0), up = formula_1(f, RLX_OP_exp, x);
    ir_value down = formula_1(f, RLX_OP_exp, formula_1(f, RLX_OP_neg, x));

    onnx_give(c, 0, onnx_times(f, formula_2(f, op, up, down), 0.5));
}

void onnx_sinh(struct onnx_call *c)
{
    half_sum(c, RLX_OP_sub);
}

void onnx_cosh(struct onnx_call *c)
{
    half_sum(c, RLX_OP_add);
}

/* sign(x) ln(|x| + sqrt(x^2 + 1)) */
void onnx_asinh(struct onnx_call *c)
{
    struct formula *f = begin(c);
    ir_value x = onnx_in(c, 0), size = formula_1(f, RLX_OP_abs, x);
    ir_value root = formula_1(f, RLX_OP_sqrt, onnx_plus(f, formula_2(f, RLX_OP_mul, x, x), 1));
    ir_value log = formula_1(f, RLX_OP_log, formula_2(f, RLX_OP_add, size, root));

    onnx_give(c, 0, formula_2(f, RLX_OP_mul, formula_1(f, RLX_OP_sign, x), log));
}

/* ln(x + sqrt((x - 1)(x + 1))) */
void onnx_acosh(struct onnx_call *c)
{
    struct formula *f = begin(c);
    ir_value x = onnx_in(c, 0);
    ir_value root = formula_1(f, RLX_OP_sqrt,
                              formula_2(f, RLX_OP_mul, onnx_plus(f, x, -1), onnx_plus(f, x, 1)));

    onnx_give(c, 0, formula_1(f, RLX_OP_log, formula_2(f, RLX_OP_add, x, root)));
}

/* ln((1 + x) / (1 - x)) / 2 */
void onnx_atanh(struct onnx_call *c)
{
    struct formula *f = begin(c);
    ir_value x = onnx_in(c, 0);
    ir_value less = formula_2(f, RLX_OP_sub, formula_number(f, 1), x);
    ir_value log = formula_1(f, RLX_OP_log, formula_2(f, RLX_OP_div, onnx_plus(f, x, 1), less));

    onnx_give(c, 0, onnx_times(f, log, 0.5));
}

/* ---- activations ---- */

/* x above 0, otherwise alpha (e^(x / width) - 1); all times scale */
static void elu(struct onnx_call *c, double alpha, double width, double scale)
{
    struct formula *f = begin(c);
    ir_value x = onnx_in(c, 0);
    ir_value below = onnx_times(f, formula_1(f, RLX_OP_elu, onnx_times(f, x, 1 / width)), alpha);

    onnx_give(c, 0, onnx_times(f, formula_where(f, is_above(f, x, 0), x, below), scale));
}

void onnx_elu(struct onnx_call *c)
{
    elu(c, onnx_float(c, "alpha", 1), 1, 1);
}

void onnx_celu(struct onnx_call *c)
{
    double alpha = onnx_float(c, "alpha", 1);

    elu(c, alpha, alpha, 1);
}

void onnx_selu(struct onnx_call *c)
{
    elu(c, onnx_float(c, "alpha", 1.67326319217681884765625), 1,
        onnx_float(c, "gamma", 1.05070102214813232421875));
}

static void leaky(struct onnx_call *c, ir_value slope)
{
    struct formula *f = &c->f;
    ir_value x = onnx_in(c, 0);
    ir_value below = formula_2(f, RLX_OP_lt, x, formula_number(f, 0));

    onnx_give(c, 0, formula_where(f, below, formula_2(f, RLX_OP_mul, x, slope), x));
}

void onnx_leaky_relu(struct onnx_call *c)
{
    leaky(c, formula_number(begin(c), onnx_float(c, "alpha", 0.01)));
}

/* Before opset 7 the slopes were one per channel. */
void onnx_prelu(struct onnx_call *c)
{
    struct formula *f = begin(c);
    int32_t rank = onnx_type(c, 0)->rank;
    ir_value slope = onnx_in(c, 1);
    rlx_list shape = {.count = rank - 1};

    if (c->opset < 7 && rank > 1 && onnx_type(c, 1)->rank == 1) {
        for (int32_t i = 0; i < shape.count; i++)
            shape.at[i] = i ? 1 : RLX_DIM_INFER;
        slope = formula_reshape(f, slope, shape);
    }
    leaky(c, slope);
}

void onnx_thresholded_relu(struct onnx_call *c)
{
    struct formula *f = begin(c);
    ir_value x = onnx_in(c, 0);

    onnx_give(c, 0,
              formula_where(f, is_above(f, x, onnx_float(c, "alpha", 1)), x, formula_number(f, 0)));
}

void onnx_hard_sigmoid(struct onnx_call *c)
{
    struct formula *f = begin(c);
    double alpha = onnx_float(c, "alpha", 0.2), beta = onnx_float(c, "beta", 0.5);

    if ((float)alpha == 1.0f / 6 && beta == 0.5) {
        onnx_give(c, 0, formula_1(f, RLX_OP_hard_sigmoid, onnx_in(c, 0)));
        return;
    }
    ir_value x = onnx_times(f, onnx_in(c, 0), alpha);
    onnx_give(c, 0, onnx_clamp_of(f, onnx_plus(f, x, beta), 0, 1));
}

void onnx_gelu(struct onnx_call *c)
{
    bool approximate = str_eq(onnx_text(c, "approximate", "none"), STR("tanh"));

    onnx_give(c, 0,
              formula_1(&c->f, approximate ? RLX_OP_gelu_approx : RLX_OP_gelu, onnx_in(c, 0)));
}

static ir_value swish(struct onnx_call *c)
{
    struct formula *f = begin(c);
    ir_value x = onnx_in(c, 0);
    ir_value gate = formula_1(f, RLX_OP_sigmoid, onnx_times(f, x, onnx_float(c, "alpha", 1)));

    return formula_2(f, RLX_OP_mul, x, gate);
}

void onnx_swish(struct onnx_call *c)
{
    onnx_give(c, 0, swish(c));
}

void onnx_swiglu(struct onnx_call *c)
{
    onnx_give(c, 0, formula_2(&c->f, RLX_OP_mul, swish(c), onnx_in(c, 1)));
}

void onnx_shrink(struct onnx_call *c)
{
    struct formula *f = begin(c);
    double bias = onnx_float(c, "bias", 0), limit = onnx_float(c, "lambd", 0.5);
    ir_value x = onnx_in(c, 0), zero = formula_number(f, 0);
    ir_value low = formula_2(f, RLX_OP_lt, x, formula_number(f, -limit));
    ir_value high = formula_where(f, is_above(f, x, limit), onnx_plus(f, x, -bias), zero);

    onnx_give(c, 0, formula_where(f, low, onnx_plus(f, x, bias), high));
}

/* Bounds are attributes up to opset 10, then inputs, which may cross: then the upper one holds. */
void onnx_clip(struct onnx_call *c)
{
    struct formula *f = begin(c);
    ir_value x = onnx_in(c, 0);

    if (c->opset < 11) {
        onnx_give(
            c, 0,
            onnx_clamp_of(f, x, onnx_float(c, "min", -INFINITY), onnx_float(c, "max", INFINITY)));
        return;
    }
    if (onnx_has(c, 1))
        x = formula_2(f, RLX_OP_max, x, onnx_in(c, 1));
    if (onnx_has(c, 2))
        x = formula_2(f, RLX_OP_min, x, onnx_in(c, 2));
    onnx_give(c, 0, x);
}

/* ---- powers, remainders, bits ---- */

/* An integer to a whole power, by squaring: to the last digit, and on devices without f64. What
 * does not fit is not defined, so six bits of the exponent do. Negative powers of all but 1 and -1
 * are 0. */
static ir_value whole_power(struct formula *f, ir_value b, ir_value e, rlx_dtype e_type)
{
    ir_value one = formula_number(f, 1), zero = formula_number(f, 0), y = one, square = b;
    ir_value e_one = formula_number_of(f, e_type, 1), e_zero = formula_number_of(f, e_type, 0);

    for (int k = 0; k < 6; k++) {
        ir_value bits = formula_2(f, RLX_OP_shr, e, formula_number_of(f, e_type, k));
        ir_value odd = formula_2(f, RLX_OP_eq, formula_2(f, RLX_OP_bit_and, bits, e_one), e_one);
        y = formula_where(f, odd, formula_2(f, RLX_OP_mul, y, square), y);
        square = formula_2(f, RLX_OP_mul, square, square);
    }
    ir_value none = formula_2(f, RLX_OP_eq, e, e_zero), nothing = formula_2(f, RLX_OP_eq, b, zero);
    y = formula_where(f, nothing, formula_where(f, none, one, zero), y);
    if (dtype_is(e_type, CLASS_U))
        return y;
    ir_value kept = formula_where(f, formula_2(f, RLX_OP_eq, b, one), y, zero);
    if (!dtype_is(f->dtype, CLASS_U))
        kept = formula_where(f, formula_2(f, RLX_OP_eq, b, formula_number(f, -1)), y, kept);
    return formula_where(f, formula_2(f, RLX_OP_lt, e, e_zero), kept, y);
}

/* The result has the type of the base; integers go through f64 where the exponent is none. */
void onnx_pow(struct onnx_call *c)
{
    struct formula *f = begin(c);
    rlx_dtype to = onnx_type(c, 0)->dtype, by = onnx_type(c, 1)->dtype;
    rlx_dtype in = dtype_is(to, CLASS_F) ? to : RLX_DTYPE_f64;

    if (in != to && !dtype_is(by, CLASS_F)) {
        onnx_give(c, 0, whole_power(f, onnx_in(c, 0), onnx_in(c, 1), by));
        return;
    }
    ir_value y = formula_2(f, RLX_OP_pow, formula_cast(f, onnx_in(c, 0), in),
                           formula_cast(f, onnx_in(c, 1), in));
    onnx_give(c, 0, formula_cast(f, y, to));
}

/* fmod=1: the dividend's sign, as ours. Else the divisor's, of a zero too. */
void onnx_mod(struct onnx_call *c)
{
    struct formula *f = begin(c);
    ir_value a = onnx_in(c, 0), b = onnx_in(c, 1), zero = formula_number(f, 0);
    ir_value r = formula_2(f, RLX_OP_mod, a, b);

    if (onnx_int(c, "fmod", 0) == 0 && !dtype_is(f->dtype, CLASS_U)) {
        ir_value below = formula_2(f, RLX_OP_lt, b, zero);
        ir_value apart = formula_2(f, RLX_OP_ne, formula_2(f, RLX_OP_lt, r, zero), below);
        ir_value none = formula_2(f, RLX_OP_eq, r, zero);
        if (dtype_is(f->dtype, CLASS_F))
            zero = formula_where(f, below, formula_number(f, -0.0), zero);
        r = formula_where(f, apart, formula_2(f, RLX_OP_add, r, b), r);
        r = formula_where(f, none, zero, r);
    }
    onnx_give(c, 0, r);
}

void onnx_bit_shift(struct onnx_call *c)
{
    bool left = str_eq(onnx_text(c, "direction", ""), STR("LEFT"));

    onnx_give(c, 0, formula_2(&c->f, left ? RLX_OP_shl : RLX_OP_shr, onnx_in(c, 0), onnx_in(c, 1)));
}

void onnx_bitwise_not(struct onnx_call *c)
{
    struct formula *f = begin(c);

    onnx_give(c, 0, formula_2(f, RLX_OP_bit_xor, onnx_in(c, 0), formula_number(f, -1)));
}

/* ---- tests and choices ---- */

void onnx_is_nan(struct onnx_call *c)
{
    ir_value x = onnx_in(c, 0);

    onnx_give(c, 0, formula_2(&c->f, RLX_OP_ne, x, x));
}

void onnx_is_inf(struct onnx_call *c)
{
    struct formula *f = begin(c);
    bool up = onnx_int(c, "detect_positive", 1), down = onnx_int(c, "detect_negative", 1);
    ir_value x = onnx_in(c, 0);
    ir_value above = formula_2(f, RLX_OP_eq, x, formula_number(f, up ? INFINITY : NAN));
    ir_value below = formula_2(f, RLX_OP_eq, x, formula_number(f, down ? -INFINITY : NAN));

    onnx_give(c, 0, formula_2(f, RLX_OP_bit_or, above, below));
}

void onnx_where(struct onnx_call *c)
{
    onnx_give(c, 0, formula_where(&c->f, onnx_in(c, 0), onnx_in(c, 1), onnx_in(c, 2)));
}

void onnx_identity(struct onnx_call *c)
{
    if (c->out_count && c->in_count && c->in[0])
        c->out[0] = *c->in[0]; /* whatever it holds, or that it holds nothing */
    else
        onnx_give(c, 0, onnx_in(c, 0));
}
