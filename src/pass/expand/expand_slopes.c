/* expand_slopes.c: the gradient of a unary op as dy times its derivative, which is a formula in x.
 * Written so that nothing cancels: 1 - tanh^2 loses all its digits where tanh is near 1, but the
 * product of two sigmoids has them. Types narrower than f32 are computed in f32. */
#include "pass/expand/expand.h"

/* Shorthands for what follows: f and x are what they are everywhere. */
#define NUM(v) formula_number(f, (v))
#define NEG(a) formula_1(f, RLX_OP_neg, (a))
#define ADD(a, b) formula_2(f, RLX_OP_add, (a), (b))
#define MUL(a, b) formula_2(f, RLX_OP_mul, (a), (b))
#define SIGMOID(a) formula_1(f, RLX_OP_sigmoid, (a))

static const double root_2_over_pi = 0.79788456080286535588;
static const double inverse_root_2 = 0.70710678118654752440;
static const double inverse_root_2_pi = 0.39894228040143267794;
static const double two_over_root_pi = 1.12837916709551257390;

/* 1 - tanh(a)^2 */
static ir_value sech_squared(struct formula *f, ir_value a)
{
    ir_value twice = ADD(a, a);

    return MUL(NUM(4), MUL(SIGMOID(twice), SIGMOID(NEG(twice))));
}

static ir_value gelu(struct formula *f, ir_value x)
{
    ir_value below =
        MUL(NUM(0.5), ADD(NUM(1), formula_1(f, RLX_OP_erf, MUL(x, NUM(inverse_root_2)))));
    ir_value density =
        MUL(formula_1(f, RLX_OP_exp, MUL(MUL(x, x), NUM(-0.5))), NUM(inverse_root_2_pi));

    return ADD(below, MUL(x, density));
}

/* Where the tanh has settled the second term is 0, whatever it would be multiplied by; an infinite
 * x still gives NaN. */
static ir_value gelu_approx(struct formula *f, ir_value x)
{
    ir_value square = MUL(x, x);
    ir_value u = MUL(NUM(root_2_over_pi), ADD(x, MUL(NUM(0.044715), MUL(square, x))));
    ir_value gate = SIGMOID(ADD(u, u)), rest = sech_squared(f, u);
    ir_value inner = MUL(NUM(root_2_over_pi), ADD(NUM(1), MUL(NUM(0.134145), square)));
    ir_value slope = ADD(gate, MUL(MUL(MUL(x, NUM(0.5)), rest), inner));
    ir_value settled = ADD(gate, MUL(x, NUM(0)));

    return formula_where(f, formula_2(f, RLX_OP_eq, rest, NUM(0)), settled, slope);
}

static ir_value silu(struct formula *f, ir_value x)
{
    return MUL(SIGMOID(x), ADD(NUM(1), MUL(x, SIGMOID(NEG(x)))));
}

static ir_value mish(struct formula *f, ir_value x)
{
    ir_value soft = formula_1(f, RLX_OP_softplus, x);

    return ADD(formula_1(f, RLX_OP_tanh, soft), MUL(MUL(x, SIGMOID(x)), sech_squared(f, soft)));
}

static ir_value hard_swish(struct formula *f, ir_value x)
{
    ir_value between = MUL(ADD(ADD(x, x), NUM(3)), NUM(1.0 / 6));
    ir_value upper = formula_where(f, formula_2(f, RLX_OP_ge, x, NUM(3)), NUM(1), between);

    return formula_where(f, formula_2(f, RLX_OP_le, x, NUM(-3)), NUM(0), upper);
}

/* 0 at x = 0 instead of the pole there. */
static ir_value no_pole(struct formula *f, ir_value x, ir_value slope)
{
    return formula_where(f, formula_2(f, RLX_OP_eq, x, NUM(0)), NUM(0), slope);
}

static ir_value square(struct formula *f, ir_value y)
{
    return MUL(y, y);
}

static ir_value cube(struct formula *f, ir_value y)
{
    return MUL(y, MUL(y, y));
}

static ir_value hard_sigmoid(struct formula *f, ir_value x)
{
    ir_value within = formula_2(f, RLX_OP_lt, formula_1(f, RLX_OP_abs, x), NUM(3));

    return formula_where(f, within, NUM(1.0 / 6), NUM(0));
}

static ir_value elu(struct formula *f, ir_value x)
{
    ir_value below = formula_1(f, RLX_OP_exp, x);

    return formula_where(f, formula_2(f, RLX_OP_gt, x, NUM(0)), NUM(1), below);
}

#define SLOPE(op, slope)                                      \
    static ir_value slope_##op(struct formula *f, ir_value x) \
    {                                                         \
        return slope;                                         \
    }
#include "pass/expand/slopes.def"

/* None: 0. */
static ir_value (*const slopes[RLX_OP_count])(struct formula *f, ir_value x) = {
#define SLOPE(op, slope) [RLX_OP_##op] = slope_##op,
#include "pass/expand/slopes.def"
};

rlx_status expand_activation_backward(struct rebuild *r, const struct ir_node *n,
                                      const ir_value *in, ir_value *out)
{
    struct formula f = expand_formula(r, n->type.dtype);
    rlx_op kind = n->op == RLX_OP_relu_backward ? RLX_OP_relu : n->attr.activation_backward.kind;

    *out = in[1];
    if (kind == RLX_OP_round) /* passes through */
        return RLX_OK;
    if (kind == RLX_OP_neg)
        return expand_1(r, RLX_OP_neg, in[1], out);
    ir_value x = formula_cast(&f, in[0], f.dtype), dy = formula_cast(&f, in[1], f.dtype);
    ir_value slope = slopes[kind] ? slopes[kind](&f, x) : formula_number(&f, 0);
    ir_value dx = formula_2(&f, RLX_OP_mul, dy, slope);
    *out = formula_cast(&f, dx, n->type.dtype);
    return f.status;
}
